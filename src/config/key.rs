//! Ed25519 keys in PEM: PKCS#8 for private keys, SubjectPublicKeyInfo for public ones (RFC 8410).

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ed25519_dalek::ed25519::pkcs8::KeypairBytes;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use ed25519_dalek::{SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// What is wrong with a key or its file.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file could not be read.
    #[error("cannot read {path}: {}", reason(.source))]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write {path}: {}", reason(.source))]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// No Ed25519 private key.
    #[error("no Ed25519 private key in PEM (PKCS#8) here: {0}")]
    Private(String),
    /// No Ed25519 public key.
    #[error("no Ed25519 public key in PEM (SubjectPublicKeyInfo) here: {0}")]
    Public(String),
    /// The system has no randomness for us.
    #[error("the system gives no random bytes: {0}")]
    Randomness(String),
}

/// What the system said, without the number that Rust appends, in lower case.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Reads the private key in `path`.
///
/// # Errors
/// [`KeyError::Read`] or [`KeyError::Private`].
pub fn load(path: &Path) -> Result<SigningKey, KeyError> {
    let read =
        std::fs::read(path).map_err(|source| KeyError::Read { path: path.display().to_string(), source })?;
    parse_private(&Zeroizing::new(read))
}

/// Reads the secret of a key that signs segment lists: all of its file but line ends at the end, as `ip sr hmac set`
/// takes it when typed.
///
/// # Errors
/// [`KeyError::Read`], or [`KeyError::Private`] if it is empty or longer than the 64 bytes that Linux takes.
pub fn load_hmac(id: u32, path: &Path) -> Result<srv6::hmac::HmacKey, KeyError> {
    let failed = |source| KeyError::Read { path: path.display().to_string(), source };
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(KeyError::Private(format!(
            "everybody can read or change {}: `chmod 600` it",
            path.display()
        )));
    }
    let failed = |source| KeyError::Read { path: path.display().to_string(), source };
    let read = Zeroizing::new(std::fs::read(path).map_err(failed)?);
    parse_hmac(id, &read).map_err(|what| KeyError::Private(format!("{}: {what}", path.display())))
}

fn parse_hmac(id: u32, bytes: &[u8]) -> Result<srv6::hmac::HmacKey, &'static str> {
    const LONGEST: usize = 64;
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    let secret = bytes.get(..end).unwrap_or_default();
    if secret.len() > LONGEST {
        return Err("the secret is longer than 64 bytes");
    }
    srv6::hmac::HmacKey::new(id, secret).map_err(|_| "there is no secret in it")
}

/// Reads a private key from the bytes of its file.
///
/// # Errors
/// [`KeyError::Private`].
pub fn parse_private(bytes: &[u8]) -> Result<SigningKey, KeyError> {
    let text = std::str::from_utf8(bytes).map_err(|_| KeyError::Private("not text".into()))?;
    if text.contains("BEGIN PUBLIC KEY") {
        return Err(KeyError::Private("this is a public key".into()));
    }
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
        return Err(KeyError::Private("this key is encrypted".into()));
    }
    let begin = text
        .find("-----BEGIN PRIVATE KEY-----")
        .ok_or_else(|| KeyError::Private("no `BEGIN PRIVATE KEY`".into()))?;
    SigningKey::from_pkcs8_pem(text.get(begin..).unwrap_or_default().trim_end())
        .map_err(|error| KeyError::Private(error.to_string()))
}

/// Reads all public keys in `text`, one PEM block after the other. White space inside the blocks is free, because
/// YAML folds lines.
///
/// # Errors
/// [`KeyError::Public`] if there is none, or one that cannot be read.
pub fn parse_public(text: &str) -> Result<Vec<VerifyingKey>, KeyError> {
    const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
    const END: &str = "-----END PUBLIC KEY-----";
    if text.contains("PRIVATE KEY") {
        return Err(KeyError::Public("this is a private key; keep it out of the registry".into()));
    }
    let mut keys = Vec::new();
    for block in text.split(BEGIN).skip(1) {
        let (body, _) =
            block.split_once(END).ok_or_else(|| KeyError::Public("no `END PUBLIC KEY`".into()))?;
        let body: String = body.split_whitespace().collect();
        let key = VerifyingKey::from_public_key_pem(&format!("{BEGIN}\n{body}\n{END}"))
            .map_err(|error| KeyError::Public(error.to_string()))?;
        keys.push(key);
    }
    if keys.is_empty() { Err(KeyError::Public("no `BEGIN PUBLIC KEY`".into())) } else { Ok(keys) }
}

/// A new private key from the system's randomness.
///
/// # Errors
/// [`KeyError::Randomness`].
pub fn generate() -> Result<SigningKey, KeyError> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut()).map_err(|error| KeyError::Randomness(error.to_string()))?;
    Ok(SigningKey::from_bytes(&seed))
}

