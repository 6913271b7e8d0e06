//! Authenticated inner packets: punted, delivered, processed as segments, or relayed.

use super::egress::Egress;
use super::icmp::{Interest, interest};
use super::inbound::Arrived;
use super::outbound::{Way, answer_to};
use super::pipeline::{Memo, Pipeline, Turn};
use super::relay_run::{InPlace, RelayRun};
use super::ring::Punt;
use super::super_packet::SuperPacket;
use super::{Decision, DropReason, Forwarding, LinkId, LinkPath, Local, Origin, decide, packet, route};
use srv6::ip::icmp_error::IcmpError;
use srv6::ip::{FlowKey, HopLimit, decrement_hop_limit, ecn, mss};
use srv6::{Behaviour, Error, Outcome, Violation};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Segments of this node that one packet may visit without leaving: more is a list of repeats.
const VISITS: usize = 17;

impl Pipeline {
    /// One packet out of an ESP datagram.
    #[inline]
    pub(super) fn inner(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        payload: Range<usize>,
        next_header: u8,
    ) {
        if next_header != esp::NEXT_HEADER_IPV4 && next_header != esp::NEXT_HEADER_IPV6 {
            return self.drop(DropReason::UnknownNextHeader, 1);
        }
        let Some(length) = packet::length(&buffer[payload.clone()], next_header) else {
            return self.drop(DropReason::Malformed, 1);
        };
        let packet = payload.start..payload.start + length;
        if arrived.ecn != ecn::NOT_ECT && !combine_ecn(&mut buffer[packet.clone()], arrived.ecn) {
            return self.drop(DropReason::CongestionUnmarkable, 1);
        }
        let Some(decision) = self.decide_inner(turn.forwarding, &buffer[packet.clone()], arrived.link) else {
            return self.drop(DropReason::Malformed, 1);
        };
        match decision {
            Decision::Local => self.local(turn, buffer, arrived, packet),
            Decision::Link { link, .. } => {
                self.relay(turn, buffer, arrived, packet, link, Hop::ToCount);
            }
            Decision::LocalSid(behaviour) => {
                self.segment(turn, buffer, arrived, packet, behaviour);
            }
            Decision::Punt => self.punt(turn, &buffer[packet], arrived),
            Decision::Drop(reason) => {
                let origin = Origin::Link(arrived.link);
                self.refuse(turn, &buffer[packet], reason, origin);
            }
        }
    }

    /// Decides, unless the last packet had the same addresses: for packets from a link nothing
    /// else counts.
    #[inline]
    fn decide_inner(&mut self, forwarding: &Forwarding, bytes: &[u8], link: LinkId) -> Option<Decision> {
        let (source, destination) = addresses(bytes)?;
        if let Some(memo) = &self.memo
            && memo.link == link
            && memo.destination == destination
            && memo.source == source
        {
            return Some(memo.decision);
        }
        let flow = FlowKey::parse(bytes).ok()?;
        let decision = decide(forwarding, &flow, Origin::Link(link));
        self.memo = Some(Memo { source, destination, link, decision });
        Some(decision)
    }

    /// To the kernel, unless it is an answer to the control plane's own probe.
    fn local(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        packet: Range<usize>,
    ) {
        let bytes = &mut buffer[packet.clone()];
        match interest(bytes, turn.forwarding.probe_identifier) {
            Interest::None => {}
            Interest::Probe => return self.punt(turn, bytes, arrived),
            Interest::Envelope => {
                self.punt(turn, bytes, arrived);
                return self.translate_error(turn, bytes);
            }
        }
        if packet::is_tcp_syn(bytes) {
            let link = turn.forwarding.link(arrived.link).map_or(u16::MAX, |link| link.mtu);
            mss::clamp(bytes, usize::from(link.min(turn.forwarding.tun_mtu)));
        }
        self.coalescer.push(buffer, packet, turn.egress);
    }

    pub(super) fn punt(&mut self, turn: &mut Turn<'_, impl Egress>, bytes: &[u8], arrived: &Arrived) {
        let punt = Punt::Packet { link: arrived.link, packet: bytes.to_vec(), arrival: arrived.arrival };
        if !turn.egress.punt(punt) {
            self.drop(DropReason::PuntRingFull, 1);
        }
    }

    /// Drops a packet and tells its sender where one is to be told.
    fn refuse(&mut self, turn: &mut Turn<'_, impl Egress>, bytes: &[u8], reason: DropReason, origin: Origin) {
        self.drop(reason, 1);
        if let Some(error) = answer_to(reason) {
            self.error(turn, error, bytes, origin);
        }
    }

