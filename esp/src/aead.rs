//! The ciphers behind one small trait: two libraries, cross-checked against each other in the tests.
//!
//! Key material is the key followed by a 4-byte salt (RFC 4106 §8.1, RFC 7634 §2); the nonce is salt then
//! IV (RFC 4106 §4); the additional data is SPI and sequence number, 8 bytes, or 12 with extended sequence
//! numbers (RFC 4106 §5).

use crate::error::{IntegrityFailure, Misuse};
use crate::wire::ICV_LEN;
use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aead::{AeadInOut, KeyInit};
use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// Length of a nonce: the salt and the IV.
pub(crate) const NONCE_LEN: usize = SALT_LEN + 8;
const SALT_LEN: usize = 4;

/// What encrypts and authenticates an SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// AES-GCM with a 256-bit key and a 16-byte ICV (RFC 4106).
    Aes256Gcm16,
    /// AES-GCM with a 128-bit key and a 16-byte ICV (RFC 4106).
    Aes128Gcm16,
    /// ChaCha20 and Poly1305 (RFC 7634).
    ChaCha20Poly1305,
}

impl Algorithm {
    /// Every algorithm, best first, for a processor with or without AES instructions: software AES is slow
    /// and, without care, not constant in time.
    #[must_use]
    pub const fn by_preference(aes_acceleration: bool) -> [Self; 3] {
        if aes_acceleration {
            [Self::Aes256Gcm16, Self::ChaCha20Poly1305, Self::Aes128Gcm16]
        } else {
            [Self::ChaCha20Poly1305, Self::Aes256Gcm16, Self::Aes128Gcm16]
        }
    }

    /// Length of the cipher key in bytes.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes256Gcm16 | Self::ChaCha20Poly1305 => 32,
            Self::Aes128Gcm16 => 16,
        }
    }

    /// Length of the salt that follows the key, in bytes.
    #[must_use]
    pub const fn salt_len(self) -> usize {
        SALT_LEN
    }

    /// How many bytes of KEYMAT one direction takes: key, then salt.
    #[must_use]
    pub const fn key_material_len(self) -> usize {
        self.key_len() + self.salt_len()
    }

    /// The name that `status` and logs show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm16 => "aes256gcm16",
            Self::Aes128Gcm16 => "aes128gcm16",
            Self::ChaCha20Poly1305 => "chacha20poly1305",
        }
    }
}

/// Which library does the work. The bytes are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// aws-lc-rs: the fastest that was measured.
    #[default]
    AwsLc,
    /// The RustCrypto crates: pure Rust, the reference that the other one is tested against.
    RustCrypto,
}

impl Backend {
    /// Both, for tests that compare them.
    pub const ALL: [Self; 2] = [Self::AwsLc, Self::RustCrypto];

    /// The name that `status` and logs show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AwsLc => "aws-lc",
            Self::RustCrypto => "rustcrypto",
        }
    }
}

/// Whether this processor has instructions for both halves of AES-GCM (AES and carry-less multiplication).
#[must_use]
pub fn has_aes_acceleration() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// Authenticated encryption in place with a 12-byte nonce and a 16-byte tag. A nonce must never be sealed
/// twice under one key; the SA types see to that.
pub trait Aead: Send + Sync {
    /// Encrypts `data` and returns the tag over `aad` and the ciphertext.
    fn seal_in_place(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> [u8; ICV_LEN];

    /// Decrypts `data` if the tag matches; its content is unspecified otherwise.
    ///
    /// # Errors
    /// [`IntegrityFailure`] if the tag does not match.
    fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; ICV_LEN],
    ) -> Result<(), IntegrityFailure>;
}

