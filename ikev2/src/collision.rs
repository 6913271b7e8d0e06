//! Who wins when both sides rekey at once (RFC 7296 §2.8.1, §2.8.2).

/// Which of two new SAs survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The one that we initiated.
    Ours,
    /// The one that the peer initiated.
    Theirs,
}

/// Compares the lower nonces of both exchanges: the SA with the lowest of the four is redundant.
//= RFC 7296 §2.8.1: comparison octet by octet, not as numbers of different length.
pub(crate) fn compare(ours: &[u8], theirs: &[u8]) -> Outcome {
    if ours < theirs { Outcome::Theirs } else { Outcome::Ours }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_nonce_loses() {
        assert_eq!(compare(&[1, 2], &[1, 3]), Outcome::Theirs);
        assert_eq!(compare(&[2], &[1, 255]), Outcome::Ours);
        assert_eq!(compare(&[1], &[1, 0]), Outcome::Theirs, "a prefix is lower");
    }

    #[test]
    fn both_sides_come_to_the_same_end() {
        for (a, b) in [([1u8, 2], [3u8, 4]), ([9, 9], [0, 0])] {
            assert_ne!(compare(&a, &b), compare(&b, &a));
        }
    }
}
