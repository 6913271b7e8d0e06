//! Sealing and opening of SK and SKF payloads (RFC 7296 §3.14, RFC 5282, RFC 7634, RFC 7383).

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;

pub use crate::cbc_hmac::Integrity;
use crate::cbc_hmac::{Aes, BLOCK_LEN, CbcHmac};
use crate::error::Malformed;
use crate::secret::SecretBytes;

/// A cipher of the IKE SA, with the hash that those without authentication of their own need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IkeCipher {
    /// AES-GCM, 256-bit key, 16-octet ICV.
    Aes256Gcm16,
    /// AES-GCM, 128-bit key, 16-octet ICV.
    Aes128Gcm16,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// AES-CBC, 256-bit key, with a hash.
    Aes256Cbc(Integrity),
    /// AES-CBC, 128-bit key, with a hash.
    Aes128Cbc(Integrity),
}

const SALT_LEN: usize = 4;
const IV_LEN: usize = 8;
const ICV_LEN: usize = 16;

impl IkeCipher {
    /// All of them, the best first.
    pub const ALL: [Self; 9] = [
        Self::Aes256Gcm16,
        Self::Aes128Gcm16,
        Self::ChaCha20Poly1305,
        Self::Aes256Cbc(Integrity::HmacSha256),
        Self::Aes256Cbc(Integrity::HmacSha384),
        Self::Aes256Cbc(Integrity::HmacSha512),
        Self::Aes128Cbc(Integrity::HmacSha256),
        Self::Aes128Cbc(Integrity::HmacSha384),
        Self::Aes128Cbc(Integrity::HmacSha512),
    ];

    /// Octets of encryption key, and salt if there is one, for one direction.
    pub const fn key_material_len(self) -> usize {
        match self {
            Self::Aes256Gcm16 | Self::ChaCha20Poly1305 => 32 + SALT_LEN,
            Self::Aes128Gcm16 => 16 + SALT_LEN,
            Self::Aes256Cbc(_) => 32,
            Self::Aes128Cbc(_) => 16,
        }
    }

    /// Octets of integrity key for one direction.
    pub const fn integrity_key_len(self) -> usize {
        match self.integrity() {
            Some(integrity) => integrity.key_len(),
            None => 0,
        }
    }

    /// The hash beside the cipher; `None` for AEAD ciphers.
    pub const fn integrity(self) -> Option<Integrity> {
        match self {
            Self::Aes256Cbc(integrity) | Self::Aes128Cbc(integrity) => Some(integrity),
            Self::Aes256Gcm16 | Self::Aes128Gcm16 | Self::ChaCha20Poly1305 => None,
        }
    }

    /// Octets that `content` octets of payloads have when they are sealed.
    pub const fn sealed_len(self, content: usize) -> usize {
        match self.integrity() {
            Some(integrity) => CbcHmac::sealed_len(integrity, content),
            None => IV_LEN + content + 1 + ICV_LEN,
        }
    }

    /// Octets of payloads that fit into `room` when they are sealed.
    pub const fn content_within(self, room: usize) -> usize {
        match self.integrity() {
            Some(integrity) => {
                let blocks = room.saturating_sub(BLOCK_LEN + integrity.icv_len()) / BLOCK_LEN;
                (blocks * BLOCK_LEN).saturating_sub(1)
            }
            None => room.saturating_sub(IV_LEN + 1 + ICV_LEN),
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm16 => "AES-256-GCM-16",
            Self::Aes128Gcm16 => "AES-128-GCM-16",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            Self::Aes256Cbc(Integrity::HmacSha256) => "AES-256-CBC + HMAC-SHA2-256-128",
            Self::Aes256Cbc(Integrity::HmacSha384) => "AES-256-CBC + HMAC-SHA2-384-192",
            Self::Aes256Cbc(Integrity::HmacSha512) => "AES-256-CBC + HMAC-SHA2-512-256",
            Self::Aes128Cbc(Integrity::HmacSha256) => "AES-128-CBC + HMAC-SHA2-256-128",
            Self::Aes128Cbc(Integrity::HmacSha384) => "AES-128-CBC + HMAC-SHA2-384-192",
            Self::Aes128Cbc(Integrity::HmacSha512) => "AES-128-CBC + HMAC-SHA2-512-256",
        }
    }

