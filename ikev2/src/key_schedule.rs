//! From shared secrets to keys (RFC 7296 §2.13, §2.14, §2.17, §2.18; RFC 9370 §2.2.2).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384, Sha512};
use zeroize::Zeroize;

use crate::sealed_payload::IkeCipher;
use crate::secret::SecretBytes;

/// A pseudo-random function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prf {
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-384.
    HmacSha384,
    /// HMAC with SHA-512.
    HmacSha512,
}

impl Prf {
    /// Octets of output, which is also the preferred key length.
    pub const fn output_len(self) -> usize {
        match self {
            Self::HmacSha256 => 32,
            Self::HmacSha384 => 48,
            Self::HmacSha512 => 64,
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "PRF-HMAC-SHA2-256",
            Self::HmacSha384 => "PRF-HMAC-SHA2-384",
            Self::HmacSha512 => "PRF-HMAC-SHA2-512",
        }
    }

    /// prf(`key`, the concatenation of `parts`).
    pub fn compute(self, key: &[u8], parts: &[&[u8]]) -> SecretBytes {
        match self {
            Self::HmacSha256 => keyed_hash::<Hmac<Sha256>>(key, parts),
            Self::HmacSha384 => keyed_hash::<Hmac<Sha384>>(key, parts),
            Self::HmacSha512 => keyed_hash::<Hmac<Sha512>>(key, parts),
        }
    }

    /// The first `length` octets of prf+(`key`, `seed`) (§2.13).
    pub fn expand(self, key: &[u8], seed: &[&[u8]], length: usize) -> SecretBytes {
        let mut output = Vec::with_capacity(length + self.output_len());
        let mut block = SecretBytes::new(Vec::new());
        // The counter is one octet: 255 blocks are far more than any set of keys needs.
        for counter in 1..=u8::MAX {
            if output.len() >= length {
                break;
            }
            let mut parts = vec![block.expose()];
            parts.extend_from_slice(seed);
            let counter = [counter];
            parts.push(&counter);
            let next = self.compute(key, &parts);
            output.extend_from_slice(next.expose());
            block = next;
        }
        if let Some(excess) = output.get_mut(length..) {
            excess.zeroize();
        }
        output.truncate(length);
        SecretBytes::new(output)
    }
}

fn keyed_hash<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> SecretBytes {
    let Ok(mac) = <M as KeyInit>::new_from_slice(key) else { unreachable!("HMAC takes keys of any length") };
    let mac = parts.iter().fold(mac, |mac, part| mac.chain_update(part));
    SecretBytes::new(mac.finalize().into_bytes().to_vec())
}

/// SPIs and nonces of an exchange, in the order of the RFC.
#[derive(Clone, Copy)]
pub struct Freshness<'a> {
    /// Ni.
    pub nonce_i: &'a [u8],
    /// Nr.
    pub nonce_r: &'a [u8],
    /// SPIi of the SA that the keys are for.
    pub spi_i: u64,
    /// SPIr of the SA that the keys are for.
    pub spi_r: u64,
}

/// Keys of an IKE SA.
pub struct IkeKeys {
    /// The function that they were derived with.
    pub prf: Prf,
    /// The cipher that they are for.
    pub cipher: IkeCipher,
    /// Derives further keys.
    pub sk_d: SecretBytes,
    /// Authenticates messages from initiator to responder; empty for AEAD ciphers.
    pub sk_ai: SecretBytes,
    /// Authenticates messages from responder to initiator; empty for AEAD ciphers.
    pub sk_ar: SecretBytes,
    /// Encrypts from initiator to responder (key, and salt of an AEAD cipher).
    pub sk_ei: SecretBytes,
    /// Encrypts from responder to initiator (key, and salt of an AEAD cipher).
    pub sk_er: SecretBytes,
    /// Authenticates the initiator.
    pub sk_pi: SecretBytes,
    /// Authenticates the responder.
    pub sk_pr: SecretBytes,
}

impl IkeKeys {
    /// Keys of a first IKE SA: SKEYSEED = prf(Ni | Nr, g^ir).
    pub fn initial(prf: Prf, cipher: IkeCipher, shared: &SecretBytes, fresh: Freshness<'_>) -> Self {
        let nonces = [fresh.nonce_i, fresh.nonce_r].concat();
        let skeyseed = prf.compute(&nonces, &[shared.expose()]);
        Self::from_skeyseed(prf, cipher, &skeyseed, fresh)
    }