/// The private key as PKCS#8 in its first version, which has no public key in it: OpenSSL before 3.5 and charon
/// do not read the second.
///
/// # Errors
/// [`KeyError::Private`] if it cannot be encoded.
pub fn private_pem(key: &SigningKey) -> Result<Zeroizing<String>, KeyError> {
    let bytes = KeypairBytes { secret_key: key.to_bytes(), public_key: None };
    bytes.to_pkcs8_pem(LineEnding::LF).map_err(|error| KeyError::Private(error.to_string()))
}

/// The public key as the PEM block that belongs into the registry; ends with a newline.
///
/// # Errors
/// [`KeyError::Public`] if it cannot be encoded.
pub fn public_pem(key: &VerifyingKey) -> Result<String, KeyError> {
    key.to_public_key_pem(LineEnding::LF).map_err(|error| KeyError::Public(error.to_string()))
}

/// Writes a private key to a file that did not exist. Nobody but the owner can read it, not even for a moment, and
/// it is on disk when this returns.
///
/// # Errors
/// [`KeyError::Write`], also when `path` exists; [`KeyError::Private`].
pub fn write_new(path: &Path, key: &SigningKey) -> Result<(), KeyError> {
    let pem = private_pem(key)?;
    let write = || -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let written = file.write_all(pem.as_bytes()).and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a key is worse than none, and would be in the way of the next try.
            let _ = std::fs::remove_file(path);
        }
        written
    };
    write().map_err(|source| KeyError::Write { path: path.display().to_string(), source })
}

/// `SHA256:` and the unpadded base64 of the hash of the key's SubjectPublicKeyInfo.
#[must_use]
pub fn fingerprint(key: &VerifyingKey) -> String {
    // RFC 8410 §4: an Ed25519 SubjectPublicKeyInfo is this prefix and the 32 bytes of the key.
    const PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    let hash = Sha256::new().chain_update(PREFIX).chain_update(key.as_bytes()).finalize();
    format!("SHA256:{}", base64(&hash))
}

/// Base64 without padding (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .enumerate()
            .fold(0_u32, |group, (index, byte)| group | u32::from(*byte) << (16 - 8 * index));
        for digit in 0..=chunk.len() {
            let value = group >> (18 - 6 * digit) & 0x3f;
            text.push(char::from(ALPHABET.get(value as usize).copied().unwrap_or(b'A')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_ends_where_its_line_ends() {
        let sid: std::net::Ipv6Addr = "fd5d:ac:0:1::e".parse().unwrap();
        let signature = |key: &srv6::hmac::HmacKey| {
            let mut header = srv6::wire::SegmentRoutingHeader::new(4, 0, &[sid]).unwrap();
            key.sign(sid, &mut header);
            header.hmac.unwrap().digest
        };
        let plain = srv6::hmac::HmacKey::new(7, b"s3cret ").unwrap();
        for text in ["s3cret ", "s3cret \n", "s3cret \r\n"] {
            assert_eq!(signature(&parse_hmac(7, text.as_bytes()).unwrap()), signature(&plain), "{text:?}");
        }
        assert!(parse_hmac(7, b"\n").is_err() && parse_hmac(0, b"s3cret").is_err());
        assert!(parse_hmac(7, &[b'x'; 64]).is_ok() && parse_hmac(7, &[b'x'; 65]).is_err());
    }

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), text);
        }
    }

    #[test]
    fn the_prefix_of_the_fingerprint_is_what_the_encoder_writes() {
        let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
        let der = key.to_public_key_der().unwrap();
        assert_eq!(fingerprint(&key), format!("SHA256:{}", base64(&Sha256::digest(der.as_bytes()))));
    }

    #[test]
    fn keys_survive_pem() {
        let key = SigningKey::from_bytes(&[7; 32]);
        assert_eq!(parse_private(private_pem(&key).unwrap().as_bytes()).unwrap(), key);
        let pem = public_pem(&key.verifying_key()).unwrap();
        let folded = pem.replace('\n', " ");
        for text in [pem.clone(), folded.clone()] {
            assert_eq!(parse_public(&text).unwrap(), [key.verifying_key()]);
        }
        assert_eq!(parse_public(&format!("{pem}{folded}")).unwrap().len(), 2);
    }

    #[test]
    fn the_other_kind_of_key_is_named() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let public = public_pem(&key.verifying_key()).unwrap();
        assert!(parse_private(public.as_bytes()).unwrap_err().to_string().contains("public key"));
        let error = parse_public(&private_pem(&key).unwrap()).unwrap_err();
        assert!(error.to_string().contains("keep it out of the registry"));
        assert!(parse_public("<PEM encoded public key>").is_err());
    }

    #[test]
    fn private_keys_are_of_the_first_version() {
        let pem = private_pem(&SigningKey::from_bytes(&[7; 32])).unwrap();
        // 48 bytes of DER: version, algorithm and seed, nothing else. Its base64 begins with MC4CAQAw (version 0).
        assert!(pem.contains("\nMC4CAQAw"), "{}", pem.lines().count());
    }
}
