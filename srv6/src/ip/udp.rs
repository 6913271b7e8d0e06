//! UDP headers (RFC 768), and UDP in IPv6 for control protocols that this node speaks itself.

use std::net::Ipv6Addr;

use super::{Ipv6View, checksum, ipv6, protocol};
use crate::error::{Malformed, Misuse};

/// Bytes of a UDP header.
pub const HEADER_LEN: usize = 8;

/// Bytes in front of the payload of a UDP datagram in IPv6 without extension headers.
pub const IPV6_HEADERS_LEN: usize = ipv6::HEADER_LEN + HEADER_LEN;

/// A checked view of a UDP datagram; bytes behind its length are not part of it.
#[derive(Debug, Clone, Copy)]
pub struct UdpView<'a> {
    fixed: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Checks the length field.
    ///
    /// # Errors
    /// [`Malformed`] when the datagram is shorter than its length says.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; HEADER_LEN] = datagram.first_chunk().ok_or(Malformed::Truncated)?;
        let len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let payload = datagram.get(HEADER_LEN..len).ok_or(Malformed::Length)?;
        Ok(Self { fixed, payload })
    }

    /// Reads the datagram in an IPv6 packet and verifies its checksum.
    ///
    /// # Errors
    /// [`Malformed`] when it is no whole UDP datagram or its checksum is wrong or absent (RFC 8200 §8.1).
    pub fn parse_in_ipv6(packet: &Ipv6View<'a>) -> Result<Self, Malformed> {
        let upper = packet.upper_layer()?;
        if upper.protocol != protocol::UDP || upper.fragment.is_some() {
            return Err(Malformed::Truncated);
        }
        let datagram = Self::parse(upper.bytes)?;
        let covered =
            upper.bytes.get(..HEADER_LEN.saturating_add(datagram.payload.len())).unwrap_or_default();
        let sum =
            checksum::transport(packet.source().into(), packet.destination().into(), protocol::UDP, covered);
        if datagram.checksum() == 0 || sum != 0 {
            return Err(Malformed::Checksum);
        }
        Ok(datagram)
    }

    /// Source port.
    #[must_use]
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Destination port.
    #[must_use]
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// The checksum as it stands in the datagram; 0 means none.
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }

    /// What follows the header, up to the length.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The addresses, ports and priority of a UDP datagram over IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpOverIpv6 {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Hop limit; link-local protocols send 1 or 255.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
}

impl UdpOverIpv6 {
    /// Writes both headers in front of a payload that already stands at `buffer[IPV6_HEADERS_LEN..]` with
    /// `payload_len` bytes, checksum included, and returns the length of the packet.
    ///
    /// # Errors
    /// [`Misuse`] when the buffer or the 16-bit length is too short for the payload.
    pub fn write(&self, buffer: &mut [u8], payload_len: usize) -> Result<usize, Misuse> {
        let udp_len = payload_len.saturating_add(HEADER_LEN);
        let length = u16::try_from(udp_len).map_err(|_| Misuse::TooLong)?;
        let total = udp_len.saturating_add(ipv6::HEADER_LEN);
        let packet = buffer.get_mut(..total).ok_or(Misuse::BufferTooShort)?;
        let (ip, rest) =
            packet.split_first_chunk_mut::<{ ipv6::HEADER_LEN }>().ok_or(Misuse::BufferTooShort)?;
        *ip = ipv6::Header {
            traffic_class: self.traffic_class,
            flow_label: 0,
            payload_len: length,
            next_header: protocol::UDP,
            hop_limit: self.hop_limit,
            source: self.source,
            destination: self.destination,
        }
        .to_octets();
        self.write_udp(rest, length)?;
        Ok(total)
    }

    fn write_udp(&self, datagram: &mut [u8], length: u16) -> Result<(), Misuse> {
        let udp: &mut [u8; HEADER_LEN] = datagram.first_chunk_mut().ok_or(Misuse::BufferTooShort)?;
        [udp[0], udp[1]] = self.source_port.to_be_bytes();
        [udp[2], udp[3]] = self.destination_port.to_be_bytes();
        [udp[4], udp[5]] = length.to_be_bytes();
        [udp[6], udp[7]] = [0, 0];
        let sum = checksum::transport(self.source.into(), self.destination.into(), protocol::UDP, datagram);
        //= RFC 8200 §8.1
        // A computed zero is sent as all ones: zero would mean that there is no checksum.
        let sum = if sum == 0 { 0xffff } else { sum };
        if let Some(field) = datagram.get_mut(6..8) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
        Ok(())
    }
}
