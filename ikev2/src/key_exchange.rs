//! Key exchange methods behind one interface: X25519 (RFC 8031), P-256 and P-384 (RFC 5903), and ML-KEM as
//! additional key exchange (RFC 9370, draft-ietf-ipsecme-ikev2-mlkem).

use ml_kem::kem::{Decapsulate, Encapsulate};
use ml_kem::{DecapsulationKey, EncapsulationKey, KeyExport, MlKem512, MlKem768, MlKem1024, TryKeyInit};
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
    /// ECDH on NIST P-384 (RFC 5903).
    P384,
    /// ML-KEM-512; like its greater siblings, its values have another length in each direction.
    MlKem512,
    /// ML-KEM-768: 1184 octets out, 1088 back.
    MlKem768,
    /// ML-KEM-1024.
    MlKem1024,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::X25519, Self::P256, Self::P384, Self::MlKem512, Self::MlKem768, Self::MlKem1024];

    /// Transform ID.
    pub const fn code(self) -> u16 {
        match self {
            Self::X25519 => code::CURVE25519,
            Self::P256 => code::SECP256R1,
            Self::P384 => code::SECP384R1,
            Self::MlKem512 => code::ML_KEM_512,
            Self::MlKem768 => code::ML_KEM_768,
            Self::MlKem1024 => code::ML_KEM_1024,
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519 => "X25519",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::MlKem512 => "ML-KEM-512",
            Self::MlKem768 => "ML-KEM-768",
            Self::MlKem1024 => "ML-KEM-1024",
        }
    }

    /// Whether it is a key encapsulation: the responder's half depends on the initiator's value.
    pub const fn is_encapsulation(self) -> bool {
        matches!(self, Self::MlKem512 | Self::MlKem768 | Self::MlKem1024)
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
    P384(Box<p384::SecretKey>),
    MlKem512(Box<DecapsulationKey<MlKem512>>),
    MlKem768(Box<DecapsulationKey<MlKem768>>),
    MlKem1024(Box<DecapsulationKey<MlKem1024>>),
    /// A responder's half of a key encapsulation: the secret exists already.
    Encapsulated(SecretBytes),
}

/// A fresh key pair of a curve in SEC1 terms: public value, secret.
macro_rules! curve_pair {
    ($curve:ident, $variant:ident, $rng:expr) => {{
        let secret = $curve::SecretKey::generate_from_rng($rng);
        let point = secret.public_key().to_sec1_point(false);
        //= RFC 5903 §7: x and y, without the octet that SEC1 puts first
        let public = point.as_bytes().strip_prefix(&[SEC1_UNCOMPRESSED]).unwrap_or_default().to_vec();
        (public, Secret::$variant(Box::new(secret)))
    }};
}

/// The shared secret of a curve: the x coordinate of the common point.
macro_rules! curve_secret {
    ($curve:ident, $secret:expr, $peer:expr) => {{
        let sec1 = [&[SEC1_UNCOMPRESSED], $peer].concat();
        //= RFC 6989 §2.3: the point must be on the curve.
        let public = $curve::PublicKey::from_sec1_bytes(&sec1).map_err(|_| FORBIDDEN)?;
        Ok(SecretBytes::new($secret.diffie_hellman(&public).raw_secret_bytes().to_vec()))
    }};
}

/// A fresh key pair of a key encapsulation.
macro_rules! kem_pair {
    ($variant:ident, $rng:expr) => {{
        let secret = DecapsulationKey::<$variant>::generate_from_rng($rng);
        (secret.encapsulation_key().to_bytes().to_vec(), Secret::$variant(Box::new(secret)))
    }};
}