    /// Names of cipher and hash in Wireshark's decryption table.
    pub(crate) const fn wireshark_names(self) -> (&'static str, &'static str) {
        let cipher = match self {
            Self::Aes256Gcm16 => "AES-GCM-256 with 16 octet ICV [RFC5282]",
            Self::Aes128Gcm16 => "AES-GCM-128 with 16 octet ICV [RFC5282]",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305 with 16 octet ICV [RFC7634]",
            Self::Aes256Cbc(_) => "AES-CBC-256 [RFC3602]",
            Self::Aes128Cbc(_) => "AES-CBC-128 [RFC3602]",
        };
        let hash = match self.integrity() {
            None => "NONE [RFC4306]",
            Some(Integrity::HmacSha256) => "HMAC_SHA2_256_128 [RFC4868]",
            Some(Integrity::HmacSha384) => "HMAC_SHA2_384_192 [RFC4868]",
            Some(Integrity::HmacSha512) => "HMAC_SHA2_512_256 [RFC4868]",
        };
        (cipher, hash)
    }
}

enum Algorithm {
    Aes256(Box<Aes256Gcm>, [u8; SALT_LEN]),
    Aes128(Box<Aes128Gcm>, [u8; SALT_LEN]),
    ChaCha20(Box<ChaCha20Poly1305>, [u8; SALT_LEN]),
    CbcHmac(Box<CbcHmac>),
}

/// One direction's cipher with its key.
pub struct PayloadCipher {
    cipher: IkeCipher,
    algorithm: Algorithm,
    next_iv: u64,
}

impl PayloadCipher {
    /// `encryption` is SK_ei or SK_er: the key, followed by the salt of an AEAD cipher. `integrity` is SK_ai or
    /// SK_ar, which AEAD ciphers do not use.
    pub fn new(cipher: IkeCipher, encryption: &SecretBytes, integrity: &SecretBytes) -> Self {
        let Some(algorithm) = algorithm(cipher, encryption.expose(), integrity) else {
            unreachable!("key material is cut by the key schedule to the cipher's length")
        };
        Self { cipher, algorithm, next_iv: 0 }
    }

    /// Which cipher it is.
    pub const fn cipher(&self) -> IkeCipher {
        self.cipher
    }

    /// Appends IV, ciphertext of `plaintext` (a payload chain) with its pad length, and ICV to `out`.
    /// `associated` covers the header up to and including the payload's own header (RFC 5282 §5.1).
    pub fn seal(&mut self, associated: &[u8], plaintext: &[u8], out: &mut Vec<u8>) {
        // A counter never repeats under one key; 2^64 messages are out of reach.
        let number = self.next_iv;
        self.next_iv = self.next_iv.wrapping_add(1);
        if let Algorithm::CbcHmac(sealer) = &self.algorithm {
            return sealer.seal(number, associated, plaintext, out);
        }
        let iv = number.to_be_bytes();
        out.extend_from_slice(&iv);
        let start = out.len();
        out.extend_from_slice(plaintext);
        // No padding is needed: the pad length octet says zero.
        out.push(0);
        let Some(buffer) = out.get_mut(start..) else { unreachable!("start is within the vector") };
        let buffer = InOutBuf::from(buffer);
        let tag: Result<[u8; ICV_LEN], _> = match &self.algorithm {
            Algorithm::Aes256(aead, salt) => {
                aead.encrypt_inout_detached(&nonce(salt, iv).into(), associated, buffer).map(Into::into)
            }
            Algorithm::Aes128(aead, salt) => {
                aead.encrypt_inout_detached(&nonce(salt, iv).into(), associated, buffer).map(Into::into)
            }
            Algorithm::ChaCha20(aead, salt) => {
                aead.encrypt_inout_detached(&nonce(salt, iv).into(), associated, buffer).map(Into::into)
            }
            Algorithm::CbcHmac(_) => return,
        };
        let Ok(tag) = tag else { unreachable!("a UDP datagram is far below the cipher's limit") };
        out.extend_from_slice(&tag);
    }

    /// The payload chain inside `sealed` (IV, ciphertext, ICV), padding removed.
    ///
    /// # Errors
    /// [`Malformed::Integrity`] if it does not authenticate, others if it is too short or badly padded.
    pub fn open(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut plaintext = match &self.algorithm {
            Algorithm::CbcHmac(opener) => opener.open(associated, sealed)?,
            _ => self.open_aead(associated, sealed)?,
        };
        let padding = plaintext.pop().ok_or(Malformed::Truncated("encrypted payload"))?;
        let length = plaintext.len().checked_sub(usize::from(padding)).ok_or(Malformed::Length("padding"))?;
        plaintext.truncate(length);
        Ok(plaintext)
    }

