//! Key exchange methods behind one interface: X25519 (RFC 8031), P-256 (RFC 5903), and ML-KEM-768 as
//! additional key exchange (RFC 9370, draft-ietf-ipsecme-ikev2-mlkem).

use ml_kem::kem::{Decapsulate, Encapsulate};
use ml_kem::{DecapsulationKey, EncapsulationKey, KeyExport, MlKem768, TryKeyInit};
use p256::elliptic_curve::Generate;
use p256::elliptic_curve::sec1::ToSec1Point;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use x25519_dalek::{PublicKey, StaticSecret};

use crate::error::Violation;
use crate::secret::SecretBytes;
use crate::wire::registry::key_exchange as code;

/// First octet of an uncompressed point in SEC1; IKE leaves it out.
const SEC1_UNCOMPRESSED: u8 = 4;

const FORBIDDEN: Violation = Violation::Forbidden("key exchange value");

/// A key exchange method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// X25519 (RFC 8031).
    X25519,
    /// ECDH on NIST P-256 (RFC 5903).
    P256,
    /// ML-KEM-768; its values have another length in each direction (1184 and 1088 octets).
    MlKem768,
}

impl Method {
    /// Transform ID.
    pub const fn code(self) -> u16 {
        match self {
            Self::X25519 => code::CURVE25519,
            Self::P256 => code::SECP256R1,
            Self::MlKem768 => code::ML_KEM_768,
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519 => "X25519",
            Self::P256 => "P-256",
            Self::MlKem768 => "ML-KEM-768",
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
    P256(Box<p256::SecretKey>),
    MlKem768(Box<DecapsulationKey<MlKem768>>),
    /// A responder's half of a key encapsulation: the secret exists already.
    Encapsulated(SecretBytes),
}

impl KeyExchange {
    /// As initiator: a fresh key pair.
    pub fn initiate(method: Method, rng: &mut ChaCha20Rng) -> Self {
        let (public, secret) = match method {
            Method::X25519 => {
                let mut seed = [0; 32];
                rng.fill_bytes(&mut seed);
                let secret = StaticSecret::from(seed);
                (PublicKey::from(&secret).to_bytes().to_vec(), Secret::X25519(secret))
            }
            Method::P256 => {
                let secret = p256::SecretKey::generate_from_rng(rng);
                let point = secret.public_key().to_sec1_point(false);
                //= RFC 5903 §7: x and y, without the octet that SEC1 puts first
                let public = point.as_bytes().strip_prefix(&[SEC1_UNCOMPRESSED]).unwrap_or_default().to_vec();
                (public, Secret::P256(Box::new(secret)))
            }
            Method::MlKem768 => {
                let secret = DecapsulationKey::<MlKem768>::generate_from_rng(rng);
                (secret.encapsulation_key().to_bytes().to_vec(), Secret::MlKem768(Box::new(secret)))
            }
        };
        Self { method, public, secret }
    }

    /// As responder to `peer_public`. Diffie-Hellman methods do nothing expensive yet, that happens in
    /// [`Self::complete`]; a key encapsulation is done here.
    ///
    /// # Errors
    /// [`Violation::Forbidden`] if the public value of a key encapsulation has the wrong length or is none.
    pub fn respond(method: Method, peer_public: &[u8], rng: &mut ChaCha20Rng) -> Result<Self, Violation> {
        if method != Method::MlKem768 {
            return Ok(Self::initiate(method, rng));
        }
        //= draft-ietf-ipsecme-ikev2-mlkem: the length and modulus checks of FIPS 203 §7.2
        let key = EncapsulationKey::<MlKem768>::new_from_slice(peer_public).map_err(|_| FORBIDDEN)?;
        let (ciphertext, secret) = key.encapsulate_with_rng(rng);
        let secret = Secret::Encapsulated(SecretBytes::new(secret.to_vec()));
        Ok(Self { method, public: ciphertext.to_vec(), secret })
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
    /// [`Violation::Forbidden`] if the public value has the wrong length, is none, or leads to a trivial
    /// secret.
    pub fn complete(&self, peer_public: &[u8]) -> Result<SecretBytes, Violation> {
        match &self.secret {
            Secret::X25519(secret) => {
                let octets: [u8; 32] = peer_public.try_into().map_err(|_| FORBIDDEN)?;
                let shared = secret.diffie_hellman(&PublicKey::from(octets));
                //= RFC 8031 §3.2 with RFC 7748 §6.1: an all-zero result is refused.
                if !shared.was_contributory() {
                    return Err(FORBIDDEN);
                }
                Ok(SecretBytes::new(shared.as_bytes().to_vec()))
            }
            Secret::P256(secret) => {
                let sec1 = [&[SEC1_UNCOMPRESSED], peer_public].concat();
                //= RFC 6989 §2.3: the point must be on the curve.
                let public = p256::PublicKey::from_sec1_bytes(&sec1).map_err(|_| FORBIDDEN)?;
                let shared = secret.diffie_hellman(&public);
                Ok(SecretBytes::new(shared.raw_secret_bytes().to_vec()))
            }
            Secret::MlKem768(secret) => {
                let shared = secret.decapsulate_slice(peer_public).map_err(|_| FORBIDDEN)?;
                Ok(SecretBytes::new(shared.to_vec()))
            }
            Secret::Encapsulated(secret) => Ok(secret.duplicate()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    const ALL: [Method; 3] = [Method::X25519, Method::P256, Method::MlKem768];

    #[test]
    fn both_sides_get_the_same_secret() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for method in ALL {
            let a = KeyExchange::initiate(method, &mut rng);
            let b = KeyExchange::respond(method, a.public(), &mut rng).unwrap();
            assert_eq!(a.complete(b.public()).unwrap(), b.complete(a.public()).unwrap());
        }
    }

    #[test]
    fn values_that_are_none_are_refused() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for method in ALL {
            let ours = KeyExchange::initiate(method, &mut rng);
            let theirs = KeyExchange::respond(method, ours.public(), &mut rng).unwrap();
            assert!(ours.complete(&theirs.public()[1..]).is_err());
            assert!(ours.complete(&[theirs.public(), &[0]].concat()).is_err());
            assert!(ours.complete(&[]).is_err());
        }
        assert!(KeyExchange::initiate(Method::X25519, &mut rng).complete(&[0; 32]).is_err());
        assert!(KeyExchange::initiate(Method::P256, &mut rng).complete(&[7; 64]).is_err());
        assert!(KeyExchange::respond(Method::MlKem768, &[0xFF; 1184], &mut rng).is_err());
        assert!(KeyExchange::respond(Method::MlKem768, &[0; 1183], &mut rng).is_err());
    }

    #[test]
    fn values_have_the_lengths_of_the_standards() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for (method, out, back) in
            [(Method::X25519, 32, 32), (Method::P256, 64, 64), (Method::MlKem768, 1184, 1088)]
        {
            let a = KeyExchange::initiate(method, &mut rng);
            let b = KeyExchange::respond(method, a.public(), &mut rng).unwrap();
            assert_eq!((a.public().len(), b.public().len()), (out, back));
        }
    }
}
