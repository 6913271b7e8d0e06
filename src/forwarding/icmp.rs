//! ICMP errors that this node originates, and those that it intercepts.

use super::egress::Egress;
use super::pipeline::{Pipeline, Turn};
use super::{Forwarding, Origin, packet};
use crate::policy::Class;
use srv6::ip::icmp_error::{self, IcmpError};
use srv6::ip::icmp_quote::quoted_traveller;
use srv6::ip::{Ipv4View, Ipv6View, protocol};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How many errors of a kind may leave at once, and the pause that one more costs.
//= RFC 4443 §2.4 (f)
const BURST: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Token buckets: path-MTU errors have their own, so that a flood of unroutable packets cannot
/// starve what TCP waits for.
#[derive(Debug)]
pub(super) struct ErrorLimit {
    too_big: Bucket,
    other: Bucket,
}

#[derive(Debug)]
struct Bucket {
    tokens: u32,
    refilled: Instant,
}

impl ErrorLimit {
    pub(super) fn new(now: Instant) -> Self {
        let full = || Bucket { tokens: BURST, refilled: now };
        ErrorLimit { too_big: full(), other: full() }
    }

    fn allows(&mut self, error: IcmpError, now: Instant) -> bool {
        match error {
            IcmpError::PacketTooBig { .. } => self.too_big.take(now),
            _ => self.other.take(now),
        }
    }
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let pauses = now.saturating_duration_since(self.refilled).as_millis() / PAUSE.as_millis();
        let pauses = u32::try_from(pauses).unwrap_or(u32::MAX);
        if pauses > 0 {
            self.tokens = self.tokens.saturating_add(pauses).min(BURST);
            self.refilled = now;
        }
        let allowed = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        allowed
    }
}

impl Pipeline {
    /// Tells the source of `invoking` about an error, if a packet of this kind is answered.
    pub(super) fn error(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        error: IcmpError,
        invoking: &[u8],
        origin: Origin,
    ) {
        let Some(source) = error_source(turn.forwarding, invoking, origin) else { return };
        self.error_from(turn, error, source, invoking, origin);
    }

    fn error_from(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        error: IcmpError,
        source: IpAddr,
        invoking: &[u8],
        origin: Origin,
    ) {
        if !self.errors.allows(error, turn.now) {
            return self.counters.icmp_suppressed.add(1);
        }
        let mut out = [0; icmp_error::MAX_LEN];
        let Ok(len) = icmp_error::write(error, source, invoking, &mut out) else { return };
        self.counters.icmp_errors.add(1);
        match origin {
            Origin::Tun(_) => self.deliver_copy(turn, &out[..len]),
            Origin::Link(_) | Origin::Decapsulated(..) | Origin::Node => {
                self.originate(turn, &out[..len]);
            }
        }
    }

    /// An ICMP error about an envelope of ours: tells the traveller's sender instead.
    //= RFC 2473 §8, RFC 8754 §5.4
    pub(super) fn translate_error(&mut self, turn: &mut Turn<'_, impl Egress>, error: &[u8]) {
        let Some(quoted) = quoted_traveller(error) else { return };
        if quoted.error != IcmpError::TimeExceeded {
            return self.error(turn, quoted.inner_error, quoted.inner, Origin::Tun(Class::NONE));
        }
        // The envelope had the traveller's own hop limit, so the traveller's hops have run out, and traceroute gets to
        // see the stop. In ICMPv4 the stop has no address that is known here, so the error looks like all others.
        let source = match packet::next_header_of(quoted.inner) {
            Some(esp::NEXT_HEADER_IPV6) => Some(IpAddr::V6(quoted.reporter)),
            _ => error_source(turn.forwarding, quoted.inner, Origin::Tun(Class::NONE)),
        };
        let Some(source) = source else { return };
        self.error_from(turn, IcmpError::TimeExceeded, source, quoted.inner, Origin::Tun(Class::NONE));
    }
}

/// The address that an error comes from.
///
/// Towards the TUN it is the destination that the packet had: the kernel refuses its own
/// addresses as a source, and for this one it has a route that leads to the TUN.
fn error_source(forwarding: &Forwarding, invoking: &[u8], origin: Origin) -> Option<IpAddr> {
    match (packet::next_header_of(invoking)?, origin) {
        (esp::NEXT_HEADER_IPV4, Origin::Tun(_)) => address(invoking.get(16..20)?),
        (esp::NEXT_HEADER_IPV4, _) => Some(forwarding.node_address_v4.into()),
        (_, Origin::Tun(_)) => address(invoking.get(24..40)?),
        (_, _) => Some(forwarding.node_address.into()),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => octets.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        _ => octets.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
    }
}

