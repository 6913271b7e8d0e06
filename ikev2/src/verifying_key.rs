//! Public keys that a peer must prove to own (RFC 5280 §4.1.2.7, RFC 7670, RFC 8410).

use std::fmt;

use aws_lc_rs::signature::UnparsedPublicKey;
use p256::pkcs8::ObjectIdentifier;
use p256::pkcs8::spki::SubjectPublicKeyInfoRef;

use crate::error::Misuse;
use crate::signature::Scheme;

/// DER of SubjectPublicKeyInfo for Ed25519 up to the 32 octets of the key (RFC 8410 §4).
const ED25519_SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Longest SubjectPublicKeyInfo that is looked at; RSA with 8192 bits needs about 1050 octets.
const MAX_SPKI_LEN: usize = 2048;

const ID_ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ID_EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ID_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const CURVE_P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const CURVE_P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// What kind of key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    /// Ed25519.
    Ed25519,
    /// ECDSA on NIST P-256.
    P256,
    /// ECDSA on NIST P-384.
    P384,
    /// RSA.
    Rsa,
}

impl KeyKind {
    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "Ed25519",
            Self::P256 => "ECDSA P-256",
            Self::P384 => "ECDSA P-384",
            Self::Rsa => "RSA",
        }
    }
}

/// A public key that a peer must prove to own. Two are equal when their SubjectPublicKeyInfo is.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    kind: KeyKind,
    spki: Vec<u8>,
    /// What the bit string holds: a point, or an RSAPublicKey.
    public: Vec<u8>,
}

impl VerifyingKey {
    /// An Ed25519 key from the 32 octets of RFC 8032.
    ///
    /// # Errors
    /// [`Misuse::BadKey`] if they are no point of the curve or a weak one.
    pub fn from_bytes(octets: &[u8; 32]) -> Result<Self, Misuse> {
        let key =
            ed25519_dalek::VerifyingKey::from_bytes(octets).map_err(|_| Misuse::BadKey("public key"))?;
        if key.is_weak() {
            return Err(Misuse::BadKey("public key"));
        }
        let spki = [ED25519_SPKI_PREFIX.as_slice(), octets].concat();
        Ok(Self { kind: KeyKind::Ed25519, spki, public: octets.to_vec() })
    }

    /// From DER SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`Misuse::BadKey`] if it is no key of a kind that we verify.
    pub fn from_spki_der(der: &[u8]) -> Result<Self, Misuse> {
        const BAD: Misuse = Misuse::BadKey("public key");
        if der.len() > MAX_SPKI_LEN {
            return Err(BAD);
        }
        let info = SubjectPublicKeyInfoRef::try_from(der).map_err(|_| BAD)?;
        let public = info.subject_public_key.as_bytes().ok_or(BAD)?;
        let curve = info.algorithm.parameters_oid().ok();
        let kind = match (info.algorithm.oid, curve) {
            (ID_ED25519, None) => return Self::from_bytes(public.try_into().map_err(|_| BAD)?),
            (ID_EC, Some(CURVE_P256)) if p256::PublicKey::from_sec1_bytes(public).is_ok() => KeyKind::P256,
            (ID_EC, Some(CURVE_P384)) if p384::PublicKey::from_sec1_bytes(public).is_ok() => KeyKind::P384,
            (ID_RSA, None) if !public.is_empty() => KeyKind::Rsa,
            _ => return Err(BAD),
        };
        Ok(Self { kind, spki: der.to_vec(), public: public.to_vec() })
    }

    /// What kind of key it is.
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// DER SubjectPublicKeyInfo, the form of RFC 7670.
    pub fn to_spki_der(&self) -> Vec<u8> {
        self.spki.clone()
    }

    /// Whether `signature` is one over `octets` by the owner of this key.
    pub(crate) fn verifies(&self, scheme: Scheme, octets: &[u8], signature: &[u8]) -> bool {
        if let (Scheme::Ed25519, KeyKind::Ed25519) = (scheme, self.kind) {
            let key = <[u8; 32]>::try_from(self.public.as_slice());
            let key = key.ok().and_then(|octets| ed25519_dalek::VerifyingKey::from_bytes(&octets).ok());
            let signature = ed25519_dalek::Signature::from_slice(signature);
            return key.zip(signature.ok()).is_some_and(|(key, signature)| {
                // Strict: there is exactly one valid encoding of a signature.
                key.verify_strict(octets, &signature).is_ok()
            });
        }
        let Some(algorithm) = scheme.algorithm(self.kind) else { return false };
        UnparsedPublicKey::new(algorithm, &self.public).verify(octets, signature).is_ok()
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({} ", self.kind.name())?;
        self.public.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signer::{Ed25519Signer, Signer};

    #[test]
    fn public_keys_survive_their_encoding() {
        let key = Ed25519Signer::from_seed(&[7; 32]).public_key();
        assert_eq!(VerifyingKey::from_spki_der(&key.to_spki_der()), Ok(key.clone()));
        assert!(VerifyingKey::from_spki_der(&key.to_spki_der()[1..]).is_err());
        assert!(VerifyingKey::from_spki_der(&[key.to_spki_der(), vec![0]].concat()).is_err());
        assert!(VerifyingKey::from_bytes(&[0; 32]).is_err());
        assert!(VerifyingKey::from_spki_der(&vec![0x30; 5000]).is_err());
    }
}
