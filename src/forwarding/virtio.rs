//! The header that a TUN with `IFF_VNET_HDR` puts before each packet (virtio 1.2 §5.1.6),
//! in the machine's byte order.

/// Octets of the header.
pub const HEADER_LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// What kind of super-packet follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gso {
    /// A single packet.
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams of one size, over either family.
    Udp,
}

/// What the kernel may believe of the checksum, or has left to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The packet carries it in full.
    Complete,
    /// It has been verified.
    Valid,
    /// The field holds the pseudo-header's sum; the rest is to be added.
    Partial {
        /// Where the covered octets begin.
        start: u16,
        /// Where the field is, from `start`.
        offset: u16,
    },
}

/// The header, parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtioHeader {
    /// Kind of super-packet.
    pub gso: Gso,
    /// TCP segments of the super-packet carry ECN's congestion-window-reduced rule.
    pub ecn: bool,
    /// Octets of all headers.
    pub header_len: u16,
    /// Octets of payload in each segment but the last.
    pub gso_size: u16,
    /// State of the transport checksum.
    pub checksum: Checksum,
}

impl VirtioHeader {
    /// The header of a complete, single packet.
    pub const PLAIN: VirtioHeader =
        VirtioHeader { gso: Gso::None, ecn: false, header_len: 0, gso_size: 0, checksum: Checksum::Complete };

    /// Splits a frame into its header and the packet. `None` when the frame is too short or the
    /// kind of super-packet is one that we never asked for.
    pub fn parse(frame: &[u8]) -> Option<(VirtioHeader, &[u8])> {
        let (header, packet) = frame.split_first_chunk::<HEADER_LEN>()?;
        let [flags, gso, header_a, header_b, size_a, size_b, start_a, start_b, offset_a, offset_b] = *header;
        let kind = match gso & !GSO_ECN {
            0 => Gso::None,
            GSO_TCP_V4 => Gso::TcpV4,
            GSO_TCP_V6 => Gso::TcpV6,
            GSO_UDP => Gso::Udp,
            _ => return None,
        };
        let checksum = if flags & NEEDS_CHECKSUM != 0 {
            Checksum::Partial {
                start: u16::from_ne_bytes([start_a, start_b]),
                offset: u16::from_ne_bytes([offset_a, offset_b]),
            }
        } else if flags & DATA_VALID != 0 {
            Checksum::Valid
        } else {
            Checksum::Complete
        };
        let parsed = VirtioHeader {
            gso: kind,
            ecn: gso & GSO_ECN != 0,
            header_len: u16::from_ne_bytes([header_a, header_b]),
            gso_size: u16::from_ne_bytes([size_a, size_b]),
            checksum,
        };
        Some((parsed, packet))
    }

    /// The header as the kernel reads it.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let kind = match self.gso {
            Gso::None => 0,
            Gso::TcpV4 => GSO_TCP_V4,
            Gso::TcpV6 => GSO_TCP_V6,
            Gso::Udp => GSO_UDP,
        };
        let (flags, start, offset) = match self.checksum {
            Checksum::Complete => (0, 0, 0),
            Checksum::Valid => (DATA_VALID, 0, 0),
            Checksum::Partial { start, offset } => (NEEDS_CHECKSUM, start, offset),
        };
        let gso = if self.ecn { kind | GSO_ECN } else { kind };
        let [header_a, header_b] = self.header_len.to_ne_bytes();
        let [size_a, size_b] = self.gso_size.to_ne_bytes();
        let [start_a, start_b] = start.to_ne_bytes();
        let [offset_a, offset_b] = offset.to_ne_bytes();
        [flags, gso, header_a, header_b, size_a, size_b, start_a, start_b, offset_a, offset_b]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_survives_the_round_trip() {
        let header = VirtioHeader {
            gso: Gso::TcpV6,
            ecn: true,
            header_len: 72,
            gso_size: 1368,
            checksum: Checksum::Partial { start: 40, offset: 16 },
        };
        let mut frame = header.to_bytes().to_vec();
        frame.extend([1, 2, 3]);
        assert_eq!(VirtioHeader::parse(&frame), Some((header, &[1, 2, 3][..])));
        assert_eq!(
            VirtioHeader::parse(&VirtioHeader::PLAIN.to_bytes()),
            Some((VirtioHeader::PLAIN, &[][..]))
        );
    }

    #[test]
    fn short_frames_and_unknown_kinds_are_refused() {
        assert_eq!(VirtioHeader::parse(&[0; 9]), None);
        assert_eq!(VirtioHeader::parse(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), None, "UFO is never negotiated");
    }
}
