//! Whole meshes of real nodes, control plane and data plane, in one process and in virtual time.
//!
//! Nothing here is a model of a node: each one is a [`viamesh::node::Node`] and a
//! [`viamesh::runtime::Worker`], driven the way the daemon drives them, over the in-memory twins of TUN and UDP.
//! Only the underlay (a [`lab::LinkModel`] for each direction of each pair of nodes), the applications and the
//! clock are made up. Work takes no virtual time. The same seed gives the same run, datagram by datagram.
//!
//! ```
//! # use std::time::Duration;
//! # use interop::simulation::{Blueprint, Simulation};
//! # use lab::LinkSettings;
//! let mut simulation = Simulation::new(7);
//! let tokyo = simulation.add(Blueprint::new("tokyo"));
//! let paris = simulation.add(Blueprint::new("paris"));
//! simulation.set_link(tokyo, paris, LinkSettings::with_rtt_ms(220));
//! simulation.start_all();
//! simulation.run_until(Duration::from_secs(5), |now| now.is_connected()).expect("a mesh");
//! assert_eq!(simulation.latency(tokyo, paris), Some(Duration::from_millis(110)));
//! ```

mod agenda;
mod blueprint;
mod capture;
mod drive;
mod journey;
mod member;
mod nat;
mod packet;
mod random_seed;
mod roster;
mod stream;
mod trace;
mod underlay;
mod view;

pub use blueprint::{Blueprint, ORGANIZATION, PORT, candidate, policy};
pub use capture::{Captured, Kind};
pub use journey::{Arrival, Hop, Journey};
pub use nat::Nat;
pub use packet::Packet;
pub use stream::{StreamId, StreamReport};

use agenda::Agenda;
use journey::Journeys;
use lab::LinkSettings;
use member::Member;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use stream::Stream;
use underlay::Underlay;
use viamesh::control::Reply;
use viamesh::node::{ClientId, NodeEvent};

/// A node of a simulation, in the order of [`Simulation::add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// A packet that an application sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

/// Far from the beginning of the host's clock, so that nothing can reach back before it.
const ORIGIN: Duration = Duration::from_secs(24 * 3600);

/// A mesh and its world.
pub struct Simulation {
    seed: u64,
    origin: Instant,
    now: Instant,
    members: Vec<Member>,
    underlay: Underlay,
    agenda: Agenda,
    /// When each node wants to be woken.
    wakes: BTreeSet<(Instant, NodeId)>,
    journeys: Journeys,
    streams: Vec<Stream>,
    events: Vec<(Duration, NodeId, NodeEvent)>,
    /// Packets for applications that none of ours had sent: ICMP errors.
    notices: Vec<(Duration, NodeId, Vec<u8>)>,
    /// Answers that took their time.
    replies: BTreeMap<(NodeId, ClientId), Reply>,
}

impl Simulation {
    /// An empty world. Keys, losses and all choices of the nodes follow from `seed`.
    pub fn new(seed: u64) -> Self {
        let origin = Instant::now() + ORIGIN;
        Self {
            seed,
            origin,
            now: origin,
            members: Vec::new(),
            underlay: Underlay::new(seed),
            agenda: Agenda::default(),
            wakes: BTreeSet::new(),
            journeys: Journeys::default(),
            streams: Vec::new(),
            events: Vec::new(),
            notices: Vec::new(),
            replies: BTreeMap::new(),
        }
    }

    /// Adds a node to the registry. It does not run yet, and nodes that already run do not know it.
    pub fn add(&mut self, blueprint: Blueprint) -> NodeId {
        let id = NodeId(self.members.len());
        self.members.push(Member::new(blueprint, self.seed, id));
        id
    }

    /// All nodes, running or not.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.members.len()).map(NodeId)
    }

    /// The node of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn node(&self, name: &str) -> NodeId {
        match self.members.iter().position(|member| member.blueprint.name == name) {
            Some(index) => NodeId(index),
            None => panic!("no node {name} in this simulation"),
        }
    }

    /// The name of a node.
    pub fn name(&self, node: NodeId) -> &str {
        &self.members[node.0].blueprint.name
    }

    /// How all pairs are joined that no other call speaks of. At first nothing passes.
    pub fn set_all_links(&mut self, settings: LinkSettings) {
        self.underlay.set_all(settings);
    }

    /// Joins two nodes, both directions alike, from now on.
    pub fn set_link(&mut self, a: NodeId, b: NodeId, settings: LinkSettings) {
        self.underlay.set(a, b, settings);
        self.underlay.set(b, a, settings);
    }

    /// Puts a node behind a router that translates its address; again: the router forgets what it remembered.
    pub fn place_behind(&mut self, node: NodeId, nat: Nat) {
        self.underlay.routers.place(node, nat);
    }

    /// Changes one direction.
    pub fn set_direction(&mut self, from: NodeId, to: NodeId, settings: LinkSettings) {
        self.underlay.set(from, to, settings);
    }

    /// The present settings of a direction.
    pub fn link(&self, from: NodeId, to: NodeId) -> LinkSettings {
        self.underlay.settings(from, to)
    }

    /// Virtual time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now - self.origin
    }

    /// Everything that was sent on the underlay, in the order of sending.
    pub fn capture(&self) -> &[Captured] {
        self.underlay.capture()
    }

    /// How many datagrams contained the plain text of an application.
    pub fn leaks(&self) -> usize {
        self.underlay.leaks()
    }

    /// What the nodes reported, in order.
    pub fn events(&self) -> &[(Duration, NodeId, NodeEvent)] {
        &self.events
    }

    /// Packets for applications that no application had sent, such as ICMP errors, with time and place.
    pub fn notices(&self) -> &[(Duration, NodeId, Vec<u8>)] {
        &self.notices
    }

    /// What became of a packet.
    ///
    /// # Panics
    /// If no application sent it, or after [`Self::forget`].
    pub fn journey(&self, packet: PacketId) -> &Journey {
        self.journeys.get(packet)
    }

    /// Drops the records of the past, for long runs: capture, events, notices and journeys. Streams that run
    /// begin anew.
    pub fn forget(&mut self) {
        self.underlay.forget();
        self.events.clear();
        self.notices.clear();
        self.journeys.forget();
        self.streams.iter_mut().for_each(Stream::forget);
    }
}
