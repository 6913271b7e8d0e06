//! Octet strings that must not leak: wiped on drop, never formatted, compared in constant time.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Secret octets (a key, a shared secret, key material). Zeroized on drop; `Debug` shows only the length.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Takes ownership of `bytes`; the vector is wiped when this value is dropped.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The octets themselves.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Number of octets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no octets at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A second owner of the same octets; explicit, because every copy is one more to wipe.
    pub fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretBytes {}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretBytes({} octets)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_shows_no_octet() {
        assert_eq!(format!("{:?}", SecretBytes::new(vec![0xAB; 3])), "SecretBytes(3 octets)");
    }
}
