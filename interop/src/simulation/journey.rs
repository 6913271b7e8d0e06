//! Where packets have been.

use super::{NodeId, PacketId};
use std::time::Duration;

/// One step of a packet on the underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// When it was sent.
    pub at: Duration,
    /// By whom.
    pub from: NodeId,
    /// To whom; `None` if no node is at the address.
    pub to: Option<NodeId>,
    /// Octets of the datagram.
    pub length: usize,
    /// Whether the underlay lost it.
    pub lost: bool,
}

/// A packet's arrival at an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Duration,
    /// Where.
    pub node: NodeId,
    /// Whether the payload is what was sent.
    pub intact: bool,
}

/// All that happened to a packet and because of it.
///
/// The hops are known by cause: a worker handles one datagram in a turn, so what it sends in that turn is the
/// packet on its way, or an ICMP error about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journey {
    /// When it was sent.
    pub sent_at: Duration,
    /// By an application of this node.
    pub from: NodeId,
    /// Its steps on the underlay.
    pub hops: Vec<Hop>,
    /// Its arrivals at applications: more than one if it was duplicated.
    pub arrivals: Vec<Arrival>,
}

impl Journey {
    /// The nodes that it visited, the sender first.
    pub fn visited(&self) -> Vec<NodeId> {
        let steps = self.hops.iter().filter(|hop| !hop.lost).filter_map(|hop| hop.to);
        std::iter::once(self.from).chain(steps).collect()
    }

    /// Where it first arrived, and how long that took.
    pub fn arrival(&self) -> Option<(NodeId, Duration)> {
        let first = self.arrivals.iter().find(|arrival| arrival.intact)?;
        Some((first.node, first.at - self.sent_at))
    }
}

/// The journeys of all packets since the last [`Journeys::forget`].
#[derive(Default)]
pub(super) struct Journeys {
    forgotten: u64,
    kept: Vec<Journey>,
}

impl Journeys {
    pub(super) fn begin(&mut self, from: NodeId, sent_at: Duration) -> PacketId {
        self.kept.push(Journey { sent_at, from, hops: Vec::new(), arrivals: Vec::new() });
        PacketId(self.forgotten + self.kept.len() as u64 - 1)
    }

    pub(super) fn get(&self, packet: PacketId) -> &Journey {
        match self.index(packet).and_then(|index| self.kept.get(index)) {
            Some(journey) => journey,
            None => panic!("{packet:?} was never sent, or is forgotten"),
        }
    }

    /// For what still happens to a packet; `None` if it is forgotten.
    pub(super) fn get_mut(&mut self, packet: PacketId) -> Option<&mut Journey> {
        let index = self.index(packet)?;
        self.kept.get_mut(index)
    }

    pub(super) fn forget(&mut self) {
        self.forgotten += self.kept.len() as u64;
        self.kept.clear();
    }

    fn index(&self, packet: PacketId) -> Option<usize> {
        usize::try_from(packet.0.checked_sub(self.forgotten)?).ok()
    }
}
