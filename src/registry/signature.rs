//! The signature of a registry that is served by somebody who need not be trusted.
//!
//! Beside `registry.yaml` lies `registry.yaml.sig`: a JSON object with a version, which grows, and an Ed25519 signature
//! in hexadecimal. Signed are the words `viamesh registry`, a zero octet, the version in 8 octets, big end first, and
//! the SHA-256 of the file.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What stands in the `.sig` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureFile {
    /// Grows with every change.
    pub version: u64,
    /// 64 octets in hexadecimal.
    pub signature: String,
}

fn signed_octets(version: u64, text: &[u8]) -> Vec<u8> {
    let mut octets = b"viamesh registry\0".to_vec();
    octets.extend(version.to_be_bytes());
    octets.extend(Sha256::digest(text));
    octets
}

/// Signs a registry.
#[must_use]
pub fn sign(key: &SigningKey, version: u64, text: &[u8]) -> SignatureFile {
    let signature = key.sign(&signed_octets(version, text)).to_bytes();
    let signature = signature.iter().map(|octet| format!("{octet:02x}")).collect();
    SignatureFile { version, signature }
}

/// Checks a registry against its signature file. Returns its version.
///
/// # Errors
/// In words, if it is not signed by this key.
pub fn verify(key: &VerifyingKey, text: &[u8], signature_file: &[u8]) -> Result<u64, String> {
    let file: SignatureFile =
        serde_json::from_slice(signature_file).map_err(|error| format!("not a signature file: {error}"))?;
    let signature =
        octets(&file.signature).ok_or("not a signature file: 128 hexadecimal digits are expected")?;
    let signature = Signature::from_bytes(&signature);
    let verified = key.verify_strict(&signed_octets(file.version, text), &signature);
    verified.map(|()| file.version).map_err(|_| "the signature is not by `registry_key`".to_owned())
}

fn octets(hexadecimal: &str) -> Option<[u8; 64]> {
    if hexadecimal.len() != 128 || !hexadecimal.is_ascii() {
        return None;
    }
    let mut octets = [0; 64];
    for (octet, pair) in octets.iter_mut().zip(hexadecimal.as_bytes().chunks(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signed_text_in_the_signed_version_verifies() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let file = sign(&key, 3, b"text");
        let json = |file: &SignatureFile| serde_json::to_vec(file).unwrap();
        assert_eq!(verify(&key.verifying_key(), b"text", &json(&file)), Ok(3));
        assert!(verify(&key.verifying_key(), b"other", &json(&file)).is_err());
        let later = SignatureFile { version: 4, ..file.clone() };
        assert!(verify(&key.verifying_key(), b"text", &json(&later)).is_err());
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key();
        assert!(verify(&other, b"text", &json(&file)).is_err());
        for hostile in
            ["", "{}", "{\"version\":1,\"signature\":\"zz\"}", "{\"version\":-1,\"signature\":\"\"}"]
        {
            assert!(verify(&key.verifying_key(), b"text", hostile.as_bytes()).is_err());
        }
        let wide = format!("{{\"version\":1,\"signature\":\"{}\"}}", "é".repeat(64));
        assert!(verify(&key.verifying_key(), b"text", wide.as_bytes()).is_err());
    }
}