/// What a locally addressed packet means to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Nothing: the kernel gets it.
    None,
    /// An answer to a probe of the control plane's.
    Probe,
    /// An error about an envelope that this node wrote around somebody's packet.
    Envelope,
}

/// Looks for answers to our own probes, and for errors about our own envelopes.
pub(super) fn interest(packet: &[u8], probe_identifier: Option<u16>) -> Interest {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.get(9) == Some(&protocol::ICMP) => interest_v4(packet, probe_identifier),
        Some(6) if packet.get(6) == Some(&protocol::ICMPV6) => interest_v6(packet, probe_identifier),
        _ => Interest::None,
    }
}

fn interest_v4(packet: &[u8], probe: Option<u16>) -> Interest {
    let Ok(view) = Ipv4View::parse(packet) else { return Interest::None };
    let Some((message, body)) = view.payload().split_first_chunk::<8>() else { return Interest::None };
    let is_ours = match message[0] {
        0 => identifier(message) == probe,
        3 | 11 | 12 => quotes_probe(body, probe),
        _ => false,
    };
    if is_ours && probe.is_some() { Interest::Probe } else { Interest::None }
}

fn interest_v6(packet: &[u8], probe: Option<u16>) -> Interest {
    let Ok(view) = Ipv6View::parse(packet) else { return Interest::None };
    let Some((message, body)) = view.payload().split_first_chunk::<8>() else { return Interest::None };
    match message[0] {
        129 if probe.is_some() && identifier(message) == probe => Interest::Probe,
        1..=4 => match quoted_traveller(packet) {
            // An envelope that its destination did not write is an invention of the sender's.
            Some(_) if body.get(8..24) != packet.get(24..40) => Interest::None,
            Some(quoted) if probe.is_some() && quotes_probe(quoted.inner, probe) => Interest::Probe,
            Some(_) => Interest::Envelope,
            None if probe.is_some() && quotes_probe(body, probe) => Interest::Probe,
            None => Interest::None,
        },
        _ => Interest::None,
    }
}

/// The identifier of an echo message.
fn identifier(message: &[u8]) -> Option<u16> {
    message.get(4..6).and_then(|octets| octets.first_chunk()).map(|octets| u16::from_be_bytes(*octets))
}

/// Whether the quoted packet, possibly cut short, is an echo request with this identifier.
fn quotes_probe(quoted: &[u8], probe: Option<u16>) -> bool {
    let echo = match quoted.first().map(|first| first >> 4) {
        Some(4) if quoted.get(9) == Some(&protocol::ICMP) => {
            quoted.get(usize::from(quoted[0] & 15) * 4..).filter(|echo| echo.first() == Some(&8))
        }
        Some(6) if quoted.get(6) == Some(&protocol::ICMPV6) => {
            quoted.get(40..).filter(|echo| echo.first() == Some(&128))
        }
        _ => None,
    };
    echo.and_then(identifier) == probe && probe.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_limited_by_kind() {
        let start = Instant::now();
        let mut limit = ErrorLimit::new(start);
        let unreachable = IcmpError::TimeExceeded;
        let sent = (0..1000).filter(|_| limit.allows(unreachable, start)).count();
        assert_eq!(sent, BURST as usize);
        assert!(limit.allows(IcmpError::PacketTooBig { mtu: 1280 }, start), "the other bucket is full");
        assert!(!limit.allows(unreachable, start + PAUSE / 2));
        assert!(limit.allows(unreachable, start + PAUSE));
        assert!(!limit.allows(unreachable, start + PAUSE));
    }

    #[test]
    fn only_our_echo_identifier_is_of_interest() {
        let mut reply = vec![0; 48];
        reply[0] = 0x60;
        reply[5] = 8;
        reply[6] = protocol::ICMPV6;
        reply[40] = 129;
        reply[44..46].copy_from_slice(&[0xab, 0xcd]);
        assert_eq!(interest(&reply, Some(0xabcd)), Interest::Probe);
        assert_eq!(interest(&reply, Some(0xabce)), Interest::None);
        assert_eq!(interest(&reply, None), Interest::None);
        assert_eq!(interest(&reply[..44], Some(0xabcd)), Interest::None);
    }
}