/// A ciphertext for the owner of a public value, and the secret in it.
macro_rules! encapsulate {
    ($variant:ident, $peer:expr, $rng:expr) => {{
        //= draft-ietf-ipsecme-ikev2-mlkem: the length and modulus checks of FIPS 203 §7.2
        let key = EncapsulationKey::<$variant>::new_from_slice($peer).map_err(|_| FORBIDDEN)?;
        let (ciphertext, secret) = key.encapsulate_with_rng($rng);
        (ciphertext.to_vec(), SecretBytes::new(secret.to_vec()))
    }};
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
            Method::P256 => curve_pair!(p256, P256, rng),
            Method::P384 => curve_pair!(p384, P384, rng),
            Method::MlKem512 => kem_pair!(MlKem512, rng),
            Method::MlKem768 => kem_pair!(MlKem768, rng),
            Method::MlKem1024 => kem_pair!(MlKem1024, rng),
        };
        Self { method, public, secret }
    }

    /// As responder to `peer_public`. Diffie-Hellman methods do nothing expensive yet, that happens in
    /// [`Self::complete`]; a key encapsulation is done here.
    ///
    /// # Errors
    /// [`Violation::Forbidden`] if the public value of a key encapsulation has the wrong length or is none.
    pub fn respond(method: Method, peer_public: &[u8], rng: &mut ChaCha20Rng) -> Result<Self, Violation> {
        let (public, secret) = match method {
            Method::X25519 | Method::P256 | Method::P384 => return Ok(Self::initiate(method, rng)),
            Method::MlKem512 => encapsulate!(MlKem512, peer_public, rng),
            Method::MlKem768 => encapsulate!(MlKem768, peer_public, rng),
            Method::MlKem1024 => encapsulate!(MlKem1024, peer_public, rng),
        };
        Ok(Self { method, public, secret: Secret::Encapsulated(secret) })
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
            Secret::P256(secret) => curve_secret!(p256, secret, peer_public),
            Secret::P384(secret) => curve_secret!(p384, secret, peer_public),
            Secret::MlKem512(secret) => decapsulated(secret.decapsulate_slice(peer_public)),
            Secret::MlKem768(secret) => decapsulated(secret.decapsulate_slice(peer_public)),
            Secret::MlKem1024(secret) => decapsulated(secret.decapsulate_slice(peer_public)),
            Secret::Encapsulated(secret) => Ok(secret.duplicate()),
        }
    }
}

fn decapsulated<E>(shared: Result<ml_kem::SharedKey, E>) -> Result<SecretBytes, Violation> {
    shared.map(|shared| SecretBytes::new(shared.to_vec())).map_err(|_| FORBIDDEN)
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn both_sides_get_the_same_secret() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for method in Method::ALL {
            let a = KeyExchange::initiate(method, &mut rng);
            let b = KeyExchange::respond(method, a.public(), &mut rng).unwrap();
            assert_eq!(a.complete(b.public()).unwrap(), b.complete(a.public()).unwrap());
        }
    }

    #[test]
    fn values_that_are_none_are_refused() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for method in Method::ALL {
            let ours = KeyExchange::initiate(method, &mut rng);
            let theirs = KeyExchange::respond(method, ours.public(), &mut rng).unwrap();
            assert!(ours.complete(&theirs.public()[1..]).is_err());
            assert!(ours.complete(&[theirs.public(), &[0]].concat()).is_err());
            assert!(ours.complete(&[]).is_err());
            if method.is_encapsulation() {
                let length = ours.public().len();
                assert!(KeyExchange::respond(method, &vec![0xFF; length], &mut rng).is_err());
                assert!(KeyExchange::respond(method, &ours.public()[1..], &mut rng).is_err());
            }
        }
        assert!(KeyExchange::initiate(Method::X25519, &mut rng).complete(&[0; 32]).is_err());
        assert!(KeyExchange::initiate(Method::P256, &mut rng).complete(&[7; 64]).is_err());
        assert!(KeyExchange::initiate(Method::P384, &mut rng).complete(&[7; 96]).is_err());
    }

    #[test]
    fn values_have_the_lengths_of_the_standards() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        for (method, out, back, secret) in [
            (Method::X25519, 32, 32, 32),
            (Method::P256, 64, 64, 32),
            (Method::P384, 96, 96, 48),
            (Method::MlKem512, 800, 768, 32),
            (Method::MlKem768, 1184, 1088, 32),
            (Method::MlKem1024, 1568, 1568, 32),
        ] {
            let a = KeyExchange::initiate(method, &mut rng);
            let b = KeyExchange::respond(method, a.public(), &mut rng).unwrap();
            assert_eq!((a.public().len(), b.public().len()), (out, back));
            assert_eq!(a.complete(b.public()).unwrap().len(), secret);
        }
    }

    /// RFC 5903 §8.1 and §8.2: the published secrets, public values and results.
    #[test]
    fn curves_match_the_published_vectors() {
        let hex = |text: &str| -> Vec<u8> {
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
        };
        let secret = hex(
            "099F3C7034D4A2C699884D73A375A67F7624EF7C6B3C0F160647B67414DCE655E35B538041E649EE3FAEF896783AB194",
        );
        let secret = Secret::P384(Box::new(p384::SecretKey::from_slice(&secret).unwrap()));
        let ours = KeyExchange { method: Method::P384, public: Vec::new(), secret };
        let theirs = hex(
            "E558DBEF53EECDE3D3FCCFC1AEA08A89A987475D12FD950D83CFA41732BC509D0D1AC43A0336DEF96FDA41D0774A3571\
             DCFBEC7AACF3196472169E838430367F66EEBE3C6E70C416DD5F0C68759DD1FFF83FA40142209DFF5EAAD96DB9E6386C",
        );
        let expected = hex(
            "11187331C279962D93D604243FD592CB9D0A926F422E47187521287E7156C5C4D603135569B9E9D09CF5D4A270F59746",
        );
        assert_eq!(ours.complete(&theirs).unwrap().expose(), expected);
    }
}
