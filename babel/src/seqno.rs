//! Sequence numbers: 16 bits, compared modulo 2^16 (RFC 8966 §3.2.1).

use std::fmt;

/// A sequence number of a source or of a Hello stream.
///
/// There is deliberately no `PartialOrd`: "newer" is not transitive around the wrap, so sorting would lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seqno(pub u16);

impl Seqno {
    /// `self + count`, modulo 2^16.
    #[must_use]
    pub const fn plus(self, count: u16) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The signed modular distance `self - other`, in -32768..=32767.
    #[must_use]
    pub const fn since(self, other: Self) -> i16 {
        self.0.wrapping_sub(other.0) as i16
    }

    //= RFC 8966 §3.2.1
    /// Whether `self` is strictly newer than `other`.
    #[must_use]
    pub const fn is_newer_than(self, other: Self) -> bool {
        let distance = self.0.wrapping_sub(other.0);
        distance != 0 && distance < 0x8000
    }
}

impl fmt::Display for Seqno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_works_across_the_wrap() {
        assert!(Seqno(0).is_newer_than(Seqno(0xFFFF)));
        assert!(!Seqno(0xFFFF).is_newer_than(Seqno(0)));
        assert!(!Seqno(7).is_newer_than(Seqno(7)));
        assert!(Seqno(0x7FFF).is_newer_than(Seqno(0)));
        assert!(!Seqno(0x8000).is_newer_than(Seqno(0)));
        assert_eq!(Seqno(1).since(Seqno(0xFFFF)), 2);
        assert_eq!(Seqno(0xFFFF).plus(1), Seqno(0));
    }
}
