//! AES-CBC with a truncated HMAC for IKE SAs of peers that know no AEAD cipher (RFC 3602, RFC 4868,
//! RFC 7296 §3.14): the ciphertext is authenticated, and looked at only after that.

use aes::cipher::{
    Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit,
};
use aes::{Aes128, Aes256};
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;

use crate::error::Malformed;
use crate::secret::SecretBytes;

/// Octets of a block of AES, and of the IV.
pub(crate) const BLOCK_LEN: usize = 16;

/// A keyed hash that authenticates encrypted payloads (RFC 4868).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Integrity {
    /// HMAC-SHA2-256-128.
    HmacSha256,
    /// HMAC-SHA2-384-192.
    HmacSha384,
    /// HMAC-SHA2-512-256.
    HmacSha512,
}

impl Integrity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HmacSha256, Self::HmacSha384, Self::HmacSha512];

    /// Octets of the key.
    pub const fn key_len(self) -> usize {
        match self {
            Self::HmacSha256 => 32,
            Self::HmacSha384 => 48,
            Self::HmacSha512 => 64,
        }
    }

    /// Octets that are sent: half of the hash.
    //= RFC 4868 §2.1.1
    pub const fn icv_len(self) -> usize {
        self.key_len() / 2
    }

    fn compute(self, key: &SecretBytes, parts: [&[u8]; 2]) -> Vec<u8> {
        let mut code = match self {
            Self::HmacSha256 => keyed_hash::<Hmac<Sha256>>(key, parts),
            Self::HmacSha384 => keyed_hash::<Hmac<Sha384>>(key, parts),
            Self::HmacSha512 => keyed_hash::<Hmac<Sha512>>(key, parts),
        };
        code.truncate(self.icv_len());
        code
    }
}

fn keyed_hash<M: Mac + KeyInit>(key: &SecretBytes, parts: [&[u8]; 2]) -> Vec<u8> {
    let Ok(mac) = <M as KeyInit>::new_from_slice(key.expose()) else {
        unreachable!("HMAC takes keys of any length")
    };
    parts.into_iter().fold(mac, |mac, part| mac.chain_update(part)).finalize().into_bytes().to_vec()
}

/// A block cipher with its key.
pub(crate) enum Aes {
    Aes128(Box<Aes128>),
    Aes256(Box<Aes256>),
}

/// One direction's cipher and hash with their keys.
pub(crate) struct CbcHmac {
    pub(crate) cipher: Aes,
    pub(crate) integrity: Integrity,
    pub(crate) integrity_key: SecretBytes,
}

impl CbcHmac {
    /// Octets of IV, ciphertext and ICV for `content` octets of payloads.
    pub(crate) const fn sealed_len(integrity: Integrity, content: usize) -> usize {
        // The pad length octet always fits: there is room for it in the last block.
        let blocks = content / BLOCK_LEN + 1;
        BLOCK_LEN + blocks * BLOCK_LEN + integrity.icv_len()
    }

    /// Appends IV, ciphertext and ICV to `out`. `number` is one that this key has not seen.
    pub(crate) fn seal(&self, number: u64, associated: &[u8], plaintext: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let iv = self.unpredictable_iv(number);
        out.extend_from_slice(&iv);
        out.extend_from_slice(plaintext);
        let padding = BLOCK_LEN - 1 - plaintext.len() % BLOCK_LEN;
        out.extend(std::iter::repeat_n(0, padding));
        out.push(u8::try_from(padding).unwrap_or(0));
        let (blocks, _) = out.get_mut(start + BLOCK_LEN..).unwrap_or_default().as_chunks_mut::<BLOCK_LEN>();
        match &self.cipher {
            Aes::Aes128(cipher) => encrypt(cipher.as_ref(), iv, blocks),
            Aes::Aes256(cipher) => encrypt(cipher.as_ref(), iv, blocks),
        }
        let sealed = out.get(start..).unwrap_or_default();
        let code = self.integrity.compute(&self.integrity_key, [associated, sealed]);
        out.extend_from_slice(&code);
    }

