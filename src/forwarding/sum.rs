//! Ones'-complement sums in progress (RFC 1071), so that the part of a checksum which many
//! segments share is added once.

/// A sum of 16-bit words. Kept in the machine's byte order: the sum commutes with swapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds octets that begin at an even offset of what the checksum covers.
    #[inline]
    pub(crate) fn add_bytes(self, bytes: &[u8]) -> Sum {
        let (blocks, rest) = bytes.as_chunks::<64>();
        // The halves of eight words side by side: without carries the compiler uses vector registers.
        let (mut low, mut high) = ([0u64; 8], [0u64; 8]);
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for ((word, low), high) in words.iter().zip(&mut low).zip(&mut high) {
                let word = u64::from_ne_bytes(*word);
                *low += word & 0xffff_ffff;
                *high += word >> 32;
            }
        }
        // Lanes of 32 bits in 64: nothing can overflow below 2^34 octets.
        let sum: u64 = low.iter().sum::<u64>() + high.iter().sum::<u64>();
        let (words, rest) = rest.as_chunks::<4>();
        let sum = sum + words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum::<u64>();
        let tail = match *rest {
            [] => 0,
            [a] => u32::from_ne_bytes([a, 0, 0, 0]),
            [a, b] => u32::from_ne_bytes([a, b, 0, 0]),
            [a, b, c] => u32::from_ne_bytes([a, b, c, 0]),
            [..] => 0,
        };
        Sum(self.0 + sum + u64::from(tail))
    }

    /// Adds one number of 16 bits.
    #[inline]
    pub(crate) fn add(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(u16::from_ne_bytes(word.to_be_bytes())))
    }

    /// Adds one number of 32 bits.
    #[inline]
    pub(crate) fn add_u32(self, word: u32) -> Sum {
        Sum(self.0 + u64::from(u32::from_ne_bytes(word.to_be_bytes())))
    }

    /// The sum in 16 bits, not complemented: what a pseudo-header leaves in the checksum field.
    #[inline]
    pub(crate) fn folded(self) -> u16 {
        let mut sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        sum = (sum >> 16) + (sum & 0xffff);
        sum = (sum >> 16) + (sum & 0xffff);
        sum = (sum >> 16) + (sum & 0xffff);
        let [.., high, low] = sum.to_be_bytes();
        u16::from_be(u16::from_be_bytes([high, low]))
    }

    /// The checksum: the complement of the sum.
    #[inline]
    pub(crate) fn checksum(self) -> u16 {
        !self.folded()
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers in tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §4.1, word by word.
    fn reference(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..100) {
            prop_assert_eq!(Sum::default().add_bytes(&bytes).folded(), reference(&bytes));
            let cut = (cut * 2).min(bytes.len() & !1);
            let parts = Sum::default().add_bytes(&bytes[..cut]).add_bytes(&bytes[cut..]);
            prop_assert_eq!(parts.folded(), reference(&bytes));
        }

        #[test]
        fn numbers_count_as_their_octets(word in any::<u16>(), long in any::<u32>()) {
            let mut bytes = word.to_be_bytes().to_vec();
            bytes.extend(long.to_be_bytes());
            prop_assert_eq!(Sum::default().add(word).add_u32(long).folded(), reference(&bytes));
        }
    }
}