    /// The packet is addressed to a segment of ours.
    fn segment(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        packet: Range<usize>,
        behaviour: Behaviour,
    ) {
        let (mut packet, mut behaviour) = (packet, behaviour);
        let requirement = turn.forwarding.link(arrived.link).map(|link| link.hmac).unwrap_or_default();
        if let Err(error) = turn.forwarding.hmac_keys.check(&buffer[packet.clone()], requirement) {
            return self.refuse_segment(turn, &buffer[packet], arrived, &error);
        }
        for _ in 0..VISITS {
            match srv6::process(&mut buffer[packet.clone()], behaviour) {
                Ok(Outcome::Forward { packet: moved, destination, adjacency }) => {
                    packet = packet.start + moved.start..packet.start + moved.end;
                    match next_segment(turn.forwarding, destination, adjacency) {
                        Next::Here(next) => behaviour = next,
                        Next::Decided(decision) => {
                            return self.forward(turn, buffer, arrived, packet, decision);
                        }
                    }
                }
                Ok(Outcome::Decapsulated { inner }) => {
                    let inner = packet.start + inner.start..packet.start + inner.end;
                    return self.decapsulated(turn, buffer, arrived, inner, behaviour);
                }
                Ok(Outcome::UpperLayer { .. }) => return self.punt(turn, &buffer[packet], arrived),
                Err(error) => return self.refuse_segment(turn, &buffer[packet], arrived, &error),
            }
        }
        self.drop(DropReason::SegmentRouting, 1);
    }

    fn refuse_segment(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        bytes: &[u8],
        arrived: &Arrived,
        error: &Error,
    ) {
        self.drop(reason(error), 1);
        if let Some(icmp) = error.icmp() {
            self.error(turn, icmp, bytes, Origin::Link(arrived.link));
        }
    }

    /// A packet whose destination was rewritten and whose hop is counted.
    fn forward(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        packet: Range<usize>,
        decision: Decision,
    ) {
        match decision {
            Decision::Link { link, .. } => {
                self.relay(turn, buffer, arrived, packet, link, Hop::Counted);
            }
            Decision::Local => self.local(turn, buffer, arrived, packet),
            Decision::LocalSid(_) | Decision::Punt => self.punt(turn, &buffer[packet], arrived),
            Decision::Drop(reason) => {
                let origin = Origin::Link(arrived.link);
                self.refuse(turn, &buffer[packet], reason, origin);
            }
        }
    }

    /// The envelope is gone: the inner packet goes its own way.
    fn decapsulated(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        inner: Range<usize>,
        behaviour: Behaviour,
    ) {
        let Ok(flow) = FlowKey::parse(&buffer[inner.clone()]) else {
            return self.drop(DropReason::Malformed, 1);
        };
        let origin = Origin::Decapsulated(arrived.link, behaviour);
        match decide(turn.forwarding, &flow, origin) {
            Decision::Local => self.local(turn, buffer, arrived, inner),
            Decision::Link { link, .. } => {
                self.relay(turn, buffer, arrived, inner, link, Hop::ToCount);
            }
            Decision::Punt => self.punt(turn, &buffer[inner], arrived),
            Decision::LocalSid(_) => self.drop(DropReason::NestedSid, 1),
            Decision::Drop(reason) => self.refuse(turn, &buffer[inner], reason, origin),
        }
    }

    /// On to another link: from the place where the packet stands if it can be, else by a copy.
    #[inline]
    fn relay(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        packet: Range<usize>,
        link: LinkId,
        hop: Hop,
    ) {
        let bytes = &mut buffer[packet.clone()];
        if hop == Hop::ToCount && !matches!(decrement_hop_limit(bytes), Ok(HopLimit::Left(_))) {
            self.drop(DropReason::HopLimitExceeded, 1);
            let origin = Origin::Link(arrived.link);
            return self.error(turn, IcmpError::TimeExceeded, bytes, origin);
        }
        let Some(out) = turn.forwarding.link(link) else { return self.drop(DropReason::LinkDown, 1) };
        if packet::is_tcp_syn(bytes) {
            let back = turn.forwarding.link(arrived.link).map_or(u16::MAX, |link| link.mtu);
            mss::clamp(bytes, usize::from(out.mtu.min(back)));
        }
        self.counters.relayed.add(1, packet.len() as u64);
        if packet.len() > usize::from(out.mtu) || !self.relay_in_place(turn, buffer, arrived, &packet, out) {
            self.relay_copy(turn, buffer, arrived, packet, out);
        }
    }