    /// An encrypted counter: nobody without the key can tell the next one.
    // NIST SP 800-38A, appendix C, first method
    fn unpredictable_iv(&self, number: u64) -> [u8; BLOCK_LEN] {
        let mut block = [0; BLOCK_LEN];
        let (_, low) = block.split_at_mut(BLOCK_LEN - 8);
        low.copy_from_slice(&number.to_be_bytes());
        match &self.cipher {
            Aes::Aes128(cipher) => cipher.encrypt_block((&mut block).into()),
            Aes::Aes256(cipher) => cipher.encrypt_block((&mut block).into()),
        }
        block
    }

    /// The payload chain inside `sealed`, padding removed.
    ///
    /// # Errors
    /// [`Malformed::Integrity`] if it does not authenticate, others if it is too short or badly padded.
    pub(crate) fn open(&self, associated: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Malformed> {
        let short = Malformed::Truncated("encrypted payload");
        let length = sealed.len().checked_sub(self.integrity.icv_len()).ok_or(short)?;
        let (sealed, code) = sealed.split_at(length);
        let expected = self.integrity.compute(&self.integrity_key, [associated, sealed]);
        if !bool::from(expected.ct_eq(code)) {
            return Err(Malformed::Integrity);
        }
        let (iv, ciphertext) = sealed.split_first_chunk::<BLOCK_LEN>().ok_or(short)?;
        let mut plaintext = ciphertext.to_vec();
        let (blocks, rest) = plaintext.as_chunks_mut::<BLOCK_LEN>();
        if !rest.is_empty() {
            return Err(Malformed::Length("encrypted payload"));
        }
        match &self.cipher {
            Aes::Aes128(cipher) => decrypt(cipher.as_ref(), *iv, blocks),
            Aes::Aes256(cipher) => decrypt(cipher.as_ref(), *iv, blocks),
        }
        Ok(plaintext)
    }
}

fn encrypt<C>(cipher: &C, iv: [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]])
where
    C: Clone + BlockCipherEncrypt<BlockSize = aes::cipher::consts::U16>,
{
    let mut mode = cbc::Encryptor::<C>::inner_iv_init(cipher.clone(), &iv.into());
    blocks.iter_mut().for_each(|block| mode.encrypt_block(<&mut Block<C>>::from(block)));
}

fn decrypt<C>(cipher: &C, iv: [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]])
where
    C: Clone + BlockCipherDecrypt<BlockSize = aes::cipher::consts::U16>,
{
    let mut mode = cbc::Decryptor::<C>::inner_iv_init(cipher.clone(), &iv.into());
    blocks.iter_mut().for_each(|block| mode.decrypt_block(<&mut Block<C>>::from(block)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3602 §4, case 1, and RFC 4868 §2.7.2.1 in its truncated form.
    #[test]
    fn the_parts_match_the_published_vectors() {
        let key =
            [0x06, 0xA9, 0x21, 0x40, 0x36, 0xB8, 0xA1, 0x5B, 0x51, 0x2E, 0x03, 0xD5, 0x34, 0x12, 0x00, 0x06];
        let iv =
            [0x3D, 0xAF, 0xBA, 0x42, 0x9D, 0x9E, 0xB4, 0x30, 0xB4, 0x22, 0xDA, 0x80, 0x2C, 0x9F, 0xAC, 0x41];
        let mut block = [*b"Single block msg"];
        encrypt(&Aes128::new(&key.into()), iv, &mut block);
        assert_eq!(block[0][..8], [0xE3, 0x53, 0x77, 0x9C, 0x10, 0x79, 0xAE, 0xB8]);
        let code = Integrity::HmacSha256.compute(&SecretBytes::new(vec![0x0B; 32]), [b"Hi ", b"There"]);
        assert_eq!(code[..8], [0x19, 0x8A, 0x60, 0x7E, 0xB4, 0x4B, 0xFB, 0xC6]);
        assert_eq!(code.len(), 16);
    }

    #[test]
    fn ivs_do_not_repeat_and_do_not_count() {
        let cipher = Aes::Aes256(Box::new(Aes256::new(&[3; 32].into())));
        let integrity_key = SecretBytes::new(vec![4; 32]);
        let sealer = CbcHmac { cipher, integrity: Integrity::HmacSha256, integrity_key };
        let ivs: std::collections::BTreeSet<_> =
            (0..100).map(|number| sealer.unpredictable_iv(number)).collect();
        assert_eq!(ivs.len(), 100);
        assert!(ivs.iter().all(|iv| iv[..8] != [0; 8]));
    }
}
