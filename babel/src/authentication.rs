//! Message authentication (RFC 8967).

use std::fmt;

use zeroize::Zeroizing;

use crate::Misuse;

/// The MAC algorithms of RFC 8967 §4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacAlgorithm {
    /// HMAC-SHA256 (RFC 6234), 32 octets.
    HmacSha256,
    /// Keyed BLAKE2s with 128 bits of output (RFC 7693).
    Blake2s128,
}

/// A key of an interface. Never printed; wiped when dropped.
#[derive(Clone)]
pub struct MacKey {
    algorithm: MacAlgorithm,
    secret: Zeroizing<Vec<u8>>,
}

impl MacKey {
    /// A key for the algorithm.
    ///
    /// # Errors
    /// [`Misuse::KeyLength`] if the key is empty, or longer than 64 octets (HMAC-SHA256) or 32 (BLAKE2s).
    pub fn new(algorithm: MacAlgorithm, secret: &[u8]) -> Result<Self, Misuse> {
        let longest = match algorithm {
            MacAlgorithm::HmacSha256 => 64,
            MacAlgorithm::Blake2s128 => 32,
        };
        if secret.is_empty() || secret.len() > longest {
            return Err(Misuse::KeyLength);
        }
        Ok(Self { algorithm, secret: Zeroizing::new(secret.to_vec()) })
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> MacAlgorithm {
        self.algorithm
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MacKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}
