//! Sealing and opening of SK and SKF payloads with AEAD ciphers (RFC 5282, RFC 7634, RFC 7383).

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;

use crate::error::Malformed;
use crate::secret::SecretBytes;

/// A cipher of the IKE SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IkeCipher {
    /// AES-GCM, 256-bit key, 16-octet ICV.
    Aes256Gcm16,
    /// AES-GCM, 128-bit key, 16-octet ICV.
    Aes128Gcm16,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

const SALT_LEN: usize = 4;
const IV_LEN: usize = 8;
const ICV_LEN: usize = 16;

/// Octets that sealing adds to the payloads: IV, pad length, ICV.
pub const SEALING_OVERHEAD: usize = IV_LEN + 1 + ICV_LEN;

impl IkeCipher {
    /// Octets of key and salt for one direction.
    pub const fn key_material_len(self) -> usize {
        match self {
            Self::Aes256Gcm16 | Self::ChaCha20Poly1305 => 32 + SALT_LEN,
            Self::Aes128Gcm16 => 16 + SALT_LEN,
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm16 => "AES-256-GCM-16",
            Self::Aes128Gcm16 => "AES-128-GCM-16",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }
    }

    /// Name in Wireshark's decryption table.
    pub(crate) const fn wireshark_name(self) -> &'static str {
        match self {
            Self::Aes256Gcm16 => "AES-GCM-256 with 16 octet ICV [RFC5282]",
            Self::Aes128Gcm16 => "AES-GCM-128 with 16 octet ICV [RFC5282]",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305 with 16 octet ICV [RFC7634]",
        }
    }
}

enum Algorithm {
    Aes256(Box<Aes256Gcm>),
    Aes128(Box<Aes128Gcm>),
    ChaCha20(Box<ChaCha20Poly1305>),
}

/// One direction's cipher with its key.
pub struct PayloadCipher {
    algorithm: Algorithm,
    salt: [u8; SALT_LEN],
    next_iv: u64,
}

impl PayloadCipher {
    /// `key_material` is SK_ei or SK_er: the key followed by the salt.
    pub fn new(cipher: IkeCipher, key_material: &SecretBytes) -> Self {
        let octets = key_material.expose();
        let Some((key, salt)) = octets.split_last_chunk::<SALT_LEN>() else {
            unreachable!("key material is cut by the key schedule to the cipher's length")
        };
        let algorithm = match cipher {
            IkeCipher::Aes256Gcm16 => {
                Aes256Gcm::new_from_slice(key).map(|aead| Algorithm::Aes256(Box::new(aead)))
            }
            IkeCipher::Aes128Gcm16 => {
                Aes128Gcm::new_from_slice(key).map(|aead| Algorithm::Aes128(Box::new(aead)))
            }
            IkeCipher::ChaCha20Poly1305 => {
                ChaCha20Poly1305::new_from_slice(key).map(|aead| Algorithm::ChaCha20(Box::new(aead)))
            }
        };
        let Ok(algorithm) = algorithm else {
            unreachable!("key material is cut by the key schedule to the cipher's length")
        };
        Self { algorithm, salt: *salt, next_iv: 0 }
    }

    /// Appends IV, ciphertext of `plaintext` (a payload chain) with its pad length, and ICV to `out`.
    /// `associated` covers the header up to and including the payload's own header (RFC 5282 §5.1).
    pub fn seal(&mut self, associated: &[u8], plaintext: &[u8], out: &mut Vec<u8>) {
        // A counter never repeats under one key; 2^64 messages are out of reach.
        let iv = self.next_iv.to_be_bytes();
        self.next_iv = self.next_iv.wrapping_add(1);
        out.extend_from_slice(&iv);
        let start = out.len();
        out.extend_from_slice(plaintext);
        // No padding is needed: the pad length octet says zero.
        out.push(0);
        let nonce = self.nonce(iv);
        let Some(buffer) = out.get_mut(start..) else { unreachable!("start is within the vector") };
        let buffer = InOutBuf::from(buffer);
        let tag: Result<[u8; ICV_LEN], _> = match &self.algorithm {
            Algorithm::Aes256(aead) => {
                aead.encrypt_inout_detached(&nonce.into(), associated, buffer).map(Into::into)
            }
            Algorithm::Aes128(aead) => {
                aead.encrypt_inout_detached(&nonce.into(), associated, buffer).map(Into::into)
            }
            Algorithm::ChaCha20(aead) => {
                aead.encrypt_inout_detached(&nonce.into(), associated, buffer).map(Into::into)
            }
        };
        let Ok(tag) = tag else { unreachable!("a UDP datagram is far below the cipher's limit") };
        out.extend_from_slice(&tag);
    }

