//! Traffic Selector payloads (RFC 7296 §3.13).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::reader::Reader;
use super::registry::traffic_selector as kind;
use super::writer::{octet, patch_length};
use crate::error::Malformed;

/// Selectors in one payload; the count field has one octet.
const MAX_SELECTORS: usize = 255;

/// A range of addresses and ports. Both addresses have one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficSelector {
    /// IP protocol, zero for any.
    pub protocol: u8,
    /// First port (or ICMP type and code), inclusive.
    pub first_port: u16,
    /// Last port, inclusive.
    pub last_port: u16,
    /// First address, inclusive.
    pub first: IpAddr,
    /// Last address, inclusive.
    pub last: IpAddr,
}

impl TrafficSelector {
    /// All IPv4 traffic.
    pub const ANY_IPV4: Self = Self {
        protocol: 0,
        first_port: 0,
        last_port: u16::MAX,
        first: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        last: IpAddr::V4(Ipv4Addr::BROADCAST),
    };

    /// All IPv6 traffic.
    pub const ANY_IPV6: Self = Self {
        protocol: 0,
        first_port: 0,
        last_port: u16::MAX,
        first: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        last: IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)),
    };

    fn decode(selector: u8, protocol: u8, mut reader: Reader<'_>) -> Result<Option<Self>, Malformed> {
        let (first_port, last_port) = (reader.u16()?, reader.u16()?);
        let (first, last) = match selector {
            kind::IPV4_ADDR_RANGE => (IpAddr::from(reader.array::<4>()?), IpAddr::from(reader.array::<4>()?)),
            kind::IPV6_ADDR_RANGE => {
                (IpAddr::from(reader.array::<16>()?), IpAddr::from(reader.array::<16>()?))
            }
            // A type that we do not know selects nothing that we could accept.
            _ => return Ok(None),
        };
        reader.finish()?;
        Ok(Some(Self { protocol, first_port, last_port, first, last }))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let selector = if self.first.is_ipv4() { kind::IPV4_ADDR_RANGE } else { kind::IPV6_ADDR_RANGE };
        out.extend_from_slice(&[selector, self.protocol, 0, 0]);
        out.extend_from_slice(&self.first_port.to_be_bytes());
        out.extend_from_slice(&self.last_port.to_be_bytes());
        for address in [self.first, self.last] {
            match address {
                IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
                IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
            }
        }
        patch_length(out, start, start.saturating_add(2));
    }
}

pub(super) fn decode_selectors(body: &[u8]) -> Result<Vec<TrafficSelector>, Malformed> {
    let mut reader = Reader::new(body, "TS payload");
    let count = reader.u8()?;
    reader.take(3)?;
    let mut selectors = Vec::new();
    for _ in 0..count {
        let (selector, protocol, length) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let inside = reader.sub(length, 4, "traffic selector")?;
        selectors.extend(TrafficSelector::decode(selector, protocol, inside)?);
    }
    reader.finish()?;
    Ok(selectors)
}

pub(super) fn encode_selectors(selectors: &[TrafficSelector], out: &mut Vec<u8>) {
    out.extend_from_slice(&[octet(selectors.len()), 0, 0, 0]);
    for selector in selectors.iter().take(MAX_SELECTORS) {
        selector.encode(out);
    }
}
