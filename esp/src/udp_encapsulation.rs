//! Telling keepalive, IKE and ESP apart on one UDP port (RFC 3948 §2).
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

/// The four zero octets before an IKE message on a port that carries ESP too (RFC 3948 §2.2).
pub const NON_ESP_MARKER: [u8; 4] = [0; 4];
/// The payload of a NAT keepalive (RFC 3948 §2.3).
pub const KEEPALIVE: [u8; 1] = [0xff];

/// The port on which IKE has no marker.
const IKE_PORT: u16 = 500;
/// An IKE header (RFC 7296 §3.1); nothing shorter can be a message.
const IKE_HEADER_LEN: usize = 28;

/// What a UDP payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulated<'a> {
    /// A NAT keepalive: drop it in silence, it says nothing about liveness.
    Keepalive,
    /// An IKE message, the marker already removed; at least a header long.
    Ike(&'a [u8]),
    /// ESP for the SA with this SPI.
    Esp {
        /// Never 0. 1 to 255 are reserved and match no SA.
        spi: u32,
    },
    /// Too short to be anything.
    Runt,
}

/// Whether IKE between these two ports (in host byte order) carries the non-ESP marker: always, unless
/// either side uses port 500. Where it doesn't, there is no ESP either.
//= RFC 7296 §2.23, RFC 3948 §2.2
#[must_use]
pub const fn uses_marker(local_port: u16, remote_port: u16) -> bool {
    local_port != IKE_PORT && remote_port != IKE_PORT
}

/// Says what a UDP payload is. `marker` is the answer of [`uses_marker`] for its two ports.
#[must_use]
pub fn demultiplex(datagram: &[u8], marker: bool) -> Encapsulated<'_> {
    //= RFC 3948 §2.3 (exactly one octet, 0xFF)
    if datagram == KEEPALIVE {
        return Encapsulated::Keepalive;
    }
    if !marker {
        return ike(datagram);
    }
    match datagram.split_first_chunk::<4>() {
        //= RFC 3948 §2.1, §2.2 (an SPI is never zero, a marker always is)
        Some((&NON_ESP_MARKER, message)) => ike(message),
        Some((spi, _)) => Encapsulated::Esp { spi: u32::from_be_bytes(*spi) },
        None => Encapsulated::Runt,
    }
}

fn ike(message: &[u8]) -> Encapsulated<'_> {
    if message.len() < IKE_HEADER_LEN { Encapsulated::Runt } else { Encapsulated::Ike(message) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a panic fails the test")]

    use super::*;

    #[test]
    fn keepalive_is_exactly_one_octet() {
        for marker in [true, false] {
            assert_eq!(demultiplex(&[0xff], marker), Encapsulated::Keepalive);
            assert_eq!(demultiplex(&[0xff, 0xff], marker), Encapsulated::Runt);
            assert_eq!(demultiplex(&[0xfe], marker), Encapsulated::Runt);
            assert_eq!(demultiplex(&[], marker), Encapsulated::Runt);
        }
        assert_eq!(demultiplex(&[0xff; 4], true), Encapsulated::Esp { spi: u32::MAX });
    }

    #[test]
    fn short_zeros_and_short_messages_are_runts() {
        assert_eq!(demultiplex(&[0; 3], true), Encapsulated::Runt);
        assert_eq!(demultiplex(&[0; 4], true), Encapsulated::Runt);
        assert_eq!(demultiplex(&[0; 4 + 27], true), Encapsulated::Runt);
        assert_eq!(demultiplex(&[0; 27], false), Encapsulated::Runt);
    }

    #[test]
    fn marker_is_removed() {
        let mut datagram = vec![0; 4];
        datagram.extend(1..=28);
        assert_eq!(demultiplex(&datagram, true), Encapsulated::Ike(&datagram[4..]));
    }

    #[test]
    fn unmarked_port_carries_ike_whatever_it_begins_with() {
        for first in [0, 1, 0xff] {
            let datagram = [first; 28];
            assert_eq!(demultiplex(&datagram, false), Encapsulated::Ike(&datagram));
        }
    }

    #[test]
    fn reserved_spis_stay_esp() {
        assert_eq!(demultiplex(&[0, 0, 0, 1, 9], true), Encapsulated::Esp { spi: 1 });
        assert_eq!(demultiplex(&[0, 0, 0, 255], true), Encapsulated::Esp { spi: 255 });
    }

    #[test]
    fn port_500_on_either_side_has_no_marker() {
        assert!(!uses_marker(500, 500));
        assert!(!uses_marker(13_000, 500));
        assert!(!uses_marker(500, 4500));
        assert!(uses_marker(4500, 4500));
        assert!(uses_marker(13_000, 13_000));
    }

    #[test]
    fn every_length_and_first_octet_is_classified() {
        for length in 0..=64 {
            for first in 0..=255 {
                let mut datagram = vec![0; length];
                if let Some(octet) = datagram.first_mut() {
                    *octet = first;
                }
                let kind = demultiplex(&datagram, true);
                let expected_esp = length >= 4 && first != 0;
                assert_eq!(matches!(kind, Encapsulated::Esp { .. }), expected_esp, "{length} {first}");
                let expected_ike = length >= 32 && first == 0;
                assert_eq!(matches!(kind, Encapsulated::Ike(_)), expected_ike, "{length} {first}");
            }
        }
    }
}