    /// The payload chain inside `sealed` (IV, ciphertext, ICV), padding removed.
    ///
    /// # Errors
    /// [`Malformed::Integrity`] if it does not authenticate, others if it is too short or badly padded.
    pub fn open(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Malformed> {
        let short = Malformed::Truncated("encrypted payload");
        let (iv, rest) = sealed.split_first_chunk::<IV_LEN>().ok_or(short)?;
        let (ciphertext, tag) = rest.split_last_chunk::<ICV_LEN>().ok_or(short)?;
        let mut plaintext = ciphertext.to_vec();
        let nonce = self.nonce(*iv);
        let buffer = InOutBuf::from(plaintext.as_mut_slice());
        let opened = match &self.algorithm {
            Algorithm::Aes256(aead) => {
                aead.decrypt_inout_detached(&nonce.into(), associated, buffer, &(*tag).into())
            }
            Algorithm::Aes128(aead) => {
                aead.decrypt_inout_detached(&nonce.into(), associated, buffer, &(*tag).into())
            }
            Algorithm::ChaCha20(aead) => {
                aead.decrypt_inout_detached(&nonce.into(), associated, buffer, &(*tag).into())
            }
        };
        opened.map_err(|_| Malformed::Integrity)?;
        let padding = plaintext.pop().ok_or(short)?;
        let length = plaintext.len().checked_sub(usize::from(padding)).ok_or(Malformed::Length("padding"))?;
        plaintext.truncate(length);
        Ok(plaintext)
    }

    fn nonce(&self, iv: [u8; IV_LEN]) -> [u8; SALT_LEN + IV_LEN] {
        let mut nonce = [0; SALT_LEN + IV_LEN];
        let (salt, rest) = nonce.split_at_mut(SALT_LEN);
        salt.copy_from_slice(&self.salt);
        rest.copy_from_slice(&iv);
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(cipher: IkeCipher) -> (PayloadCipher, PayloadCipher) {
        let key = SecretBytes::new((0u8..).take(cipher.key_material_len()).collect());
        (PayloadCipher::new(cipher, &key), PayloadCipher::new(cipher, &key))
    }

    #[test]
    fn what_one_end_seals_the_other_opens() {
        for cipher in [IkeCipher::Aes256Gcm16, IkeCipher::Aes128Gcm16, IkeCipher::ChaCha20Poly1305] {
            let (mut sender, receiver) = pair(cipher);
            for text in [b"".as_slice(), b"a", b"a chain of payloads"] {
                let mut sealed = Vec::new();
                sender.seal(b"header", text, &mut sealed);
                assert_eq!(sealed.len(), text.len() + SEALING_OVERHEAD);
                assert_eq!(receiver.open(b"header", &sealed).unwrap(), text);
            }
        }
    }

    #[test]
    fn any_changed_octet_is_noticed() {
        let (mut sender, receiver) = pair(IkeCipher::Aes256Gcm16);
        let mut sealed = Vec::new();
        sender.seal(b"header", b"text", &mut sealed);
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert_eq!(receiver.open(b"header", &changed), Err(Malformed::Integrity));
        }
        assert_eq!(receiver.open(b"Header", &sealed), Err(Malformed::Integrity));
        assert!(receiver.open(b"header", &sealed[..10]).is_err());
    }
}
