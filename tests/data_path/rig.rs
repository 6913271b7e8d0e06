//! Nodes in memory: real security associations, real workers, no socket and no thread.

use esp::{Algorithm, Backend, InboundSa, OutboundSa};
use ipnet::IpNet;
use srv6::{Behaviour, Encapsulation, Form, LocalSids, Locator, SegmentPath};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use viamesh::forwarding::{
    CandidatePath, Forwarding, IfUnreachable, InboundEntry, LinkCounters, LinkId, LinkPath, Local,
    LocalAddresses, NextHop, Offload, PolicyCounters, PolicyPath, PrefixTable, Share, SidSpace, SocketIndex,
    SpiTable,
};
use viamesh::policy::{Rule, SteeringTable};
use viamesh::runtime::memory::{Application, MemoryTun, MemoryUdp, Wire};
use viamesh::runtime::{Ready, Snapshot, Worker};

/// The largest inner packet of every link.
pub(crate) const LINK_MTU: u16 = 1438;

/// The prefix of all locators.
pub(crate) fn mesh_prefix() -> ipnet::Ipv6Net {
    "fd5d:ac::/32".parse().unwrap()
}

/// A node of the mesh.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) locator: Locator,
    /// An address of the node's own in the overlay's IPv4.
    pub(crate) v4: IpAddr,
    pub(crate) worker: Worker<MemoryTun, MemoryUdp>,
    pub(crate) application: Application,
    pub(crate) socket: MemoryUdp,
    pub(crate) snapshot: Snapshot,
    links: Vec<Link>,
    routes: Vec<(IpNet, NextHop)>,
    policies: Vec<(Rule, Encapsulation)>,
    internet: bool,
    probe_identifier: Option<u16>,
    epoch: Instant,
}

struct Link {
    peer: usize,
    remote: SocketAddr,
    outbound: Arc<OutboundSa>,
    inbound: Arc<InboundSa>,
    counters: Arc<LinkCounters>,
    mtu: u16,
    accept: Option<Arc<PrefixTable<()>>>,
}

/// All nodes, and the wires between them.
pub(crate) struct Mesh {
    pub(crate) nodes: Vec<Node>,
    pub(crate) now: Instant,
    /// Every train that has passed a wire: from, to, octets of each datagram, datagrams.
    pub(crate) passed: Vec<Passed>,
}

/// A train on a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) segment: usize,
    pub(crate) len: usize,
}

