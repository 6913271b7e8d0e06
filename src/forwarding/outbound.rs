//! From the TUN, or from this node itself, to the links.

use super::egress::Egress;
use super::fragment::Fragments;
use super::outbox::{Envelope, Parcel};
use super::pipeline::{Pipeline, Turn};
use super::super_packet::SuperPacket;
use super::virtio::VirtioHeader;
use super::{
    CandidatePath, Decision, DropReason, Forwarding, LinkId, LinkPath, Origin, PolicyPath, decide, packet,
};
use crate::policy::Class;
use srv6::ip::icmp_error::{IcmpError, Unreachable};
use srv6::ip::{FlowKey, hop_limit};
use srv6::{FlowSummary, Malformed};
use std::io::IoSlice;

/// The way of one packet or super-packet to a link.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) link: &'a LinkPath,
    pub(super) policy: Option<(&'a PolicyPath, &'a CandidatePath)>,
}

impl<'a> Way<'a> {
    /// The policy's headers for this packet.
    fn envelope(&self, bytes: &[u8], flow: &FlowKey) -> Result<Option<Envelope<'a>>, Malformed> {
        let Some((_, candidate)) = self.policy else { return Ok(None) };
        let summary = FlowSummary::of(bytes, flow)?;
        Ok(Some(Envelope { encapsulation: &candidate.encapsulation, summary, hop_limit: hop_limit(bytes)? }))
    }

    /// The longest inner packet.
    pub(super) fn mtu(&self) -> usize {
        let link = usize::from(self.link.mtu);
        let Some((_, candidate)) = self.policy else { return link };
        let envelope = candidate.encapsulation.header_len();
        usize::from(candidate.mtu).min(link.saturating_sub(envelope))
    }
}

impl Pipeline {
    /// One frame from the TUN of a class: virtio header and packet or super-packet.
    pub fn from_tun(&mut self, turn: &mut Turn<'_, impl Egress>, class: Class, frame: &[u8]) {
        let Some((header, bytes)) = VirtioHeader::parse(frame) else {
            return self.drop(DropReason::BadOffload, 1);
        };
        match SuperPacket::parse(&header, bytes) {
            Ok(packet) => {
                self.counters.tun_read.add(packet.count() as u64, bytes.len() as u64);
                self.steer(turn, class, &packet, bytes);
            }
            Err(reason) => self.drop(reason, 1),
        }
    }

    /// A complete packet, treated as one from the TUN.
    pub(super) fn packet_from_tun(&mut self, turn: &mut Turn<'_, impl Egress>, bytes: &[u8]) {
        self.steer(turn, Class::NONE, &SuperPacket::plain(bytes), bytes);
    }

    fn steer(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        class: Class,
        packet: &SuperPacket<'_>,
        bytes: &[u8],
    ) {
        let (count, origin) = (packet.count() as u64, Origin::Tun(class));
        let Ok(flow) = FlowKey::parse(bytes) else { return self.drop(DropReason::Malformed, count) };
        match decide(turn.forwarding, &flow, origin) {
            Decision::Link { link, policy } => {
                let policy = policy.and_then(|steered| {
                    let policy = turn.forwarding.policies.get(usize::from(steered.policy.0))?;
                    Some((policy, policy.candidate(steered.candidate)?))
                });
                let Some(link) = turn.forwarding.link(link) else {
                    return self.drop(DropReason::LinkDown, count);
                };
                self.send(turn, Way { link, policy }, packet, bytes, &flow, origin);
            }
            Decision::Drop(reason) => {
                self.drop(reason, count);
                if reason == DropReason::PolicyUnreachable {
                    count_unreachable(turn.forwarding, &flow, class, count);
                }
                if let Some(error) = answer_to(reason) {
                    self.error(turn, error, bytes, origin);
                }
            }
            Decision::Local | Decision::LocalSid(_) | Decision::Punt => {
                self.drop(DropReason::OwnDestinationFromTun, count);
            }
        }
    }

    /// A packet of this node's own: routed, never steered.
    pub(super) fn originate(&mut self, turn: &mut Turn<'_, impl Egress>, bytes: &[u8]) {
        let Ok(flow) = FlowKey::parse(bytes) else { return self.drop(DropReason::Malformed, 1) };
        match decide(turn.forwarding, &flow, Origin::Node) {
            Decision::Local => self.deliver_copy(turn, bytes),
            Decision::Link { link, .. } => self.send_plain(turn, link, bytes),
            Decision::Drop(reason) => self.drop(reason, 1),
            Decision::LocalSid(_) | Decision::Punt => self.drop(DropReason::UpperLayerAtSid, 1),
        }
    }

