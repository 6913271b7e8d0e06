//! Keys that authenticate a node and its peers (RFC 7427, RFC 8420, RFC 7670).

use std::fmt;

use ed25519_dalek::Signer as _;
use ed25519_dalek::pkcs8::DecodePrivateKey;
use thiserror::Error;

use crate::error::Misuse;

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
