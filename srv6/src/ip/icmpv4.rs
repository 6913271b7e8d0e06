//! ICMPv4 errors (RFC 792, RFC 1191, RFC 1812 §4.3).

use std::net::Ipv4Addr;

use super::icmp_error::{IcmpError, NotAnswered, Unreachable};
use super::{checksum, ipv4, protocol};
use crate::error::{Malformed, Misuse};

/// Bytes of IPv4 and ICMP header.
const HEADERS_LEN: usize = ipv4::HEADER_LEN + 8;

//= RFC 1812 §4.3.2.3
/// As much of the packet is quoted as fits a datagram of this size.
const MAX_LEN: usize = 576;

/// Precedence "internetwork control" (RFC 1812 §4.3.2.5).
const TRAFFIC_CLASS: u8 = 0xc0;
const DONT_FRAGMENT: [u8; 2] = [0x40, 0x00];
const TTL: u8 = 64;

/// Types that are errors or redirects, which must not be answered with an error.
const UNANSWERED_TYPES: [u8; 5] = [3, 4, 5, 11, 12];

pub(super) fn write(
    error: IcmpError,
    source: Ipv4Addr,
    invoking: &[u8],
    out: &mut [u8],
) -> Result<usize, NotAnswered> {
    let destination = may_answer(invoking)?;
    let quoted = invoking.get(..HEADERS_LEN.abs_diff(MAX_LEN)).unwrap_or(invoking);
    let len = HEADERS_LEN.saturating_add(quoted.len());
    let message = out.get_mut(..len).ok_or(Misuse::BufferTooShort)?;
    let (headers, quote) = message.split_first_chunk_mut::<HEADERS_LEN>().ok_or(Misuse::BufferTooShort)?;
    quote.copy_from_slice(quoted);
    *headers = ip_header(source, destination, len);
    let (kind, code, rest) = describe(error);
    headers[ipv4::HEADER_LEN] = kind;
    headers[ipv4::HEADER_LEN + 1] = code;
    headers[ipv4::HEADER_LEN + 4..].copy_from_slice(&rest);
    let sum = checksum::of(message.get(ipv4::HEADER_LEN..).unwrap_or_default());
    if let Some(field) = message.get_mut(ipv4::HEADER_LEN + 2..ipv4::HEADER_LEN + 4) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    Ok(len)
}

/// Checks that an error may be sent about the packet, and returns to whom.
///
//= RFC 1122 §3.2.2, RFC 1812 §4.3.2.7
fn may_answer(invoking: &[u8]) -> Result<Ipv4Addr, NotAnswered> {
    let fixed: &[u8; ipv4::HEADER_LEN] = invoking.first_chunk().ok_or(Malformed::Truncated)?;
    let payload = invoking.get(usize::from(fixed[0] & 0x0f) << 2..).ok_or(Malformed::HeaderLength)?;
    let source = Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]);
    let destination = Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]);
    if u16::from_be_bytes([fixed[6], fixed[7]]) & ipv4::OFFSET_MASK != 0 {
        return Err(NotAnswered::Fragment);
    }
    if fixed[9] == protocol::ICMP && payload.first().is_none_or(|kind| UNANSWERED_TYPES.contains(kind)) {
        return Err(NotAnswered::IcmpError);
    }
    if destination.is_multicast() || destination.is_broadcast() {
        return Err(NotAnswered::Multicast);
    }
    let reserved = source.octets()[0] >= 240;
    if source.octets()[0] == 0 || source.is_loopback() || source.is_multicast() || reserved {
        return Err(NotAnswered::Source);
    }
    Ok(source)
}

/// Type, code and the four bytes behind the checksum.
fn describe(error: IcmpError) -> (u8, u8, [u8; 4]) {
    match error {
        IcmpError::TimeExceeded => (11, 0, [0; 4]),
        IcmpError::PacketTooBig { mtu } => {
            let [high, low] = u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes();
            (3, 4, [0, 0, high, low])
        }
        IcmpError::ParameterProblem { pointer, .. } => {
            (12, 0, [u8::try_from(pointer).unwrap_or(u8::MAX), 0, 0, 0])
        }
        IcmpError::Unreachable(reason) => {
            let code = match reason {
                Unreachable::NoRoute => 0,
                Unreachable::Address => 1,
                Unreachable::Port => 3,
                Unreachable::Prohibited => 13,
            };
            (3, code, [0; 4])
        }
    }
}

fn ip_header(source: Ipv4Addr, destination: Ipv4Addr, len: usize) -> [u8; HEADERS_LEN] {
    let mut header = [0; HEADERS_LEN];
    header[0] = 0x45;
    header[1] = TRAFFIC_CLASS;
    header[2..4].copy_from_slice(&u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT);
    header[8] = TTL;
    header[9] = protocol::ICMP;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let sum = checksum::of(header.split_at(ipv4::HEADER_LEN).0);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}