    /// Keys of a rekeyed IKE SA: SKEYSEED = prf(SK_d (old), g^ir (new) | Ni | Nr | further secrets), with
    /// the old SA's prf; `fresh` has the new SPIs.
    //= RFC 7296 §2.18, RFC 9370 §2.2.4
    pub fn rekeyed(
        &self,
        prf: Prf,
        cipher: IkeCipher,
        secrets: &[SecretBytes],
        fresh: Freshness<'_>,
    ) -> Self {
        let skeyseed = self.rekey_seed(secrets, fresh);
        Self::from_skeyseed(prf, cipher, &skeyseed, fresh)
    }

    /// Keys after an additional key exchange in IKE_INTERMEDIATE:
    /// SKEYSEED(n) = prf(SK_d(n-1), SK(n) | Ni | Nr).
    //= RFC 9370 §2.2.2
    pub fn mixed(&self, shared: &SecretBytes, fresh: Freshness<'_>) -> Self {
        let parts = [shared.expose(), fresh.nonce_i, fresh.nonce_r];
        let skeyseed = self.prf.compute(self.sk_d.expose(), &parts);
        Self::from_skeyseed(self.prf, self.cipher, &skeyseed, fresh)
    }

    /// Key material of a CHILD SA: prf+(SK_d, [g^ir (new)] | Ni | Nr | further secrets).
    //= RFC 7296 §2.17, RFC 9370 §2.2.4
    pub fn child(
        &self,
        secrets: &[SecretBytes],
        nonce_i: &[u8],
        nonce_r: &[u8],
        length: usize,
    ) -> SecretBytes {
        let (first, further) = match secrets.split_first() {
            Some((first, further)) => (first.expose(), further),
            None => ([].as_slice(), [].as_slice()),
        };
        let mut seed = vec![first, nonce_i, nonce_r];
        seed.extend(further.iter().map(SecretBytes::expose));
        self.prf.expand(self.sk_d.expose(), &seed, length)
    }

    fn rekey_seed(&self, secrets: &[SecretBytes], fresh: Freshness<'_>) -> SecretBytes {
        let (first, further) = match secrets.split_first() {
            Some((first, further)) => (first.expose(), further),
            None => ([].as_slice(), [].as_slice()),
        };
        let mut parts = vec![first, fresh.nonce_i, fresh.nonce_r];
        parts.extend(further.iter().map(SecretBytes::expose));
        self.prf.compute(self.sk_d.expose(), &parts)
    }

    //= RFC 7296 §2.14: {SK_d | SK_ai | SK_ar | SK_ei | SK_er | SK_pi | SK_pr} = prf+ (…)
    fn from_skeyseed(prf: Prf, cipher: IkeCipher, skeyseed: &SecretBytes, fresh: Freshness<'_>) -> Self {
        let (spi_i, spi_r) = (fresh.spi_i.to_be_bytes(), fresh.spi_r.to_be_bytes());
        let seed = [fresh.nonce_i, fresh.nonce_r, &spi_i, &spi_r];
        let (prf_len, cipher_len) = (prf.output_len(), cipher.key_material_len());
        let hash_len = cipher.integrity_key_len();
        let stream = prf.expand(skeyseed.expose(), &seed, 3 * prf_len + 2 * hash_len + 2 * cipher_len);
        let mut rest = stream.expose();
        let mut next = |length: usize| {
            let (taken, left) = rest.split_at(length);
            rest = left;
            SecretBytes::new(taken.to_vec())
        };
        Self {
            prf,
            cipher,
            sk_d: next(prf_len),
            sk_ai: next(hash_len),
            sk_ar: next(hash_len),
            sk_ei: next(cipher_len),
            sk_er: next(cipher_len),
            sk_pi: next(prf_len),
            sk_pr: next(prf_len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 test case 2 for HMAC-SHA-256, -384 and -512 (first octets).
    #[test]
    fn functions_match_the_published_vectors() {
        for (prf, start) in [
            (Prf::HmacSha256, [0x5B, 0xDC, 0xC1, 0x46]),
            (Prf::HmacSha384, [0xAF, 0x45, 0xD2, 0xE3]),
            (Prf::HmacSha512, [0x16, 0x4B, 0x7A, 0x7B]),
        ] {
            let output = prf.compute(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
            assert_eq!(output.len(), prf.output_len());
            assert_eq!(output.expose()[..4], start);
        }
    }

    #[test]
    fn expansion_chains_blocks_as_the_rfc_says() {
        let prf = Prf::HmacSha256;
        let first = prf.compute(b"key", &[b"seed", &[1]]);
        let second = prf.compute(b"key", &[first.expose(), b"seed", &[2]]);
        let stream = prf.expand(b"key", &[b"se", b"ed"], 40);
        assert_eq!(stream.expose()[..32], *first.expose());
        assert_eq!(stream.expose()[32..], second.expose()[..8]);
    }
}
