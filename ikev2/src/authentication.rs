//! Keys that authenticate a node and its peers (RFC 7427, RFC 8420, RFC 7670).

use std::fmt;

use ed25519_dalek::Signer as _;
use ed25519_dalek::pkcs8::DecodePrivateKey;
use thiserror::Error;

use crate::error::{Misuse, Violation};
use crate::key_schedule::Prf;
use crate::secret::SecretBytes;

/// DER of SubjectPublicKeyInfo for Ed25519 up to the 32 octets of the key (RFC 8410 §4).
const ED25519_SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The private key could not be used (a token was removed, an agent is gone).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the signing key is not available")]
pub struct SignerUnavailable;

/// Something that signs with the node's Ed25519 key, so that the key may live elsewhere.
pub trait Signer: Send {
    /// Ed25519 signature over `octets` (not over a digest of them).
    ///
    /// # Errors
    /// [`SignerUnavailable`] if the key cannot be used now; the handshake is abandoned.
    fn sign(&self, octets: &[u8]) -> Result<[u8; 64], SignerUnavailable>;

    /// The public half.
    fn public_key(&self) -> VerifyingKey;
}

/// A [`Signer`] whose key is in memory; wiped on drop.
pub struct Ed25519Signer(ed25519_dalek::SigningKey);

impl Ed25519Signer {
    /// From the 32-octet private key (RFC 8032 seed).
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// From a PKCS#8 `PRIVATE KEY` PEM block, as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    /// [`Misuse::BadKey`] if the text is not such a block.
    pub fn from_pkcs8_pem(pem: &str) -> Result<Self, Misuse> {
        let key =
            ed25519_dalek::SigningKey::from_pkcs8_pem(pem).map_err(|_| Misuse::BadKey("private key"))?;
        Ok(Self(key))
    }
}

impl Signer for Ed25519Signer {
    fn sign(&self, octets: &[u8]) -> Result<[u8; 64], SignerUnavailable> {
        Ok(self.0.sign(octets).to_bytes())
    }

    fn public_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }
}

/// An Ed25519 public key that a peer must prove to own.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl VerifyingKey {
    /// From the 32 octets of RFC 8032.
    ///
    /// # Errors
    /// [`Misuse::BadKey`] if they are no point of the curve or a weak one.
    pub fn from_bytes(octets: &[u8; 32]) -> Result<Self, Misuse> {
        let key =
            ed25519_dalek::VerifyingKey::from_bytes(octets).map_err(|_| Misuse::BadKey("public key"))?;
        if key.is_weak() {
            return Err(Misuse::BadKey("public key"));
        }
        Ok(Self(key))
    }

    /// From DER SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`Misuse::BadKey`] if it is not an Ed25519 key.
    pub fn from_spki_der(der: &[u8]) -> Result<Self, Misuse> {
        let octets = der.strip_prefix(&ED25519_SPKI_PREFIX).and_then(|key| key.try_into().ok());
        Self::from_bytes(octets.ok_or(Misuse::BadKey("public key"))?)
    }

    /// The 32 octets of RFC 8032.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// DER SubjectPublicKeyInfo, the form of RFC 7670.
    pub fn to_spki_der(&self) -> Vec<u8> {
        [ED25519_SPKI_PREFIX.as_slice(), &self.to_bytes()].concat()
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyingKey(")?;
        self.to_bytes().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

/// AuthenticationData of method 14 before the signature: length, then AlgorithmIdentifier of Ed25519.
//= RFC 7427 §3 and RFC 8420 §2: 07, then 30 05 06 03 2b 65 70; parameters absent.
const ED25519_AUTH_PREFIX: [u8; 8] = [0x07, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70];

/// What a peer's AUTH payload covers (RFC 7296 §2.15, RFC 9242 §3.3.2).
pub struct SignedOctets<'a> {
    /// The peer's IKE_SA_INIT message as it was on the wire.
    pub first_message: &'a [u8],
    /// The other side's nonce.
    pub nonce: &'a [u8],
    /// The negotiated pseudo-random function.
    pub prf: Prf,
    /// SK_pi or SK_pr of the peer.
    pub sk_p: &'a SecretBytes,
    /// Body of the peer's ID payload.
    pub identification: &'a [u8],
    /// IntAuth, if and only if IKE_INTERMEDIATE exchanges took place.
    pub intermediate: &'a [u8],
}

impl SignedOctets<'_> {
    /// The concatenation.
    pub fn concatenate(&self) -> Vec<u8> {
        let maced_id = self.prf.compute(self.sk_p.expose(), &[self.identification]);
        [self.first_message, self.nonce, maced_id.expose(), self.intermediate].concat()
    }
}

