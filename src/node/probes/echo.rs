//! ICMP echo requests of the control plane, and what comes back to them.

use srv6::ip::ipv4::Ipv4View;
use srv6::ip::ipv6::{Header, Ipv6View};
use srv6::ip::{checksum, icmp_quote, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ECHO_LEN: usize = 8;
/// Octets of data in a probe, as much as `ping` sends.
const DATA_LEN: usize = 56;

const V4_ECHO_REPLY: u8 = 0;
const V4_UNREACHABLE: u8 = 3;
const V4_ECHO_REQUEST: u8 = 8;
const V4_TIME_EXCEEDED: u8 = 11;
const V6_UNREACHABLE: u8 = 1;
const V6_TOO_BIG: u8 = 2;
const V6_TIME_EXCEEDED: u8 = 3;
const V6_PARAMETER_PROBLEM: u8 = 4;
const V6_ECHO_REQUEST: u8 = 128;
const V6_ECHO_REPLY: u8 = 129;

/// What came back to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The destination answered.
    Reply,
    /// The hop limit ran out on the way.
    HopLimit,
    /// Another error, in words.
    Error(&'static str),
}

/// An answer to a probe of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) identifier: u16,
    pub(crate) sequence: u16,
    pub(crate) from: IpAddr,
    pub(crate) outcome: Outcome,
}

/// An echo request; `None` if the addresses are of two families.
pub(crate) fn request(
    source: IpAddr,
    destination: IpAddr,
    identifier: u16,
    sequence: u16,
    hop_limit: u8,
) -> Option<Vec<u8>> {
    let mut echo = vec![0_u8; ECHO_LEN + DATA_LEN];
    echo[4..6].copy_from_slice(&identifier.to_be_bytes());
    echo[6..8].copy_from_slice(&sequence.to_be_bytes());
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            echo[0] = V4_ECHO_REQUEST;
            let sum = checksum::of(&echo);
            echo[2..4].copy_from_slice(&sum.to_be_bytes());
            Some([ipv4_header(source, destination, hop_limit, echo.len()).as_slice(), &echo].concat())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            echo[0] = V6_ECHO_REQUEST;
            let sum = checksum::transport(source, destination, protocol::ICMPV6, &echo);
            echo[2..4].copy_from_slice(&sum.to_be_bytes());
            let header = Header {
                traffic_class: 0,
                flow_label: 0,
                payload_len: u16::try_from(echo.len()).ok()?,
                next_header: protocol::ICMPV6,
                hop_limit,
                source: from,
                destination: to,
            };
            Some([header.to_octets().as_slice(), &echo].concat())
        }
        _ => None,
    }
}

fn ipv4_header(source: Ipv4Addr, destination: Ipv4Addr, ttl: u8, payload_len: usize) -> [u8; 20] {
    let mut header = [0_u8; 20];
    header[0] = 0x45;
    let total = u16::try_from(20 + payload_len).unwrap_or(u16::MAX);
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[8] = ttl;
    header[9] = protocol::ICMP;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let sum = checksum::of(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// Read an answer: an echo reply, or an ICMP error that quotes one of our requests, bare or in an envelope.
pub(crate) fn answer(packet: &[u8]) -> Option<Answer> {
    match packet.first()? >> 4 {
        4 => answer_v4(packet),
        6 => answer_v6(packet),
        _ => None,
    }
}

fn answer_v4(packet: &[u8]) -> Option<Answer> {
    let ip = Ipv4View::parse(packet).ok()?;
    if ip.protocol() != protocol::ICMP {
        return None;
    }
    let icmp = ip.payload();
    let from = IpAddr::V4(ip.source());
    let outcome = match *icmp.first()? {
        V4_ECHO_REPLY => return reply(icmp, from),
        V4_TIME_EXCEEDED => Outcome::HopLimit,
        V4_UNREACHABLE => Outcome::Error("unreachable"),
        _ => return None,
    };
    quoted(icmp.get(ECHO_LEN..)?, from, outcome)
}

fn answer_v6(packet: &[u8]) -> Option<Answer> {
    let ip = Ipv6View::parse(packet).ok()?;
    let upper = ip.upper_layer().ok()?;
    if upper.protocol != protocol::ICMPV6 {
        return None;
    }
    let icmp = upper.bytes;
    let from = IpAddr::V6(ip.source());
    let outcome = match *icmp.first()? {
        V6_ECHO_REPLY => return reply(icmp, from),
        V6_TIME_EXCEEDED => Outcome::HopLimit,
        V6_UNREACHABLE => Outcome::Error("unreachable"),
        V6_TOO_BIG => Outcome::Error("packet too big"),
        V6_PARAMETER_PROBLEM => Outcome::Error("parameter problem"),
        _ => return None,
    };
    match icmp_quote::quoted_traveller(packet) {
        Some(traveller) => quoted(traveller.inner, from, outcome),
        None => quoted(icmp.get(ECHO_LEN..)?, from, outcome),
    }
}

fn reply(icmp: &[u8], from: IpAddr) -> Option<Answer> {
    let (identifier, sequence) = numbers(icmp)?;
    Some(Answer { identifier, sequence, from, outcome: Outcome::Reply })
}

/// The request inside an error. The quote may be cut, so only fixed positions are read.
fn quoted(packet: &[u8], from: IpAddr, outcome: Outcome) -> Option<Answer> {
    let (header_len, next, kind) = match packet.first()? >> 4 {
        4 => (usize::from(packet.first()? & 0xf) * 4, *packet.get(9)?, (protocol::ICMP, V4_ECHO_REQUEST)),
        6 => (40, *packet.get(6)?, (protocol::ICMPV6, V6_ECHO_REQUEST)),
        _ => return None,
    };
    let icmp = packet.get(header_len..)?;
    if (next, *icmp.first()?) != kind {
        return None;
    }
    let (identifier, sequence) = numbers(icmp)?;
    Some(Answer { identifier, sequence, from, outcome })
}

fn numbers(icmp: &[u8]) -> Option<(u16, u16)> {
    let identifier = u16::from_be_bytes([*icmp.get(4)?, *icmp.get(5)?]);
    Some((identifier, u16::from_be_bytes([*icmp.get(6)?, *icmp.get(7)?])))
}

/// The unspecified address of the family of `address`.
pub(crate) fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srv6::ip::icmp_error;

    fn v6(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_error_about_a_probe_is_recognised() {
        let probe = request(v6("fd00::1"), v6("fd00::2"), 7, 9, 1).expect("one family");
        let mut error = [0; icmp_error::MAX_LEN];
        let length = icmp_error::time_exceeded(v6("fd00::b"), &probe, &mut error).expect("answered");
        let found = answer(&error[..length]).expect("recognised");
        let expected = Answer { identifier: 7, sequence: 9, from: v6("fd00::b"), outcome: Outcome::HopLimit };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_reply_is_recognised_and_a_request_is_not() {
        let mut packet = request(v6("10.0.0.1"), v6("10.0.0.2"), 3, 4, 64).expect("one family");
        assert_eq!(answer(&packet), None);
        packet[20] = V4_ECHO_REPLY;
        let found = answer(&packet).expect("recognised");
        assert_eq!((found.identifier, found.sequence, found.outcome), (3, 4, Outcome::Reply));
        assert_eq!(request(v6("10.0.0.1"), v6("fd00::1"), 0, 0, 1), None);
    }
}
