//! IPv6 and its chain of extension headers (RFC 8200).

use std::net::Ipv6Addr;

use super::protocol;
use crate::error::Malformed;

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;

/// Extension headers that are walked before a packet counts as malformed. RFC 8200 §4.1 orders seven.
pub const MAX_EXTENSION_HEADERS: usize = 12;

/// A checked view of an IPv6 packet. Bytes behind its payload length are not part of it.
///
/// ```text
/// |Version| Traffic Class |           Flow Label                  |
/// |         Payload Length        |  Next Header  |   Hop Limit   |
/// |                  Source Address, 16 octets                    |
/// |               Destination Address, 16 octets                  |
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ipv6View<'a> {
    fixed: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

/// Where a fragment stands in its datagram (RFC 8200 §4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Offset in units of 8 bytes.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more: bool,
}

/// What stands behind the extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpperLayer<'a> {
    /// The protocol. In a non-first fragment it may be an extension header that only the first fragment holds.
    pub protocol: u8,
    /// Offset from the start of the IPv6 header.
    pub offset: usize,
    /// Offset of the Next Header field that names the protocol.
    pub named_at: usize,
    /// The bytes from there on. In a non-first fragment they are not the start of the transport.
    pub bytes: &'a [u8],
    /// Set when a fragment header was met, unless it was an atomic fragment (offset 0, none follow).
    pub fragment: Option<Fragment>,
}

impl<'a> Ipv6View<'a> {
    /// Checks version and payload length.
    ///
    /// # Errors
    /// [`Malformed`] says which of them is wrong.
    pub fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let view = Self::parse_cut(packet)?;
        let payload_len = usize::from(u16::from_be_bytes([view.fixed[4], view.fixed[5]]));
        if view.payload.len() < payload_len {
            return Err(Malformed::Length);
        }
        Ok(view)
    }

    /// As [`parse`](Self::parse), for a packet of which the end may be missing: one that an ICMP error quotes.
    ///
    /// # Errors
    /// [`Malformed`] when the fixed header is not whole.
    pub fn parse_cut(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, rest) = packet.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated)?;
        if fixed[0] >> 4 != 6 {
            return Err(Malformed::Version);
        }
        let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        Ok(Self { fixed, payload: rest.get(..payload_len).unwrap_or(rest) })
    }

    /// Bytes of the whole packet as its header says, or as many of them as there are.
    #[must_use]
    pub const fn total_len(&self) -> usize {
        HEADER_LEN.saturating_add(self.payload.len())
    }

    /// DSCP and ECN together.
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        (self.fixed[0] << 4) | (self.fixed[1] >> 4)
    }

    /// The 20-bit flow label.
    #[must_use]
    pub const fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.fixed[1] & 0x0f, self.fixed[2], self.fixed[3]])
    }

    /// What directly follows the fixed header.
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        self.fixed[6]
    }

    /// Hop limit.
    #[must_use]
    pub const fn hop_limit(&self) -> u8 {
        self.fixed[7]
    }

    /// Source address.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        address_at::<8>(self.fixed)
    }

    /// Destination address.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        address_at::<24>(self.fixed)
    }

    /// What follows the fixed header, up to the payload length.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The extension headers in order; it ends before the upper layer, at an error, or after
    /// [`MAX_EXTENSION_HEADERS`].
    #[must_use]
    pub const fn extension_headers(&self) -> ExtensionHeaders<'a> {
        ExtensionHeaders {
            next: self.next_header(),
            named_at: 6,
            offset: HEADER_LEN,
            rest: self.payload,
            left: MAX_EXTENSION_HEADERS,
            fragment: None,
            failed: false,
        }
    }

    /// Walks over all extension headers.
    ///
    /// # Errors
    /// [`Malformed::ExtensionChain`] when a header ends beyond the packet or there are more than
    /// [`MAX_EXTENSION_HEADERS`].
    pub fn upper_layer(&self) -> Result<UpperLayer<'a>, Malformed> {
        let mut headers = self.extension_headers();
        for header in headers.by_ref() {
            header?;
        }
        Ok(headers.upper_layer())
    }
}