impl Mesh {
    /// Nodes without links.
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let epoch = Instant::now();
        let now = epoch + Duration::from_secs(1);
        let nodes =
            names.iter().enumerate().map(|(index, name)| Node::new(index, name, epoch, now)).collect();
        let mut mesh = Mesh { nodes, now, passed: Vec::new() };
        for a in 0..mesh.nodes.len() {
            mesh.nodes[a].publish();
        }
        mesh
    }

    /// Joins two nodes by a pair of security associations.
    pub(crate) fn link(&mut self, a: usize, b: usize) {
        let spi = |from: usize, to: usize| 0x1000 + (from as u32) * 0x100 + to as u32;
        for (from, to) in [(a, b), (b, a)] {
            let keys = |from: usize, to: usize| [(from * 16 + to) as u8; 36];
            let algorithm = Algorithm::Aes256Gcm16;
            let outbound =
                OutboundSa::new(spi(from, to), algorithm, &keys(from, to), true, Backend::default());
            let inbound =
                InboundSa::new(spi(to, from), algorithm, &keys(to, from), true, 4096, Backend::default());
            let link = Link {
                peer: to,
                remote: address(to),
                outbound: Arc::new(outbound.unwrap()),
                inbound: Arc::new(inbound.unwrap()),
                counters: Arc::default(),
                mtu: LINK_MTU,
                accept: None,
            };
            self.nodes[from].links.push(link);
        }
        self.route(a, b, b);
        self.route(b, a, a);
    }

    /// On `from`, the way to everything of `to` is the link to `next`.
    pub(crate) fn route(&mut self, from: usize, to: usize, next: usize) {
        let locator = self.nodes[to].locator.prefix();
        let v4 = IpNet::from(self.nodes[to].v4);
        let link = self.nodes[from].link_to(next);
        self.nodes[from].routes.extend([(locator.into(), NextHop::Link(link)), (v4, NextHop::Link(link))]);
        self.nodes[from].publish();
    }

    /// Steers what `rule` matches on `node` over these segments.
    pub(crate) fn steer(&mut self, node: usize, rule: Rule, segments: &[Ipv6Addr]) {
        let path = SegmentPath::new(segments).unwrap();
        let source = self.nodes[node].locator.node_address();
        let encapsulation = Encapsulation::new(source, &path, Form::Reduced).unwrap();
        self.nodes[node].policies.push((rule, encapsulation));
        self.nodes[node].publish();
    }

    /// Runs until nothing moves any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            for index in 0..self.nodes.len() {
                moved |= self.nodes[index].worker.turn(Ready::ALL, self.now, Duration::ZERO).worked;
                moved |= self.carry(index);
            }
            if !moved {
                return;
            }
        }
        panic!("the mesh does not settle");
    }

    /// Moves what a node sent to the nodes that it was sent to.
    fn carry(&mut self, from: usize) -> bool {
        let mut moved = false;
        while let Some((wire, contents)) = self.nodes[from].socket.take_sent() {
            let to = self.nodes.iter().position(|node| node.address() == wire.destination);
            let to = to.expect("somebody has the address");
            self.passed.push(Passed { from, to, segment: wire.segment, len: contents.len() });
            self.nodes[to].socket.inject(wire, &contents);
            moved = true;
        }
        moved
    }

    /// The journey of what has passed, as names.
    pub(crate) fn journey(&self) -> Vec<&'static str> {
        let mut stops: Vec<_> =
            self.passed.first().map(|hop| self.nodes[hop.from].name).into_iter().collect();
        stops.extend(self.passed.iter().map(|hop| self.nodes[hop.to].name));
        stops
    }
}

impl Node {
    fn new(index: usize, name: &'static str, epoch: Instant, now: Instant) -> Self {
        let tun = MemoryTun::new(Offload { tcp: true, udp: true });
        let socket = MemoryUdp::new(address(index));
        let snapshot: Snapshot = Arc::new(arc_swap::ArcSwap::from_pointee(Forwarding::empty(epoch)));
        Node {
            name,
            locator: Locator::derive(mesh_prefix(), "example", name).unwrap(),
            v4: IpAddr::from([10, 99, 0, index as u8 + 1]),
            application: tun.application(),
            worker: Worker::new(tun, vec![socket.clone()], &snapshot, now),
            socket,
            snapshot,
            links: Vec::new(),
            routes: Vec::new(),
            policies: Vec::new(),
            internet: false,
            probe_identifier: None,
            epoch,
        }
    }

    pub(crate) fn v6(&self) -> IpAddr {
        self.locator.node_address().into()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        use viamesh::runtime::UdpTransport;
        self.socket.local_address()
    }

    /// The link to a node.
    pub(crate) fn link_to(&self, peer: usize) -> LinkId {
        let index = self.links.iter().position(|link| link.peer == peer).expect("a link");
        LinkId(index as u32)
    }

    pub(crate) fn link_counters(&self, peer: usize) -> &LinkCounters {
        &self.links[self.link_to(peer).0 as usize].counters
    }

    pub(crate) fn inbound(&self, peer: usize) -> &InboundSa {
        &self.links[self.link_to(peer).0 as usize].inbound
    }

    pub(crate) fn outbound(&self, peer: usize) -> &Arc<OutboundSa> {
        &self.links[self.link_to(peer).0 as usize].outbound
    }

    /// Announces a network behind the node.
    pub(crate) fn announce(&mut self, prefix: &str) {
        self.routes.push((prefix.parse().unwrap(), NextHop::Local));
        self.publish();
    }

    pub(crate) fn add_route(&mut self, prefix: &str, next: NextHop) {
        self.routes.push((prefix.parse().unwrap(), next));
        self.publish();
    }

