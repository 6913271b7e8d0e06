//! IPv4 (RFC 791).

use std::net::Ipv4Addr;

use crate::error::Malformed;

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
pub(super) const OFFSET_MASK: u16 = 0x1fff;

/// A checked view of an IPv4 packet. Bytes behind its total length are not part of it.
///
/// ```text
/// |Version|  IHL  |    DSCP |ECN|          Total Length         |
/// |         Identification        |Flags|      Fragment Offset  |
/// |  Time to Live |    Protocol   |         Header Checksum     |
/// |                         Source Address                      |
/// |                      Destination Address                    |
/// |                    Options, 0 to 40 octets                  |
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ipv4View<'a> {
    fixed: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// Checks version, header length and total length. The header checksum is not verified here: packets come
    /// from the kernel or from an authenticated peer.
    ///
    /// # Errors
    /// [`Malformed`] says which of the three is wrong.
    pub fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; HEADER_LEN] = packet.first_chunk().ok_or(Malformed::Truncated)?;
        if fixed[0] >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let header_len = usize::from(fixed[0] & 0x0f) << 2;
        let options = packet.get(HEADER_LEN..header_len).ok_or(Malformed::HeaderLength)?;
        let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let payload = packet.get(header_len..total_len).ok_or(Malformed::Length)?;
        Ok(Self { fixed, options, payload })
    }

    /// Bytes of the header with its options.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN.saturating_add(self.options.len())
    }

    /// Bytes of the whole packet as its header says.
    #[must_use]
    pub const fn total_len(&self) -> usize {
        self.header_len().saturating_add(self.payload.len())
    }

    /// DSCP and ECN together.
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        self.fixed[1]
    }

    /// Identification of the datagram that fragments belong to.
    #[must_use]
    pub const fn identification(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    const fn flags_and_offset(&self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }

    /// Whether routers must not fragment the packet.
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        self.flags_and_offset() & DONT_FRAGMENT != 0
    }

    /// Whether more fragments of this datagram follow.
    #[must_use]
    pub const fn more_fragments(&self) -> bool {
        self.flags_and_offset() & MORE_FRAGMENTS != 0
    }

    /// Where the payload stands in the datagram, in units of 8 bytes.
    #[must_use]
    pub const fn fragment_offset(&self) -> u16 {
        self.flags_and_offset() & OFFSET_MASK
    }

    /// Whether this is a part of a larger datagram.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.flags_and_offset() & (MORE_FRAGMENTS | OFFSET_MASK) != 0
    }

    /// Time to live.
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        self.fixed[8]
    }

    /// Protocol of the payload.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.fixed[9]
    }

    /// Header checksum as it stands in the packet.
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[10], self.fixed[11]])
    }

    /// Source address.
    #[must_use]
    pub const fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[12], self.fixed[13], self.fixed[14], self.fixed[15])
    }

    /// Destination address.
    #[must_use]
    pub const fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[16], self.fixed[17], self.fixed[18], self.fixed[19])
    }

    /// Options, 0 to 40 bytes.
    #[must_use]
    pub const fn options(&self) -> &'a [u8] {
        self.options
    }

    /// What follows the header, up to the total length.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}