/// AUTH data of method 14 with an Ed25519 signature.
pub(crate) fn digital_signature(signature: &[u8; 64]) -> Vec<u8> {
    [ED25519_AUTH_PREFIX.as_slice(), signature].concat()
}

/// Checks AUTH data of method 14 against any of the pinned keys.
///
/// # Errors
/// [`Violation::Authentication`] if it is not exactly an Ed25519 signature by one of them.
pub fn verify_digital_signature(data: &[u8], octets: &[u8], keys: &[VerifyingKey]) -> Result<(), Violation> {
    signing_key(data, octets, keys).map(drop)
}

/// The one of `keys` whose signature the AUTH data is.
pub(crate) fn signing_key(
    data: &[u8],
    octets: &[u8],
    keys: &[VerifyingKey],
) -> Result<VerifyingKey, Violation> {
    let signature = data.strip_prefix(&ED25519_AUTH_PREFIX).and_then(|signature| signature.try_into().ok());
    let signature: [u8; 64] = signature.ok_or(Violation::Authentication("not an Ed25519 signature"))?;
    let signature = ed25519_dalek::Signature::from_bytes(&signature);
    let signer = keys.iter().find(|key| key.0.verify_strict(octets, &signature).is_ok());
    signer.cloned().ok_or(Violation::Authentication("the signature does not verify"))
}

/// AUTH data of the shared key method: prf(prf(secret, "Key Pad for IKEv2"), octets).
//= RFC 7296 §2.15
pub(crate) fn shared_key_code(prf: Prf, secret: &SecretBytes, octets: &[u8]) -> SecretBytes {
    let padded = prf.compute(secret.expose(), &[b"Key Pad for IKEv2"]);
    prf.compute(padded.expose(), &[octets])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_encoding_verifies() {
        let signer = Ed25519Signer::from_seed(&[7; 32]);
        let keys = [Ed25519Signer::from_seed(&[8; 32]).public_key(), signer.public_key()];
        let data = digital_signature(&signer.sign(b"octets").unwrap());
        assert_eq!(data.len(), 72);
        assert_eq!(verify_digital_signature(&data, b"octets", &keys), Ok(()));
        assert!(verify_digital_signature(&data, b"other", &keys).is_err());
        assert!(verify_digital_signature(&data, b"octets", &keys[..1]).is_err());
        assert!(verify_digital_signature(&data[..71], b"octets", &keys).is_err());
        assert!(verify_digital_signature(&[&data[..], &[0]].concat(), b"octets", &keys).is_err());
        assert!(verify_digital_signature(&[], b"octets", &keys).is_err());
        let mut long = data;
        long[0] = 0xFF;
        assert!(verify_digital_signature(&long, b"octets", &keys).is_err());
    }

    #[test]
    fn public_keys_survive_their_encoding() {
        let key = Ed25519Signer::from_seed(&[7; 32]).public_key();
        assert_eq!(VerifyingKey::from_spki_der(&key.to_spki_der()), Ok(key.clone()));
        assert!(VerifyingKey::from_spki_der(&key.to_spki_der()[1..]).is_err());
        assert!(VerifyingKey::from_bytes(&[0; 32]).is_err());
    }
}
