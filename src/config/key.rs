//! Ed25519 keys in PEM files: PKCS#8 for private keys, SubjectPublicKeyInfo for public ones (RFC 8410).

use std::path::Path;

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::DecodePrivateKey;

/// Why a private key could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds no Ed25519 private key.
    #[error("{path} holds no Ed25519 private key in PEM (PKCS#8): {reason}")]
    Malformed {
        /// The file.
        path: String,
        /// What the decoder said.
        reason: String,
    },
}

/// Reads the private key in `path`.
///
/// # Errors
/// [`KeyError`] if the file cannot be read or holds something else.
pub fn load(path: &Path) -> Result<SigningKey, KeyError> {
    let shown = path.display().to_string();
    let text = zeroize::Zeroizing::new(
        std::fs::read_to_string(path).map_err(|source| KeyError::Read { path: shown.clone(), source })?,
    );
    SigningKey::from_pkcs8_pem(&text)
        .map_err(|error| KeyError::Malformed { path: shown, reason: error.to_string() })
}