    pub(crate) fn offer_internet(&mut self) {
        self.internet = true;
        self.publish();
    }

    pub(crate) fn set_probe_identifier(&mut self, identifier: u16) {
        self.probe_identifier = Some(identifier);
        self.publish();
    }

    pub(crate) fn set_mtu(&mut self, peer: usize, mtu: u16) {
        let index = self.link_to(peer).0 as usize;
        self.links[index].mtu = mtu;
        self.publish();
    }

    pub(crate) fn accept_only(&mut self, peer: usize, prefixes: &[&str]) {
        let index = self.link_to(peer).0 as usize;
        let table = prefixes.iter().map(|prefix| (prefix.parse().unwrap(), ())).collect();
        self.links[index].accept = Some(Arc::new(table));
        self.publish();
    }

    /// The link to `peer` gets new security associations; `inbound` is what the peer sends on.
    pub(crate) fn rekey(&mut self, peer: usize, outbound: OutboundSa) {
        let index = self.link_to(peer).0 as usize;
        self.links[index].outbound = Arc::new(outbound);
        self.publish();
    }

    /// Builds and publishes the snapshot, as the control plane does.
    pub(crate) fn publish(&mut self) {
        let mut forwarding = Forwarding::empty(self.epoch);
        let own = [(self.v6(), Local::Address), (self.v4, Local::Address)];
        let sids = LocalSids::of_locator(&self.locator, self.internet);
        let sids = sids.iter().map(|(address, behaviour): (Ipv6Addr, Behaviour)| {
            (IpAddr::from(address), Local::Sid(behaviour))
        });
        forwarding.generation = self.snapshot.load().generation + 1;
        forwarding.locals = LocalAddresses::new(own.into_iter().chain(sids));
        forwarding.routes = PrefixTable::new(self.routes.iter().copied());
        let rules: Vec<Rule> = self.policies.iter().map(|(rule, _)| rule.clone()).collect();
        forwarding.steering = SteeringTable::compile(&rules);
        forwarding.policies = self.policies.iter().map(|(_, path)| policy_path(path)).collect();
        forwarding.links =
            self.links.iter().enumerate().map(|(index, link)| Some(link_path(index, link))).collect();
        forwarding.inbound = self
            .links
            .iter()
            .enumerate()
            .map(|(index, link)| InboundEntry { sa: Arc::clone(&link.inbound), link: LinkId(index as u32) })
            .collect::<SpiTable>();
        forwarding.sids = SidSpace::new(mesh_prefix(), [], []);
        forwarding.node_address = self.locator.node_address();
        if let IpAddr::V4(v4) = self.v4 {
            forwarding.node_address_v4 = v4;
        }
        forwarding.tun_mtu = 1500;
        forwarding.probe_identifier = self.probe_identifier;
        self.snapshot.store(Arc::new(forwarding));
    }

    /// Puts a datagram into the socket as if it came from `source`.
    pub(crate) fn inject(&self, source: SocketAddr, contents: &[u8], segment: usize) {
        let wire = Wire { source, destination: self.address(), segment, ecn: 0 };
        self.socket.inject(wire, contents);
    }
}

fn link_path(index: usize, link: &Link) -> LinkPath {
    LinkPath {
        id: LinkId(index as u32),
        socket: SocketIndex(0),
        local: IpAddr::from([0, 0, 0, 0]),
        remote: link.remote,
        outbound: Some(Arc::clone(&link.outbound)),
        mtu: link.mtu,
        fragment_outer: false,
        accept: link.accept.clone(),
        hmac: srv6::hmac::Requirement::default(),
        counters: Arc::clone(&link.counters),
    }
}

fn policy_path(encapsulation: &Encapsulation) -> PolicyPath {
    let path = CandidatePath { number: 1, encapsulation: encapsulation.clone(), link: None, mtu: LINK_MTU };
    let share = Share { weight: 1, path: Some(path) };
    PolicyPath::new(IfUnreachable::Drop, Arc::<PolicyCounters>::default(), [share])
}

fn address(index: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, index as u8 + 1], 13_000))
}