    /// Adds the packet to the growing run, or begins a new one with it; false if it has to be copied.
    #[inline]
    fn relay_in_place(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        packet: &Range<usize>,
        out: &LinkPath,
    ) -> bool {
        let bytes = &buffer[packet.clone()];
        let Some(next_header) = packet::next_header_of(bytes) else { return false };
        let route = Self::train_route(turn.forwarding, out, packet::ecn(bytes), turn.now);
        let here = InPlace { packet: packet.clone(), next_header };
        if self.run.as_mut().is_some_and(|run| run.extend(&route, &here, &arrived.datagram)) {
            return true;
        }
        if !here.fits(&arrived.datagram) {
            return false;
        }
        self.send_run(turn, buffer);
        self.run = RelayRun::begin(out, route, &here);
        self.run.is_some()
    }

    /// A packet that lost an envelope, or has to be fragmented, moves to a send buffer.
    fn relay_copy(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        arrived: &Arrived,
        packet: Range<usize>,
        out: &LinkPath,
    ) {
        // What is before it in the buffer goes before it.
        self.send_run(turn, buffer);
        let bytes = &buffer[packet];
        let Ok(flow) = FlowKey::parse(bytes) else { return self.drop(DropReason::Malformed, 1) };
        let way = Way { link: out, policy: None };
        let origin = Origin::Link(arrived.link);
        self.send(turn, way, &SuperPacket::plain(bytes), bytes, &flow, origin);
    }

    /// Seals and sends the run that is growing.
    pub(super) fn send_run(&mut self, turn: &mut Turn<'_, impl Egress>, buffer: &mut [u8]) {
        let Some(run) = self.run.take() else { return };
        let Some(link) = run.route.link.and_then(|link| turn.forwarding.link(link)) else { return };
        match run.send(buffer, &mut self.outbox, turn.egress) {
            Ok((packets, bytes)) => link.counters.sent.add(packets, bytes),
            Err((reason, packets)) => self.drop_on_link(turn, link, reason, packets),
        }
    }
}

/// Whether this node's hop is counted already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hop {
    Counted,
    ToCount,
}

/// Where a packet goes after a segment of ours.
enum Next {
    /// To another segment of ours.
    Here(Behaviour),
    /// Somewhere else.
    Decided(Decision),
}

fn next_segment(forwarding: &Forwarding, destination: Ipv6Addr, adjacency: Option<u16>) -> Next {
    if let Some(link) = adjacency {
        let link = LinkId(u32::from(link));
        return Next::Decided(if forwarding.is_up(link) {
            Decision::Link { link, policy: None }
        } else {
            Decision::Drop(DropReason::LinkDown)
        });
    }
    match forwarding.locals.lookup(destination.into()) {
        Some(Local::Sid(behaviour)) => Next::Here(behaviour),
        Some(Local::Address) => Next::Decided(Decision::Local),
        Some(Local::Probe) => Next::Decided(Decision::Punt),
        None => Next::Decided(route(forwarding, destination.into(), Origin::Node)),
    }
}

/// Combines the outer header's congestion mark with the inner packet's; false if it must be dropped.
//= RFC 6040 §4.2
fn combine_ecn(bytes: &mut [u8], outer: u8) -> bool {
    let inner = packet::ecn(bytes);
    match ecn::decapsulated(inner, outer) {
        Some(combined) => {
            if combined != inner {
                packet::set_ecn(bytes, combined);
            }
            true
        }
        None => false,
    }
}

/// Source and destination of a packet whose length was checked.
#[inline]
fn addresses(bytes: &[u8]) -> Option<(IpAddr, IpAddr)> {
    if bytes.first()? >> 4 == 4 {
        let source = Ipv4Addr::from(*bytes.get(12..)?.first_chunk::<4>()?);
        let destination = Ipv4Addr::from(*bytes.get(16..)?.first_chunk::<4>()?);
        return Some((source.into(), destination.into()));
    }
    let source = Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
    let destination = Ipv6Addr::from(*bytes.get(24..)?.first_chunk::<16>()?);
    Some((source.into(), destination.into()))
}

fn reason(error: &Error) -> DropReason {
    match error {
        Error::Violation(Violation::HopLimitExceeded) => DropReason::HopLimitExceeded,
        Error::Violation(Violation::SegmentsRemain { .. }) => DropReason::SegmentsLeft,
        Error::Violation(Violation::UpperLayer { .. }) => DropReason::UpperLayerAtSid,
        Error::Violation(Violation::Hmac { .. }) => DropReason::SegmentListUnsigned,
        Error::Violation(Violation::Inner) => DropReason::InnerMismatch,
        Error::Violation(Violation::CongestionLost) => DropReason::CongestionUnmarkable,
        Error::Malformed(_) => DropReason::Malformed,
        _ => DropReason::SegmentRouting,
    }
}
