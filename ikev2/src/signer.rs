//! Who signs for this node: keys in memory, or elsewhere (RFC 7427, RFC 8420).

use ed25519_dalek::Signer as _;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePublicKey};
use p256::ecdsa::signature::hazmat::PrehashSigner;
use sha2::{Digest, Sha256, Sha384, Sha512};
use thiserror::Error;

use crate::error::Misuse;
use crate::signature::SignatureHash;
use crate::verifying_key::VerifyingKey;

/// The private key could not be used (a token was removed, an agent is gone).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the signing key is not available")]
pub struct SignerUnavailable;

/// Something that signs with a private key of this node, so that the key may live elsewhere.
pub trait Signer: Send {
    /// The signature over `octets`. Ed25519 takes the octets themselves (`hash` is
    /// [`SignatureHash::Identity`]); ECDSA signs their hash, and the result is DER (RFC 5480); RSA uses
    /// RSASSA-PSS with a salt as long as the hash (RFC 7427 §A.4).
    ///
    /// # Errors
    /// [`SignerUnavailable`] if the key cannot be used now, or not with this hash; the handshake is abandoned.
    fn sign(&self, octets: &[u8], hash: SignatureHash) -> Result<Vec<u8>, SignerUnavailable>;

    /// The public half. Its kind decides how signatures are made.
    fn public_key(&self) -> VerifyingKey;
}

/// A [`Signer`] whose Ed25519 key is in memory; wiped on drop.
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
    fn sign(&self, octets: &[u8], hash: SignatureHash) -> Result<Vec<u8>, SignerUnavailable> {
        if hash != SignatureHash::Identity {
            return Err(SignerUnavailable);
        }
        Ok(self.0.sign(octets).to_bytes().to_vec())
    }

    fn public_key(&self) -> VerifyingKey {
        let Ok(key) = VerifyingKey::from_bytes(self.0.verifying_key().as_bytes()) else {
            unreachable!("a public key that was computed is a point of the curve and no weak one")
        };
        key
    }
}

/// A [`Signer`] whose ECDSA key, on P-256 or P-384, is in memory; wiped on drop. Signatures are deterministic
/// (RFC 6979).
pub struct EcdsaSigner(EcdsaKey);

enum EcdsaKey {
    P256(Box<p256::ecdsa::SigningKey>),
    P384(Box<p384::ecdsa::SigningKey>),
}

impl EcdsaSigner {
    /// From PKCS#8 DER, as in the `PRIVATE KEY` PEM blocks of `openssl genpkey -algorithm ec`.
    ///
    /// # Errors
    /// [`Misuse::BadKey`] if it is no key on one of the two curves.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, Misuse> {
        let p256 = || p256::ecdsa::SigningKey::from_pkcs8_der(der).map(|key| EcdsaKey::P256(Box::new(key)));
        let p384 = || p384::ecdsa::SigningKey::from_pkcs8_der(der).map(|key| EcdsaKey::P384(Box::new(key)));
        p256().or_else(|_| p384()).map(Self).map_err(|_| Misuse::BadKey("private key"))
    }
}

/// A signer for an Ed25519 or ECDSA key in PKCS#8 DER, whichever it is.
///
/// # Errors
/// [`Misuse::BadKey`] if it is neither.
pub fn signer_from_pkcs8_der(der: &[u8]) -> Result<Box<dyn Signer>, Misuse> {
    match ed25519_dalek::SigningKey::from_pkcs8_der(der) {
        Ok(key) => Ok(Box::new(Ed25519Signer(key))),
        Err(_) => Ok(Box::new(EcdsaSigner::from_pkcs8_der(der)?)),
    }
}

impl Signer for EcdsaSigner {
    fn sign(&self, octets: &[u8], hash: SignatureHash) -> Result<Vec<u8>, SignerUnavailable> {
        let digest = match hash {
            SignatureHash::Sha256 => Sha256::digest(octets).to_vec(),
            SignatureHash::Sha384 => Sha384::digest(octets).to_vec(),
            SignatureHash::Sha512 => Sha512::digest(octets).to_vec(),
            SignatureHash::Identity => return Err(SignerUnavailable),
        };
        let signature = match &self.0 {
            EcdsaKey::P256(key) => {
                let signature: Result<p256::ecdsa::Signature, _> = key.sign_prehash(&digest);
                signature.map(|signature| signature.to_der().as_bytes().to_vec())
            }
            EcdsaKey::P384(key) => {
                let signature: Result<p384::ecdsa::Signature, _> = key.sign_prehash(&digest);
                signature.map(|signature| signature.to_der().as_bytes().to_vec())
            }
        };
        signature.map_err(|_| SignerUnavailable)
    }

    fn public_key(&self) -> VerifyingKey {
        let der = match &self.0 {
            EcdsaKey::P256(key) => key.verifying_key().to_public_key_der(),
            EcdsaKey::P384(key) => key.verifying_key().to_public_key_der(),
        };
        let Some(key) = der.ok().and_then(|der| VerifyingKey::from_spki_der(der.as_bytes()).ok()) else {
            unreachable!("a public key that was computed can be encoded and read again")
        };
        key
    }
}
