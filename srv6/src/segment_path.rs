//! The ordered list of segments that a packet visits.

use std::net::Ipv6Addr;

use crate::error::Misuse;
use crate::sid::is_segment;

/// The longest path. Sixteen segments cost 304 bytes without reduction: more than any MTU bears gladly.
pub const MAX_SEGMENTS: usize = 16;

/// SIDs in the order of the journey, 1 to [`MAX_SEGMENTS`]. A SID may stand in it several times.
///
/// For the journey A→B→C→B→D the path is `[B, C, B, D]`: the headend A is no segment. A packet's place on the
/// path is its Segments Left alone, never "B was seen", so a repeat needs no special case.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentPath {
    segments: [Ipv6Addr; MAX_SEGMENTS],
    len: usize,
}

impl SegmentPath {
    /// Takes the SIDs in the order of the journey.
    ///
    /// # Errors
    /// [`Misuse`] when there are none or too many, or one of them is multicast, loopback or unspecified.
    pub fn new(segments: &[Ipv6Addr]) -> Result<Self, Misuse> {
        if segments.is_empty() {
            return Err(Misuse::EmptyPath);
        }
        if !segments.iter().all(is_segment) {
            return Err(Misuse::Address);
        }
        let mut path = [Ipv6Addr::UNSPECIFIED; MAX_SEGMENTS];
        path.get_mut(..segments.len()).ok_or(Misuse::PathTooLong)?.copy_from_slice(segments);
        Ok(Self { segments: path, len: segments.len() })
    }

    /// The SIDs in the order of the journey.
    #[must_use]
    pub fn as_slice(&self) -> &[Ipv6Addr] {
        self.segments.get(..self.len).unwrap_or_default()
    }

    /// How many segments there are, at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a path is never empty")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The first stop: where the packet goes when it leaves the headend.
    #[must_use]
    pub const fn first(&self) -> Ipv6Addr {
        self.segments[0]
    }

    /// The last stop: where the journey ends.
    #[must_use]
    pub fn last(&self) -> Ipv6Addr {
        self.as_slice().last().copied().unwrap_or(self.segments[0])
    }
}

impl std::fmt::Debug for SegmentPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(last: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd5d, 0xac, 0, last, 0, 0, 0, 0xe)
    }

    #[test]
    fn repeats_keep_their_places() {
        let journey = [sid(1), sid(2), sid(1), sid(3)];
        let path = SegmentPath::new(&journey).unwrap();
        assert_eq!(path.as_slice(), journey);
        assert_eq!((path.first(), path.last(), path.len()), (sid(1), sid(3), 4));
    }

    #[test]
    fn bounds_are_checked() {
        assert_eq!(SegmentPath::new(&[]), Err(Misuse::EmptyPath));
        assert!(SegmentPath::new(&[sid(1); MAX_SEGMENTS]).is_ok());
        assert_eq!(SegmentPath::new(&[sid(1); MAX_SEGMENTS + 1]), Err(Misuse::PathTooLong));
        for bad in ["::", "::1", "ff02::1", "::ffff:192.0.2.1"] {
            assert_eq!(SegmentPath::new(&[sid(1), bad.parse().unwrap()]), Err(Misuse::Address), "{bad}");
        }
    }
}