    fn open_aead(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Malformed> {
        let short = Malformed::Truncated("encrypted payload");
        let (iv, rest) = sealed.split_first_chunk::<IV_LEN>().ok_or(short)?;
        let (ciphertext, tag) = rest.split_last_chunk::<ICV_LEN>().ok_or(short)?;
        let mut plaintext = ciphertext.to_vec();
        let buffer = InOutBuf::from(plaintext.as_mut_slice());
        let tag = (*tag).into();
        let opened = match &self.algorithm {
            Algorithm::Aes256(aead, salt) => {
                aead.decrypt_inout_detached(&nonce(salt, *iv).into(), associated, buffer, &tag)
            }
            Algorithm::Aes128(aead, salt) => {
                aead.decrypt_inout_detached(&nonce(salt, *iv).into(), associated, buffer, &tag)
            }
            Algorithm::ChaCha20(aead, salt) => {
                aead.decrypt_inout_detached(&nonce(salt, *iv).into(), associated, buffer, &tag)
            }
            Algorithm::CbcHmac(_) => return Err(Malformed::Integrity),
        };
        opened.map_err(|_| Malformed::Integrity)?;
        Ok(plaintext)
    }
}

fn algorithm(cipher: IkeCipher, octets: &[u8], integrity_key: &SecretBytes) -> Option<Algorithm> {
    let salted = || octets.split_last_chunk::<SALT_LEN>();
    let with_hash = |cipher: Aes, integrity: Integrity| {
        let integrity_key = integrity_key.duplicate();
        Algorithm::CbcHmac(Box::new(CbcHmac { cipher, integrity, integrity_key }))
    };
    Some(match cipher {
        IkeCipher::Aes256Gcm16 => {
            let (key, salt) = salted()?;
            Algorithm::Aes256(Box::new(Aes256Gcm::new_from_slice(key).ok()?), *salt)
        }
        IkeCipher::Aes128Gcm16 => {
            let (key, salt) = salted()?;
            Algorithm::Aes128(Box::new(Aes128Gcm::new_from_slice(key).ok()?), *salt)
        }
        IkeCipher::ChaCha20Poly1305 => {
            let (key, salt) = salted()?;
            Algorithm::ChaCha20(Box::new(ChaCha20Poly1305::new_from_slice(key).ok()?), *salt)
        }
        IkeCipher::Aes256Cbc(integrity) => {
            with_hash(Aes::Aes256(Box::new(aes::Aes256::new_from_slice(octets).ok()?)), integrity)
        }
        IkeCipher::Aes128Cbc(integrity) => {
            with_hash(Aes::Aes128(Box::new(aes::Aes128::new_from_slice(octets).ok()?)), integrity)
        }
    })
}

fn nonce(salt: &[u8; SALT_LEN], iv: [u8; IV_LEN]) -> [u8; SALT_LEN + IV_LEN] {
    let mut nonce = [0; SALT_LEN + IV_LEN];
    let (first, rest) = nonce.split_at_mut(SALT_LEN);
    first.copy_from_slice(salt);
    rest.copy_from_slice(&iv);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(cipher: IkeCipher) -> (PayloadCipher, PayloadCipher) {
        let key = SecretBytes::new((0u8..).take(cipher.key_material_len()).collect());
        let integrity = SecretBytes::new((50u8..).take(cipher.integrity_key_len()).collect());
        (PayloadCipher::new(cipher, &key, &integrity), PayloadCipher::new(cipher, &key, &integrity))
    }

    #[test]
    fn what_one_end_seals_the_other_opens() {
        for cipher in IkeCipher::ALL {
            let (mut sender, receiver) = pair(cipher);
            for length in 0..70 {
                let text = vec![7; length];
                let mut sealed = Vec::new();
                sender.seal(b"header", &text, &mut sealed);
                assert_eq!(sealed.len(), cipher.sealed_len(length));
                assert_eq!(receiver.open(b"header", &sealed).unwrap(), text);
            }
        }
    }

    #[test]
    fn what_is_said_to_fit_fits_and_no_more() {
        for cipher in IkeCipher::ALL {
            for room in 100..200 {
                let content = cipher.content_within(room);
                assert!(cipher.sealed_len(content) <= room);
                assert!(cipher.sealed_len(content + 1) > room);
            }
        }
    }

    #[test]
    fn any_changed_octet_is_noticed() {
        for cipher in IkeCipher::ALL {
            let (mut sender, receiver) = pair(cipher);
            let mut sealed = Vec::new();
            sender.seal(b"header", b"text", &mut sealed);
            for index in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[index] ^= 1;
                assert_eq!(receiver.open(b"header", &changed), Err(Malformed::Integrity));
            }
            assert_eq!(receiver.open(b"Header", &sealed), Err(Malformed::Integrity));
            for length in 0..sealed.len() {
                assert!(receiver.open(b"header", &sealed[..length]).is_err());
            }
        }
    }
}
