//! Time to live and hop limit.

use crate::error::Malformed;

use super::checksum;

/// What is left after one hop was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopLimit {
    /// The packet was changed and may be forwarded.
    Left(u8),
    /// It was 1 or 0: the packet is unchanged and must be answered with Time Exceeded.
    Exceeded,
}

/// Counts one forwarding hop in an IPv4 or IPv6 packet, in place; the IPv4 header checksum is kept right.
///
//= RFC 8200 §3, RFC 1812 §5.3.1
/// # Errors
/// [`Malformed`] when there is no whole IP header.
pub fn decrement_hop_limit(packet: &mut [u8]) -> Result<HopLimit, Malformed> {
    match packet.first().map(|octet| octet >> 4) {
        Some(4) => ipv4(packet),
        Some(6) => ipv6(packet),
        Some(_) => Err(Malformed::Version),
        None => Err(Malformed::Truncated),
    }
}

/// Time to live or hop limit of a packet, without changing it.
///
/// # Errors
/// [`Malformed`] when there is no whole IP header.
pub fn hop_limit(packet: &[u8]) -> Result<u8, Malformed> {
    match packet.first().map(|octet| octet >> 4) {
        Some(4) => packet.first_chunk::<20>().map(|header| header[8]).ok_or(Malformed::Truncated),
        Some(6) => packet.first_chunk::<40>().map(|header| header[7]).ok_or(Malformed::Truncated),
        Some(_) => Err(Malformed::Version),
        None => Err(Malformed::Truncated),
    }
}

fn ipv4(packet: &mut [u8]) -> Result<HopLimit, Malformed> {
    let header: &mut [u8; 20] = packet.first_chunk_mut().ok_or(Malformed::Truncated)?;
    let Some(left) = header[8].checked_sub(1).filter(|left| *left > 0) else {
        return Ok(HopLimit::Exceeded);
    };
    let old = u16::from_be_bytes([header[8], header[9]]);
    let new = u16::from_be_bytes([left, header[9]]);
    let sum = checksum::updated(u16::from_be_bytes([header[10], header[11]]), old, new);
    header[8] = left;
    [header[10], header[11]] = sum.to_be_bytes();
    Ok(HopLimit::Left(left))
}

fn ipv6(packet: &mut [u8]) -> Result<HopLimit, Malformed> {
    let header: &mut [u8; 40] = packet.first_chunk_mut().ok_or(Malformed::Truncated)?;
    let Some(left) = header[7].checked_sub(1).filter(|left| *left > 0) else {
        return Ok(HopLimit::Exceeded);
    };
    header[7] = left;
    Ok(HopLimit::Left(left))
}