    /// A complete packet for this link, whatever the routes say.
    pub(super) fn send_plain(&mut self, turn: &mut Turn<'_, impl Egress>, link: LinkId, bytes: &[u8]) {
        let Some(link) = turn.forwarding.link(link) else { return self.drop(DropReason::LinkDown, 1) };
        let Some(next_header) = packet::next_header_of(bytes) else {
            return self.drop(DropReason::Malformed, 1);
        };
        let route = Self::train_route(turn.forwarding, link, packet::ecn(bytes), turn.now);
        let parcel = Parcel { packet: SuperPacket::plain(bytes), envelope: None, next_header, clamp: None };
        match self.outbox.append(link, route, &parcel, turn.egress) {
            Ok(bytes) => link.counters.sent.add(1, bytes),
            Err(reason) => self.drop_on_link(turn, link, reason, 1),
        }
    }

    /// Sends to a link inside the policy's envelope, if what leaves fits.
    pub(super) fn send(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        way: Way<'_>,
        packet: &SuperPacket<'_>,
        bytes: &[u8],
        flow: &FlowKey,
        origin: Origin,
    ) {
        let mtu = way.mtu();
        if packet.segment_len(0) > mtu {
            return self.too_big(turn, way, packet, bytes, flow, origin);
        }
        let route = Self::train_route(turn.forwarding, way.link, packet::ecn(bytes), turn.now);
        let Ok(envelope) = way.envelope(bytes, flow) else {
            return self.drop(DropReason::Malformed, packet.count() as u64);
        };
        let Some(own) = packet::next_header_of(bytes) else { return self.drop(DropReason::Malformed, 1) };
        let next_header = if envelope.is_some() { esp::NEXT_HEADER_IPV6 } else { own };
        let clamp = packet::is_tcp_syn(bytes).then_some(mtu);
        let count = packet.count() as u64;
        let parcel = Parcel { packet: *packet, envelope, next_header, clamp };
        match self.outbox.append(way.link, route, &parcel, turn.egress) {
            Ok(octets) => {
                way.link.counters.sent.add(count, octets);
                if let Some((policy, _)) = way.policy {
                    policy.counters.steered.add(count, octets);
                }
            }
            Err(reason) => self.drop_on_link(turn, way.link, reason, count),
        }
    }

    /// Fragments what may be fragmented and answers the rest.
    //= RFC 791 §2.3, RFC 8200 §5
    fn too_big(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        way: Way<'_>,
        packet: &SuperPacket<'_>,
        bytes: &[u8],
        flow: &FlowKey,
        origin: Origin,
    ) {
        let mtu = way.mtu();
        if !packet::may_fragment(bytes) {
            self.drop(DropReason::TooBig, packet.count() as u64);
            let mtu = u32::try_from(mtu).unwrap_or(u32::MAX);
            return self.error(turn, IcmpError::PacketTooBig { mtu }, bytes, origin);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        for index in 0..packet.count() {
            let Some(segment) = scratch.get_mut(..packet.segment_len(index)) else { break };
            packet.write(index, segment);
            let mut fragments = Fragments::new(segment, mtu);
            let mut out = [0; 1500];
            while let Some(len) = fragments.next_into(&mut out) {
                let fragment = &out[..len];
                let plain = SuperPacket::plain(fragment);
                self.send(turn, way, &plain, fragment, flow, origin);
            }
        }
        self.scratch = scratch;
    }

    /// Writes a packet of this node's own to the TUN.
    pub(super) fn deliver_copy(&mut self, turn: &mut Turn<'_, impl Egress>, bytes: &[u8]) {
        let header = VirtioHeader::PLAIN.to_bytes();
        if turn.egress.deliver(&[IoSlice::new(&header), IoSlice::new(bytes)]) {
            self.counters.tun_written.add(1, bytes.len() as u64);
            self.counters.tun_writes.add(1);
        } else {
            self.drop(DropReason::TunRefused, 1);
        }
    }

    /// Counts a packet that a link could not take, and asks for a new security association when
    /// the present one is used up.
    pub(super) fn drop_on_link(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        link: &LinkPath,
        reason: DropReason,
        packets: u64,
    ) {
        self.drop(reason, packets);
        link.counters.dropped.add(packets);
        if reason == DropReason::SequenceExhausted {
            turn.egress.punt(super::Punt::SequenceExhausted { link: link.id });
        }
    }
}

/// Counts packets at the policy that dropped them.
fn count_unreachable(forwarding: &Forwarding, flow: &FlowKey, class: Class, count: u64) {
    let index = forwarding.steering.classify(flow, class);
    if let Some(policy) = index.and_then(|index| forwarding.policies.get(usize::from(index.0))) {
        policy.counters.unreachable.add(count);
    }
}

/// The ICMP error that tells a sender of the drop, where one is due.
pub(super) fn answer_to(reason: DropReason) -> Option<IcmpError> {
    match reason {
        DropReason::NoRoute => Some(IcmpError::Unreachable(Unreachable::NoRoute)),
        DropReason::Unreachable | DropReason::LinkDown | DropReason::PolicyUnreachable => {
            Some(IcmpError::Unreachable(Unreachable::Address))
        }
        DropReason::SidFromTun | DropReason::SidSourceOutside => {
            Some(IcmpError::Unreachable(Unreachable::Prohibited))
        }
        _ => None,
    }
}
