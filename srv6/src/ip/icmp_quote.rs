//! Reads the packet that an ICMPv6 error quotes, and finds the traveller in a quoted envelope (RFC 2473 §8, RFC 8754
//! §5.4).
//!
//! A router on the way between two stops knows nothing of the traveller: its error goes to the source of the
//! envelope, the headend. The headend finds the inner packet in the quote and tells its sender.

use std::net::Ipv6Addr;

use super::icmp_error::{IcmpError, Unreachable};
use super::{Ipv6View, checksum, ipv4, ipv6, protocol};

/// An ICMP error about a packet that this node had put into an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedTraveller<'a> {
    /// Who reports it.
    pub reporter: Ipv6Addr,
    /// What the error says about the envelope.
    pub error: IcmpError,
    /// What it means for the inner packet: the MTU without the envelope, and no pointers into the envelope.
    pub inner_error: IcmpError,
    /// Source of the envelope: an address of this node, or the error is forged.
    pub envelope_source: Ipv6Addr,
    /// Where the journey was to end: the last segment, or the destination when no SRH is left.
    pub last_segment: Ipv6Addr,
    /// The inner packet as far as it was quoted; its length fields may claim more bytes.
    pub inner: &'a [u8],
    /// Bytes of the envelope in front of it.
    pub envelope_len: usize,
}

/// Reads an ICMPv6 error whose quoted packet is an IPv6 packet that carries another IP packet.
///
/// Returns `None` for anything else: no ICMPv6 error, a wrong checksum, a quote that ends before the inner IP header
/// does, or that holds no packet in a packet.
#[must_use]
pub fn quoted_traveller(packet: &[u8]) -> Option<QuotedTraveller<'_>> {
    let view = Ipv6View::parse(packet).ok()?;
    let (error, quote) = icmpv6_error(&view)?;
    let envelope = Ipv6View::parse_cut(quote).ok()?;
    let upper = envelope.upper_layer().ok()?;
    let inner_is_whole = match upper.protocol {
        protocol::IPV4 => starts_with_ip(upper.bytes, 4, ipv4::HEADER_LEN),
        protocol::IPV6 => starts_with_ip(upper.bytes, 6, ipv6::HEADER_LEN),
        _ => false,
    };
    if !inner_is_whole || upper.fragment.is_some_and(|fragment| fragment.offset != 0) {
        return None;
    }
    Some(QuotedTraveller {
        reporter: view.source(),
        error,
        inner_error: translate(error, upper.offset),
        envelope_source: envelope.source(),
        last_segment: last_segment(&envelope),
        inner: upper.bytes,
        envelope_len: upper.offset,
    })
}

/// The error and the quoted bytes of an ICMPv6 error message; `None` for anything else.
#[must_use]
pub fn icmpv6_error<'a>(packet: &Ipv6View<'a>) -> Option<(IcmpError, &'a [u8])> {
    let upper = packet.upper_layer().ok()?;
    if upper.protocol != protocol::ICMPV6 || upper.fragment.is_some() {
        return None;
    }
    let (source, destination) = (packet.source().into(), packet.destination().into());
    if checksum::transport(source, destination, protocol::ICMPV6, upper.bytes) != 0 {
        return None;
    }
    let (header, quote) = upper.bytes.split_first_chunk::<8>()?;
    let value = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let error = match (header[0], header[1]) {
        (1, code) => IcmpError::Unreachable(match code {
            1 | 5 | 6 => Unreachable::Prohibited,
            3 => Unreachable::Address,
            4 => Unreachable::Port,
            _ => Unreachable::NoRoute,
        }),
        (2, _) => IcmpError::PacketTooBig { mtu: value },
        (3, _) => IcmpError::TimeExceeded,
        (4, code) => IcmpError::ParameterProblem { code, pointer: value },
        _ => return None,
    };
    Some((error, quote))
}

//= RFC 2473 §8.1 to §8.3
/// What an error about the envelope means for the traveller. Its own hop limit and its own fields are innocent, so
/// all but "too big" and "prohibited" become "address unreachable".
fn translate(error: IcmpError, envelope_len: usize) -> IcmpError {
    match error {
        IcmpError::PacketTooBig { mtu } => {
            let envelope = u32::try_from(envelope_len).unwrap_or(u32::MAX);
            IcmpError::PacketTooBig { mtu: mtu.saturating_sub(envelope) }
        }
        IcmpError::Unreachable(Unreachable::Prohibited) => error,
        IcmpError::TimeExceeded | IcmpError::ParameterProblem { .. } | IcmpError::Unreachable(_) => {
            IcmpError::Unreachable(Unreachable::Address)
        }
    }
}

//= RFC 8754 §5.4
/// The destination to match flows by is Segment List\[0\], not the stop that the packet was on its way to.
fn last_segment(envelope: &Ipv6View<'_>) -> Ipv6Addr {
    let listed = envelope
        .extension_headers()
        .map_while(Result::ok)
        .filter(|header| header.kind == protocol::ROUTING)
        .find_map(|header| match header.bytes {
            [_, _, 4, _, _, _, _, _, segments @ ..] => segments.first_chunk::<16>().copied(),
            _ => None,
        });
    listed.map_or_else(|| envelope.destination(), Ipv6Addr::from)
}

fn starts_with_ip(bytes: &[u8], version: u8, header_len: usize) -> bool {
    bytes.len() >= header_len && bytes.first().is_some_and(|octet| octet >> 4 == version)
}
