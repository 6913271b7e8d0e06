//! The network below: a link model for each direction of each pair of nodes.

use super::capture::{Captured, Kind};
use super::nat::Routers;
use super::{NodeId, PacketId, packet, random_seed};
use lab::{LinkModel, LinkSettings, Random};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use viamesh::runtime::memory::Wire;

/// IP and UDP headers of a datagram, for links with a rate.
const HEADERS_IP4: usize = 28;
const HEADERS_IP6: usize = 48;

/// A datagram under way.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    pub(super) wire: Wire,
    pub(super) contents: Vec<u8>,
    /// The packet that it carries, if it is known.
    pub(super) packet: Option<PacketId>,
}

/// What becomes of a datagram.
pub(super) struct Outcome {
    /// Addresses as they are on the underlay.
    pub(super) wire: Wire,
    pub(super) to: Option<NodeId>,
    /// None if it is lost, two if it is duplicated.
    pub(super) arrivals: Vec<Instant>,
}

pub(super) struct Underlay {
    seed: u64,
    all: LinkSettings,
    directions: BTreeMap<(NodeId, NodeId), Direction>,
    capture: Vec<Captured>,
    leaks: usize,
    pub(super) routers: Routers,
}

struct Direction {
    model: LinkModel,
    /// Its own, so that what happens here changes nothing elsewhere.
    random: Random,
    /// Set by name, not with all others.
    particular: bool,
}

impl Underlay {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            all: LinkSettings::DEAD,
            directions: BTreeMap::new(),
            capture: Vec::new(),
            leaks: 0,
            routers: Routers::default(),
        }
    }

    pub(super) fn set_all(&mut self, settings: LinkSettings) {
        self.all = settings;
        for direction in self.directions.values_mut().filter(|direction| !direction.particular) {
            direction.model.set(settings);
        }
    }

    pub(super) fn set(&mut self, from: NodeId, to: NodeId, settings: LinkSettings) {
        let direction = self.direction(from, to);
        direction.model.set(settings);
        direction.particular = true;
    }

    pub(super) fn settings(&self, from: NodeId, to: NodeId) -> LinkSettings {
        self.directions.get(&(from, to)).map_or(self.all, |direction| *direction.model.settings())
    }

    /// Sends a datagram.
    pub(super) fn send(&mut self, from: NodeId, flight: &Flight, elapsed: Duration, now: Instant) -> Outcome {
        let contents = &flight.contents;
        let wire = self.routers.outbound(from, flight.wire);
        let to = self.routers.owner(wire.destination.ip());
        let headers = if wire.destination.is_ipv4() { HEADERS_IP4 } else { HEADERS_IP6 };
        let arrivals: Vec<Instant> = match to {
            Some(to) => {
                let Direction { model, random, .. } = self.direction(from, to);
                model.submit(contents.len() + headers, now, random).iter().collect()
            }
            None => Vec::new(),
        };
        let plain = contents.windows(packet::PLAIN_TEXT.len()).any(|window| window == packet::PLAIN_TEXT);
        self.leaks += usize::from(plain);
        self.capture.push(Captured {
            at: elapsed,
            from,
            source: wire.source,
            destination: wire.destination,
            length: contents.len(),
            lost: arrivals.is_empty(),
            kind: Kind::of(contents, wire.source, wire.destination),
            digest: digest(contents),
        });
        Outcome { wire, to, arrivals }
    }

    pub(super) fn capture(&self) -> &[Captured] {
        &self.capture
    }

    pub(super) fn leaks(&self) -> usize {
        self.leaks
    }

    pub(super) fn forget(&mut self) {
        self.capture.clear();
    }

    fn direction(&mut self, from: NodeId, to: NodeId) -> &mut Direction {
        let (seed, all) = (self.seed, self.all);
        self.directions.entry((from, to)).or_insert_with(|| Direction {
            model: LinkModel::new(all),
            random: Random::new(random_seed::number(seed, "link", [from.0 as u64, to.0 as u64])),
            particular: false,
        })
    }
}

/// FNV-1a.
fn digest(contents: &[u8]) -> u64 {
    contents.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
