//! Key exchange methods behind one interface (RFC 8031 X25519, more to come).

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use x25519_dalek::{PublicKey, StaticSecret};

use crate::error::Violation;
use crate::secret::SecretBytes;
use crate::wire::registry::key_exchange as code;

/// A key exchange method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// X25519 (RFC 8031).
    X25519,
}

impl Method {
    /// Transform ID.
    pub const fn code(self) -> u16 {
        match self {
            Self::X25519 => code::CURVE25519,
        }
    }

    /// The method of a transform ID, if we have it.
    pub const fn from_code(id: u16) -> Option<Self> {
        match id {
            code::CURVE25519 => Some(Self::X25519),
            _ => None,
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519 => "X25519",
        }
    }
}

/// Our half of a key exchange. `Send`, so that [`Self::complete`] can run on another core.
pub struct KeyExchange {
    method: Method,
    public: Vec<u8>,
    secret: Secret,
}

enum Secret {
    X25519(StaticSecret),
}

impl KeyExchange {
    /// As initiator: a fresh key pair.
    pub fn initiate(method: Method, rng: &mut ChaCha20Rng) -> Self {
        match method {
            Method::X25519 => {
                let mut seed = [0; 32];
                rng.fill_bytes(&mut seed);
                let secret = StaticSecret::from(seed);
                let public = PublicKey::from(&secret).to_bytes().to_vec();
                Self { method, public, secret: Secret::X25519(secret) }
            }
        }
    }

    /// As responder to `peer_public`. Diffie-Hellman methods do nothing expensive yet; that happens in
    /// [`Self::complete`].
    ///
    /// # Errors
    /// [`Violation::Forbidden`] if the public value has the wrong length or is none.
    pub fn respond(method: Method, _peer_public: &[u8], rng: &mut ChaCha20Rng) -> Result<Self, Violation> {
        Ok(Self::initiate(method, rng))
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// What goes into our KE payload.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The shared secret with the owner of `peer_public`.
    ///
    /// # Errors
    /// [`Violation::Forbidden`] if the public value has the wrong length or leads to a trivial secret.
    pub fn complete(&self, peer_public: &[u8]) -> Result<SecretBytes, Violation> {
        let forbidden = Violation::Forbidden("key exchange value");
        match &self.secret {
            Secret::X25519(secret) => {
                let octets: [u8; 32] = peer_public.try_into().map_err(|_| forbidden)?;
                let shared = secret.diffie_hellman(&PublicKey::from(octets));
                //= RFC 8031 §3.2 with RFC 7748 §6.1: an all-zero result is refused.
                if !shared.was_contributory() {
                    return Err(forbidden);
                }
                Ok(SecretBytes::new(shared.as_bytes().to_vec()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn both_sides_get_the_same_secret() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for method in [Method::X25519] {
            let a = KeyExchange::initiate(method, &mut rng);
            let b = KeyExchange::respond(method, a.public(), &mut rng).unwrap();
            assert_eq!(a.complete(b.public()).unwrap(), b.complete(a.public()).unwrap());
        }
    }

    #[test]
    fn values_that_are_none_are_refused() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let ours = KeyExchange::initiate(Method::X25519, &mut rng);
        assert!(ours.complete(&[0; 32]).is_err());
        assert!(ours.complete(&[9; 31]).is_err());
        assert!(ours.complete(&[9; 33]).is_err());
    }
}