/// The values of a fixed header, to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label; only its low 20 bits count.
    pub flow_label: u32,
    /// Bytes behind the fixed header.
    pub payload_len: u16,
    /// What follows.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Header {
    /// The header as it stands on the wire.
    #[must_use]
    pub fn to_octets(&self) -> [u8; HEADER_LEN] {
        let mut octets = [0; HEADER_LEN];
        octets[..4].copy_from_slice(&first_word(self.traffic_class, self.flow_label).to_be_bytes());
        octets[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        octets[6] = self.next_header;
        octets[7] = self.hop_limit;
        octets[8..24].copy_from_slice(&self.source.octets());
        octets[24..].copy_from_slice(&self.destination.octets());
        octets
    }
}

/// Version 6, traffic class and flow label.
#[must_use]
pub(crate) const fn first_word(traffic_class: u8, flow_label: u32) -> u32 {
    (6 << 28) | ((traffic_class as u32) << 20) | (flow_label & 0xf_ffff)
}

/// One extension header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionHeader<'a> {
    /// Its own type, as the header before names it.
    pub kind: u8,
    /// Offset from the start of the IPv6 header.
    pub offset: usize,
    /// Offset of the Next Header field that names it.
    pub named_at: usize,
    /// Its bytes, from its own Next Header field on.
    pub bytes: &'a [u8],
}

/// Iterator over the extension headers of one packet.
#[derive(Debug, Clone)]
pub struct ExtensionHeaders<'a> {
    next: u8,
    named_at: usize,
    offset: usize,
    rest: &'a [u8],
    left: usize,
    fragment: Option<Fragment>,
    failed: bool,
}

impl<'a> ExtensionHeaders<'a> {
    /// What follows the headers that were read so far.
    #[must_use]
    pub const fn upper_layer(&self) -> UpperLayer<'a> {
        UpperLayer {
            protocol: self.next,
            offset: self.offset,
            named_at: self.named_at,
            bytes: self.rest,
            fragment: self.fragment,
        }
    }

    fn at_non_first_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset != 0)
    }

    fn read(&mut self) -> Option<ExtensionHeader<'a>> {
        self.left = self.left.checked_sub(1)?;
        let [next, length, c, d] = *self.rest.first_chunk()?;
        let len = header_len(self.next, length);
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        if self.next == protocol::FRAGMENT {
            let offset_and_more = u16::from_be_bytes([c, d]);
            let fragment = Fragment { offset: offset_and_more >> 3, more: offset_and_more & 1 != 0 };
            // An atomic fragment is a whole datagram (RFC 6946).
            self.fragment = (fragment.offset != 0 || fragment.more).then_some(fragment);
        }
        let header = ExtensionHeader { kind: self.next, offset: self.offset, named_at: self.named_at, bytes };
        (self.next, self.named_at, self.rest) = (next, self.offset, rest);
        self.offset = self.offset.saturating_add(len);
        Some(header)
    }
}

impl<'a> Iterator for ExtensionHeaders<'a> {
    type Item = Result<ExtensionHeader<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || !is_extension(self.next) || self.at_non_first_fragment() {
            return None;
        }
        let header = self.read().ok_or(Malformed::ExtensionChain);
        self.failed = header.is_err();
        Some(header)
    }
}

/// Whether a next-header value is an extension header whose end can be found.
const fn is_extension(next_header: u8) -> bool {
    matches!(
        next_header,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTHENTICATION
            | protocol::DESTINATION_OPTIONS
            | protocol::MOBILITY
    )
}

/// Bytes of an extension header with this length octet.
const fn header_len(kind: u8, length: u8) -> usize {
    let length = length as usize;
    match kind {
        protocol::FRAGMENT => 8,
        //= RFC 4302 §2.2
        // AH counts units of 4 bytes, minus two.
        protocol::AUTHENTICATION => length.saturating_add(2) << 2,
        _ => length.saturating_add(1) << 3,
    }
}

fn address_at<const AT: usize>(fixed: &[u8; HEADER_LEN]) -> Ipv6Addr {
    let mut octets = [0; 16];
    for (to, from) in octets.iter_mut().zip(fixed.iter().skip(AT)) {
        *to = *from;
    }
    octets.into()
}
