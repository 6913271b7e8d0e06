//! The Internet checksum (RFC 1071) of IPv4 headers and transports, whole and incremental (RFC 1624).

use std::net::IpAddr;

use internet_checksum::Checksum;

/// The checksum of `bytes`, to be written in network order. Over bytes that hold their own right checksum it is 0.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(internet_checksum::checksum(bytes))
}

/// The checksum of a transport (TCP, UDP, ICMPv6) with its pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1).
///
/// The addresses must be of one family; `segment` holds a zero or its own checksum (then 0 means valid).
#[must_use]
pub fn transport(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    let mut sum = Checksum::new();
    add_address(&mut sum, source);
    add_address(&mut sum, destination);
    let len = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    sum.add_bytes(&len.to_be_bytes());
    sum.add_bytes(&[0, protocol]);
    sum.add_bytes(segment);
    u16::from_be_bytes(sum.checksum())
}

/// The checksum after one 16-bit word of what it covers changed (RFC 1624 equation 3).
#[must_use]
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    // ~C + ~m + m' fits 18 bits, and its carries are added back below.
    let sum = u32::from(!checksum).wrapping_add(u32::from(!old)).wrapping_add(u32::from(new));
    !fold(sum)
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff).wrapping_add(sum >> 16);
    let twice = (once & 0xffff).wrapping_add(once >> 16);
    u16::try_from(twice & 0xffff).unwrap_or_default()
}

fn add_address(sum: &mut Checksum, address: IpAddr) {
    match address {
        IpAddr::V4(address) => sum.add_bytes(&address.octets()),
        IpAddr::V6(address) => sum.add_bytes(&address.octets()),
    }
}
