//! ICMPv6 errors (RFC 4443).

use std::net::Ipv6Addr;

use super::icmp_error::{IcmpError, MAX_LEN, NotAnswered, Unreachable};
use super::ipv6::{self, Header};
use super::{Ipv6View, checksum, protocol};
use crate::error::Misuse;

/// Bytes of IPv6 and ICMPv6 header.
const HEADERS_LEN: usize = ipv6::HEADER_LEN + 8;

const HOP_LIMIT: u8 = 64;
/// IPv6 promises that packets of this size pass everywhere (RFC 8200 §5).
const MIN_MTU: u32 = 1280;
/// ICMPv6 types below are errors.
const FIRST_INFORMATIONAL: u8 = 128;
const REDIRECT: u8 = 137;
/// Parameter Problem code "unrecognized IPv6 option".
const UNRECOGNIZED_OPTION: u8 = 2;

pub(super) fn write(
    error: IcmpError,
    source: Ipv6Addr,
    invoking: &[u8],
    out: &mut [u8],
) -> Result<usize, NotAnswered> {
    let destination = may_answer(error, invoking)?;
    //= RFC 4443 §2.4 (c)
    // As much of the packet as fits the minimum MTU.
    let quoted = invoking.get(..HEADERS_LEN.abs_diff(MAX_LEN)).unwrap_or(invoking);
    let len = HEADERS_LEN.saturating_add(quoted.len());
    let packet = out.get_mut(..len).ok_or(Misuse::BufferTooShort)?;
    let (ip, message) =
        packet.split_first_chunk_mut::<{ ipv6::HEADER_LEN }>().ok_or(Misuse::BufferTooShort)?;
    *ip = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_len: u16::try_from(message.len()).map_err(|_| Misuse::TooLong)?,
        next_header: protocol::ICMPV6,
        hop_limit: HOP_LIMIT,
        source,
        destination,
    }
    .to_octets();
    write_message(error, source, destination, quoted, message)?;
    Ok(len)
}

fn write_message(
    error: IcmpError,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    quoted: &[u8],
    message: &mut [u8],
) -> Result<(), Misuse> {
    let (kind, code, rest) = describe(error);
    let (header, quote) = message.split_first_chunk_mut::<8>().ok_or(Misuse::BufferTooShort)?;
    *header = [kind, code, 0, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&rest.to_be_bytes());
    quote.copy_from_slice(quoted);
    let sum = checksum::transport(source.into(), destination.into(), protocol::ICMPV6, message);
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    Ok(())
}

/// Checks that an error may be sent about the packet, and returns to whom.
///
//= RFC 4443 §2.4 (e)
fn may_answer(error: IcmpError, invoking: &[u8]) -> Result<Ipv6Addr, NotAnswered> {
    let packet = Ipv6View::parse_cut(invoking)?;
    let upper = packet.upper_layer()?;
    if upper.protocol == protocol::ICMPV6 {
        // The type of a fragment's message may be unknown: then it may be an error.
        let later = upper.fragment.is_some_and(|fragment| fragment.offset != 0);
        let kind = upper.bytes.first().filter(|_| !later);
        if kind.is_none_or(|kind| *kind < FIRST_INFORMATIONAL || *kind == REDIRECT) {
            return Err(NotAnswered::IcmpError);
        }
    }
    let tells_many = matches!(
        error,
        IcmpError::PacketTooBig { .. } | IcmpError::ParameterProblem { code: UNRECOGNIZED_OPTION, .. }
    );
    if packet.destination().is_multicast() && !tells_many {
        return Err(NotAnswered::Multicast);
    }
    let source = packet.source();
    if source.is_unspecified() || source.is_multicast() || source.is_loopback() {
        return Err(NotAnswered::Source);
    }
    Ok(source)
}

/// Type, code and the four bytes behind the checksum.
const fn describe(error: IcmpError) -> (u8, u8, u32) {
    match error {
        IcmpError::Unreachable(reason) => {
            let code = match reason {
                Unreachable::NoRoute => 0,
                Unreachable::Prohibited => 1,
                Unreachable::Address => 3,
                Unreachable::Port => 4,
            };
            (1, code, 0)
        }
        IcmpError::PacketTooBig { mtu } => (2, 0, if mtu < MIN_MTU { MIN_MTU } else { mtu }),
        IcmpError::TimeExceeded => (3, 0, 0),
        IcmpError::ParameterProblem { code, pointer } => (4, code, pointer),
    }
}
