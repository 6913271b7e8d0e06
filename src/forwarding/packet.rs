//! Single fields of inner packets, read and changed in place.

use srv6::ip::{checksum, protocol};

const SYN: u8 = 0x02;
const DONT_FRAGMENT: u8 = 0x40;

/// The ESP next header for a packet, by its version; `None` for neither.
#[inline]
pub(super) fn next_header_of(packet: &[u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => Some(esp::NEXT_HEADER_IPV4),
        6 => Some(esp::NEXT_HEADER_IPV6),
        _ => None,
    }
}

/// The length that the packet claims, if its version is that of `next_header` and it claims no
/// more than there is: what is behind is padding against traffic analysis (RFC 4303 §2.7).
#[inline]
pub(super) fn length(packet: &[u8], next_header: u8) -> Option<usize> {
    let length = match (packet.first()? >> 4, next_header) {
        (4, esp::NEXT_HEADER_IPV4) => {
            let header: &[u8; 20] = packet.first_chunk()?;
            usize::from(u16::from_be_bytes([header[2], header[3]]))
        }
        (6, esp::NEXT_HEADER_IPV6) => {
            let header: &[u8; 40] = packet.first_chunk()?;
            40 + usize::from(u16::from_be_bytes([header[4], header[5]]))
        }
        _ => return None,
    };
    (length >= 20 && length <= packet.len()).then_some(length)
}

/// The ECN codepoint, 0–3.
#[inline]
pub(super) fn ecn(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => second & 3,
        [_, second, ..] => second >> 4 & 3,
        _ => 0,
    }
}

/// Changes the ECN codepoint of an IPv4 or IPv6 packet.
pub(super) fn set_ecn(packet: &mut [u8], codepoint: u8) {
    match packet {
        [first, second, rest @ ..] if *first >> 4 == 4 => {
            let old = u16::from_be_bytes([*first, *second]);
            *second = (*second & !3) | (codepoint & 3);
            let new = u16::from_be_bytes([*first, *second]);
            if let Some(field) = rest.get_mut(8..10) {
                let sum = checksum::updated(u16::from_be_bytes([field[0], field[1]]), old, new);
                field.copy_from_slice(&sum.to_be_bytes());
            }
        }
        [_, second, ..] => *second = (*second & !0x30) | ((codepoint & 3) << 4),
        _ => {}
    }
}

/// Whether a router may fragment the packet: IPv4 without the flag.
pub(super) fn may_fragment(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 4)
        && packet.get(6).is_some_and(|flags| flags & DONT_FRAGMENT == 0)
}

/// Whether the packet is, or could be behind extension headers, a TCP SYN.
#[inline]
pub(super) fn is_tcp_syn(packet: &[u8]) -> bool {
    let Some(first) = packet.first() else { return false };
    let (protocol, transport) =
        if first >> 4 == 4 { (packet.get(9), usize::from(first & 15) * 4) } else { (packet.get(6), 40) };
    match protocol {
        Some(&protocol::TCP) => packet.get(transport + 13).is_some_and(|flags| flags & SYN != 0),
        Some(&(protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS | protocol::ROUTING)) => first >> 4 == 6,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecn_of_both_families_is_read_and_written() {
        let mut v4 = vec![0x45, 0xb8, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum = checksum::of(&v4).to_be_bytes();
        v4[10..12].copy_from_slice(&sum);
        set_ecn(&mut v4, 3);
        assert_eq!((ecn(&v4), v4[1]), (3, 0xbb));
        assert_eq!(checksum::of(&v4), 0);

        let mut v6 = vec![0; 40];
        v6[..2].copy_from_slice(&[0x6b, 0x8f]);
        set_ecn(&mut v6, 2);
        assert_eq!((ecn(&v6), v6[1]), (2, 0xaf));
    }

    #[test]
    fn length_cuts_padding_and_refuses_lies() {
        let mut v4 = vec![0; 64];
        v4[0] = 0x45;
        v4[3] = 30;
        assert_eq!(length(&v4, 4), Some(30));
        assert_eq!(length(&v4, 41), None);
        v4[3] = 65;
        assert_eq!(length(&v4, 4), None);
        v4[3] = 19;
        assert_eq!(length(&v4, 4), None);
        assert_eq!(length(&[0x60; 39], 41), None);
    }
}