impl Algorithm {
    /// The cipher alone, without the salt and the additional data of ESP; SAs build on it.
    ///
    /// # Errors
    /// [`Misuse::KeyMaterialLength`] if `key` is not [`Algorithm::key_len`] bytes long.
    pub fn aead(self, key: &[u8], backend: Backend) -> Result<Box<dyn Aead>, Misuse> {
        let misuse = Misuse::KeyMaterialLength { expected: self.key_len(), actual: key.len() };
        if key.len() != self.key_len() {
            return Err(misuse);
        }
        match backend {
            Backend::AwsLc => {
                let key = UnboundKey::new(self.aws_lc(), key).map_err(|_| misuse)?;
                Ok(Box::new(AwsLcAead(LessSafeKey::new(key))))
            }
            Backend::RustCrypto => match self {
                Self::Aes256Gcm16 => rust_crypto::<aes_gcm::Aes256Gcm>(key, misuse),
                Self::Aes128Gcm16 => rust_crypto::<aes_gcm::Aes128Gcm>(key, misuse),
                Self::ChaCha20Poly1305 => rust_crypto::<chacha20poly1305::ChaCha20Poly1305>(key, misuse),
            },
        }
    }

    fn aws_lc(self) -> &'static aws_lc_rs::aead::Algorithm {
        match self {
            Self::Aes256Gcm16 => &aws_lc_rs::aead::AES_256_GCM,
            Self::Aes128Gcm16 => &aws_lc_rs::aead::AES_128_GCM,
            Self::ChaCha20Poly1305 => &aws_lc_rs::aead::CHACHA20_POLY1305,
        }
    }
}

struct AwsLcAead(LessSafeKey);

impl Aead for AwsLcAead {
    #[expect(clippy::expect_used, reason = "fails only beyond 64 GiB, and a payload is at most 64 KiB")]
    fn seal_in_place(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> [u8; ICV_LEN] {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(aad), data).expect("a short message");
        let mut icv = [0; ICV_LEN];
        icv.copy_from_slice(tag.as_ref());
        icv
    }

    fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; ICV_LEN],
    ) -> Result<(), IntegrityFailure> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        match self.0.open_in_place_separate_tag(nonce, Aad::from(aad), tag, data) {
            Ok(_) => Ok(()),
            Err(_) => Err(IntegrityFailure),
        }
    }
}

struct RustCryptoAead<C>(C);

fn rust_crypto<C>(key: &[u8], misuse: Misuse) -> Result<Box<dyn Aead>, Misuse>
where
    C: AeadInOut + KeyInit + Send + Sync + 'static,
{
    Ok(Box::new(RustCryptoAead(C::new_from_slice(key).map_err(|_| misuse)?)))
}

impl<C: AeadInOut + Send + Sync> Aead for RustCryptoAead<C> {
    #[expect(clippy::expect_used, reason = "lengths are fixed, and a payload is at most 64 KiB")]
    fn seal_in_place(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> [u8; ICV_LEN] {
        let nonce = nonce.as_slice().try_into().expect("all our ciphers take 12 bytes");
        let tag = self.0.encrypt_inout_detached(nonce, aad, InOutBuf::from(data)).expect("a short message");
        let mut icv = [0; ICV_LEN];
        icv.copy_from_slice(&tag);
        icv
    }

    fn open_in_place(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; ICV_LEN],
    ) -> Result<(), IntegrityFailure> {
        let nonce = nonce.as_slice().try_into().map_err(|_| IntegrityFailure)?;
        let tag = tag.as_slice().try_into().map_err(|_| IntegrityFailure)?;
        self.0.decrypt_inout_detached(nonce, aad, InOutBuf::from(data), tag).map_err(|_| IntegrityFailure)
    }
}

/// A cipher with the salt, SPI and sequence-number form of one SA: builds nonce and AAD of each packet.
pub(crate) struct Transform {
    cipher: Box<dyn Aead>,
    salt: Zeroizing<[u8; SALT_LEN]>,
    spi: u32,
    esn: bool,
}

impl Transform {
    pub(crate) fn new(
        spi: u32,
        algorithm: Algorithm,
        key_material: &[u8],
        esn: bool,
        backend: Backend,
    ) -> Result<Self, Misuse> {
        //= RFC 4303 §2.1 (0 is for local use, 1 to 255 are reserved)
        if spi < 256 {
            return Err(Misuse::ReservedSpi(spi));
        }
        let misuse =
            Misuse::KeyMaterialLength { expected: algorithm.key_material_len(), actual: key_material.len() };
        //= RFC 4106 §8.1 (the last four octets of the key material are the salt)
        let (key, salt) = key_material.split_last_chunk::<SALT_LEN>().ok_or(misuse)?;
        let cipher = algorithm.aead(key, backend).map_err(|_| misuse)?;
        Ok(Self { cipher, salt: Zeroizing::new(*salt), spi, esn })
    }

