//! What the nodes know at the moment.

use super::packet::Packet;
use super::{NodeId, Simulation, roster};
use srv6::ip::FlowKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;
use viamesh::control::report::{AssociationsReport, NeighboursReport, StatusReport};
use viamesh::control::{Reply, Request};
use viamesh::forwarding::{Decision, DropReason, Forwarding, Origin, decide, route};
use viamesh::policy::Class;

/// How long [`Simulation::latency`] waits.
const PATIENCE: Duration = Duration::from_secs(10);

impl Simulation {
    /// Whether a node runs.
    pub fn is_running(&self, node: NodeId) -> bool {
        self.members[node.0].running.is_some()
    }

    /// A node's IPv6 address in the mesh.
    pub fn address(&self, node: NodeId) -> Ipv6Addr {
        roster::overlay_ip6(&self.members[node.0].blueprint)
    }

    /// A node's IPv4 address in the mesh.
    pub fn address_ip4(&self, node: NodeId) -> Ipv4Addr {
        roster::overlay_ip4(node)
    }

    /// A small IPv6 packet from one node to another.
    pub fn packet(&self, from: NodeId, to: NodeId) -> Packet {
        Packet::new(self.address(from), self.address(to))
    }

    /// A small IPv4 packet from one node to another.
    pub fn packet_ip4(&self, from: NodeId, to: NodeId) -> Packet {
        Packet::new(self.address_ip4(from), self.address_ip4(to))
    }

    /// The snapshot that a node's data path works with; `None` if it does not run.
    pub fn forwarding(&self, node: NodeId) -> Option<Arc<Forwarding>> {
        self.members[node.0].running.as_ref().map(|running| running.forwarding())
    }

    /// Where a node sends packets for an address next, policies aside.
    pub fn next_hop(&self, node: NodeId, destination: IpAddr) -> Option<NodeId> {
        let forwarding = self.forwarding(node)?;
        match route(&forwarding, destination, Origin::Node) {
            Decision::Link { link, .. } => self.underlay.routers.owner(forwarding.link(link)?.remote.ip()),
            _ => None,
        }
    }

    /// The way from one node to the address of another by the present routes, both included; `None` if there is
    /// none.
    pub fn way(&self, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        let mut way = vec![from];
        let mut at = from;
        while at != to {
            at = self.next_hop(at, self.address(to).into())?;
            if way.contains(&at) {
                return None;
            }
            way.push(at);
        }
        Some(way)
    }

    /// Whether every running node has a way to every other one.
    pub fn is_connected(&self) -> bool {
        let running: Vec<NodeId> = self.nodes().filter(|node| self.is_running(*node)).collect();
        let has_ways = |from: &NodeId| running.iter().all(|to| self.way(*from, *to).is_some());
        running.iter().all(has_ways)
    }

    /// What a node's data path would do with a packet from an application.
    pub fn decision(&self, node: NodeId, packet: &Packet) -> Option<Decision> {
        let forwarding = self.forwarding(node)?;
        let flow = FlowKey::parse(&packet.octets(super::PacketId(0))).ok()?;
        Some(decide(&forwarding, &flow, Origin::Tun(Class::NONE)))
    }

    /// How long a packet takes from one node to another, sent now; `None` if it does not arrive.
    pub fn latency(&mut self, from: NodeId, to: NodeId) -> Option<Duration> {
        let packet = self.send(from, &self.packet(from, to));
        self.run_until(PATIENCE, |now| now.journey(packet).arrival().is_some())?;
        self.journey(packet).arrival().map(|(_, latency)| latency)
    }

    /// The status of a node that runs.
    pub fn status(&mut self, node: NodeId) -> Option<StatusReport> {
        match self.ask(node, &Request::Status { node: None }, Duration::ZERO)? {
            Reply::Status(report) => Some(report),
            _ => None,
        }
    }

    /// The security associations of a node that runs.
    pub fn associations(&mut self, node: NodeId) -> Option<AssociationsReport> {
        match self.ask(node, &Request::Associations { node: None }, Duration::ZERO)? {
            Reply::Associations(report) => Some(report),
            _ => None,
        }
    }

    /// The Babel neighbours of a node that runs.
    pub fn neighbours(&mut self, node: NodeId) -> Option<NeighboursReport> {
        match self.ask(node, &Request::Neighbours, Duration::ZERO)? {
            Reply::Neighbours(report) => Some(report),
            _ => None,
        }
    }

    /// How many packets the data path of a node has discarded since its start, by reason.
    pub fn drops(&self, node: NodeId) -> Vec<(DropReason, u64)> {
        let running = self.members[node.0].running.as_ref();
        running.map_or_else(Vec::new, |running| running.worker.counters().drops.iter().collect())
    }

    /// How many packets it has discarded for one reason.
    pub fn dropped(&self, node: NodeId, reason: DropReason) -> u64 {
        self.drops(node).iter().find(|(met, _)| *met == reason).map_or(0, |(_, count)| *count)
    }

    /// Messages from the control plane of a node that its data path had no room for.
    pub fn overflow(&self, node: NodeId) -> u64 {
        self.members[node.0].running.as_ref().map_or(0, |running| running.overflow)
    }
}
