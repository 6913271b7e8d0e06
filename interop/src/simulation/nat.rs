//! Routers that translate addresses and ports, as a model: mapping and filtering by RFC 4787 §4 and §5.

use super::{NodeId, roster};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use viamesh::runtime::memory::Wire;

/// Outside addresses of routers: a network for documentation (RFC 5737), one address each.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// The first outside port.
const FIRST_PORT: u16 = 40_000;

/// How a router maps and filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nat {
    /// One outside port for all destinations; everybody may send to it.
    FullCone,
    /// One outside port for all destinations; those that were sent to may send to it from any port.
    AddressRestricted,
    /// One outside port for all destinations; only what was sent to may send to it.
    PortRestricted,
    /// Another outside port for each destination, and only that may send to it.
    Symmetric,
}

/// A router and what it remembers.
#[derive(Debug)]
struct Router {
    kind: Nat,
    next_port: u16,
    mappings: Vec<Mapping>,
}

#[derive(Debug)]
struct Mapping {
    inside: SocketAddr,
    outside: u16,
    /// Who was sent to by it.
    sent_to: Vec<SocketAddr>,
}

/// All routers.
#[derive(Debug, Default)]
pub(super) struct Routers(BTreeMap<NodeId, Router>);

impl Routers {
    /// Puts a node behind a router that remembers nothing.
    pub(super) fn place(&mut self, node: NodeId, kind: Nat) {
        let next_port = self.0.get(&node).map_or(FIRST_PORT, |router| router.next_port);
        self.0.insert(node, Router { kind, next_port, mappings: Vec::new() });
    }

    /// The wire of a datagram of `from` behind its router.
    pub(super) fn outbound(&mut self, from: NodeId, wire: Wire) -> Wire {
        let Some(router) = self.0.get_mut(&from) else { return wire };
        let port = router.map(wire.source, wire.destination);
        Wire { source: SocketAddr::new(outside(from), port), ..wire }
    }

    /// The node that an underlay address belongs to: its own, or its router's.
    pub(super) fn owner(&self, address: IpAddr) -> Option<NodeId> {
        let behind = self.0.keys().copied().find(|node| outside(*node) == address);
        behind.or_else(|| roster::node_at(address))
    }

    /// Who gets a datagram, and with which wire. A node behind a router has no other address than its router's.
    pub(super) fn inbound(&self, wire: Wire) -> Option<(NodeId, Wire)> {
        if let Some((node, router)) = self.0.iter().find(|(node, _)| outside(**node) == wire.destination.ip())
        {
            let inside = router.admits(wire.source, wire.destination.port())?;
            return Some((*node, Wire { destination: inside, ..wire }));
        }
        let node = roster::node_at(wire.destination.ip())?;
        (!self.0.contains_key(&node)).then_some((node, wire))
    }
}

impl Router {
    fn map(&mut self, inside: SocketAddr, destination: SocketAddr) -> u16 {
        let symmetric = self.kind == Nat::Symmetric;
        let known = self.mappings.iter_mut().find(|mapping| {
            mapping.inside == inside && (!symmetric || mapping.sent_to.contains(&destination))
        });
        if let Some(mapping) = known {
            if !mapping.sent_to.contains(&destination) {
                mapping.sent_to.push(destination);
            }
            return mapping.outside;
        }
        let outside = self.next_port;
        self.next_port += 1;
        self.mappings.push(Mapping { inside, outside, sent_to: vec![destination] });
        outside
    }

    /// The inside address of an outside port, if `source` may send to it.
    fn admits(&self, source: SocketAddr, port: u16) -> Option<SocketAddr> {
        let mapping = self.mappings.iter().find(|mapping| mapping.outside == port)?;
        let allowed = match self.kind {
            Nat::FullCone => true,
            Nat::AddressRestricted => mapping.sent_to.iter().any(|known| known.ip() == source.ip()),
            Nat::PortRestricted | Nat::Symmetric => mapping.sent_to.contains(&source),
        };
        allowed.then_some(mapping.inside)
    }
}

/// The outside address of a node's router.
fn outside(node: NodeId) -> IpAddr {
    Ipv4Addr::from_bits(OUTSIDE.to_bits() + u32::try_from(node.0).unwrap_or(u32::MAX)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(routers: &mut Routers, to: &str) -> SocketAddr {
        let source = roster::socket_address(NodeId(0), viamesh::config::settings::Family::Ip4, 13000);
        routers
            .outbound(NodeId(0), Wire { source, destination: to.parse().unwrap(), segment: 100, ecn: 0 })
            .source
    }

    fn passes(routers: &Routers, from: &str, to: SocketAddr) -> bool {
        routers
            .inbound(Wire { source: from.parse().unwrap(), destination: to, segment: 100, ecn: 0 })
            .is_some()
    }

    #[test]
    fn each_kind_lets_in_whom_it_should() {
        let (friend, neighbour, stranger) = ("192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1");
        for (kind, expected) in [
            (Nat::FullCone, [true, true, true]),
            (Nat::AddressRestricted, [true, true, false]),
            (Nat::PortRestricted, [true, false, false]),
            (Nat::Symmetric, [true, false, false]),
        ] {
            let mut routers = Routers::default();
            routers.place(NodeId(0), kind);
            let outside = send(&mut routers, friend);
            let found = [friend, neighbour, stranger].map(|from| passes(&routers, from, outside));
            assert_eq!(found, expected, "{kind:?}");
            assert_eq!(send(&mut routers, stranger) == outside, kind != Nat::Symmetric, "{kind:?}");
            assert_eq!(send(&mut routers, friend), outside, "{kind:?}");
        }
    }
}
