//! Exact size arithmetic, for everything that computes an MTU. All lengths are in bytes.

use crate::wire::{ALIGNMENT, HEADER_LEN, ICV_LEN, TRAILER_LEN};

/// Length of a UDP header.
pub const UDP_HEADER_LEN: usize = 8;

/// The IP version of the path that carries the datagrams; its header has no options or extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Underlay {
    /// 20 bytes of IP header.
    Ipv4,
    /// 40 bytes of IP header.
    Ipv6,
}

impl Underlay {
    /// Length of the IP header.
    #[must_use]
    pub const fn ip_header_len(self) -> usize {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
        }
    }
}

/// How many octets of padding a payload gets: up to the next multiple of 4 with the trailer.
//= RFC 4303 §2.4
#[must_use]
pub(crate) const fn padding_len(payload_len: usize) -> usize {
    // 0 - (payload + trailer), modulo 4; two's complement makes this exact for any length.
    payload_len.wrapping_add(TRAILER_LEN).wrapping_neg() % ALIGNMENT
}

/// Length of the ESP datagram (the UDP payload) for a payload: header, payload, padding, trailer and ICV.
/// Saturates for lengths that no packet has.
#[must_use]
pub const fn sealed_len(payload_len: usize) -> usize {
    payload_len.saturating_add(padding_len(payload_len) + HEADER_LEN + TRAILER_LEN + ICV_LEN)
}

/// The longest payload whose ESP datagram has at most `datagram_len` bytes, or `None` if not even an empty
/// one fits.
#[must_use]
pub const fn max_payload(datagram_len: usize) -> Option<usize> {
    match datagram_len.checked_sub(HEADER_LEN + ICV_LEN) {
        Some(room) => (room - room % ALIGNMENT).checked_sub(TRAILER_LEN),
        None => None,
    }
}

/// Length of the whole IP packet on the underlay for a payload.
#[must_use]
pub const fn outer_len(payload_len: usize, underlay: Underlay) -> usize {
    sealed_len(payload_len).saturating_add(UDP_HEADER_LEN + underlay.ip_header_len())
}

/// The largest inner packet that an underlay of this MTU carries in one datagram, or `None` if it carries
/// nothing at all: 1,438 of 1,500 bytes over IPv4, 1,418 over IPv6.
#[must_use]
pub const fn inner_mtu(underlay_mtu: usize, underlay: Underlay) -> Option<usize> {
    match underlay_mtu.checked_sub(UDP_HEADER_LEN + underlay.ip_header_len()) {
        Some(datagram_len) => max_payload(datagram_len),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_sizes() {
        assert_eq!(inner_mtu(1500, Underlay::Ipv4), Some(1438));
        assert_eq!(inner_mtu(1500, Underlay::Ipv6), Some(1418));
        assert_eq!(inner_mtu(1280, Underlay::Ipv6), Some(1198));
        assert_eq!(outer_len(1438, Underlay::Ipv4), 1500);
        assert_eq!(outer_len(1439, Underlay::Ipv4), 1504);
        assert_eq!(sealed_len(0), 36);
    }

    #[test]
    fn nothing_fits_into_too_little() {
        assert_eq!(max_payload(35), None);
        assert_eq!(max_payload(36), Some(2));
        assert_eq!(inner_mtu(0, Underlay::Ipv6), None);
        assert_eq!(inner_mtu(48 + 36, Underlay::Ipv6), Some(2));
        assert_eq!(inner_mtu(48 + 35, Underlay::Ipv6), None);
        assert_eq!(sealed_len(usize::MAX), usize::MAX);
    }

    proptest! {
        #[test]
        fn max_payload_is_the_inverse_of_sealed_len(datagram_len in 36usize..70_000) {
            let payload = max_payload(datagram_len).unwrap();
            prop_assert!(sealed_len(payload) <= datagram_len);
            prop_assert!(sealed_len(payload + 1) > datagram_len);
        }

        #[test]
        fn inner_mtu_is_exact(mtu in 84usize..70_000) {
            for underlay in [Underlay::Ipv4, Underlay::Ipv6] {
                let inner = inner_mtu(mtu, underlay).unwrap();
                prop_assert!(outer_len(inner, underlay) <= mtu);
                prop_assert!(outer_len(inner + 1, underlay) > mtu);
            }
        }
    }
}