    pub(crate) fn spi(&self) -> u32 {
        self.spi
    }

    pub(crate) fn esn(&self) -> bool {
        self.esn
    }

    pub(crate) fn seal(&self, sequence: u64, iv: [u8; 8], data: &mut [u8]) -> [u8; ICV_LEN] {
        self.cipher.seal_in_place(&self.nonce(iv), self.aad(sequence).as_slice(), data)
    }

    pub(crate) fn open(
        &self,
        sequence: u64,
        iv: [u8; 8],
        data: &mut [u8],
        icv: &[u8; ICV_LEN],
    ) -> Result<(), IntegrityFailure> {
        self.cipher.open_in_place(&self.nonce(iv), self.aad(sequence).as_slice(), data, icv)
    }

    //= RFC 4106 §4
    fn nonce(&self, iv: [u8; 8]) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        let (salt, rest) = nonce.split_at_mut(SALT_LEN);
        salt.copy_from_slice(&*self.salt);
        rest.copy_from_slice(&iv);
        nonce
    }

    //= RFC 4106 §5 (SPI, then the 64-bit or the 32-bit sequence number)
    fn aad(&self, sequence: u64) -> AdditionalData {
        let mut bytes = [0; 12];
        let (spi, rest) = bytes.split_at_mut(4);
        spi.copy_from_slice(&self.spi.to_be_bytes());
        let sequence = sequence.to_be_bytes();
        if self.esn {
            rest.copy_from_slice(&sequence);
            AdditionalData { bytes, length: 12 }
        } else {
            let (low, _) = rest.split_at_mut(4);
            low.copy_from_slice(&sequence[4..]);
            AdditionalData { bytes, length: 8 }
        }
    }
}

struct AdditionalData {
    bytes: [u8; 12],
    length: usize,
}

impl AdditionalData {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transform(esn: bool) -> Transform {
        let mut key_material = [0; 36];
        key_material[32..].copy_from_slice(&[0xa0, 0xa1, 0xa2, 0xa3]);
        Transform::new(0x0102_0304, Algorithm::ChaCha20Poly1305, &key_material, esn, Backend::AwsLc).unwrap()
    }

    #[test]
    fn nonce_is_salt_then_iv() {
        let nonce = transform(false).nonce([0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17]);
        assert_eq!(nonce, [0xa0, 0xa1, 0xa2, 0xa3, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17]);
    }

    #[test]
    fn additional_data_has_eight_or_twelve_bytes() {
        let sequence = 0x1122_3344_5566_7788;
        assert_eq!(transform(false).aad(sequence).as_slice(), [1, 2, 3, 4, 0x55, 0x66, 0x77, 0x88]);
        let extended = [1, 2, 3, 4, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88];
        assert_eq!(transform(true).aad(sequence).as_slice(), extended);
    }

    #[test]
    fn wrong_key_material_is_misuse() {
        for algorithm in Algorithm::by_preference(true) {
            for actual in (0..80).filter(|length| *length != algorithm.key_material_len()) {
                let result = Transform::new(4096, algorithm, &vec![0; actual], false, Backend::AwsLc);
                let expected = algorithm.key_material_len();
                assert_eq!(result.err(), Some(Misuse::KeyMaterialLength { expected, actual }));
            }
        }
    }

    #[test]
    fn reserved_spis_are_misuse() {
        for spi in [0, 1, 255] {
            let result = Transform::new(spi, Algorithm::Aes128Gcm16, &[0; 20], false, Backend::AwsLc);
            assert_eq!(result.err(), Some(Misuse::ReservedSpi(spi)));
        }
        assert!(Transform::new(256, Algorithm::Aes128Gcm16, &[0; 20], false, Backend::AwsLc).is_ok());
    }

    #[test]
    fn software_aes_is_not_preferred() {
        assert_eq!(Algorithm::by_preference(false)[0], Algorithm::ChaCha20Poly1305);
        assert_eq!(Algorithm::by_preference(true)[0], Algorithm::Aes256Gcm16);
    }
}
