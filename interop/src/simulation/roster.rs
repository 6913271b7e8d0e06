//! Addresses, keys and settings: what the files of a real mesh hold.

use super::blueprint::{Blueprint, ORGANIZATION, PORT};
use super::{NodeId, random_seed};
use ed25519_dalek::SigningKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use viamesh::config::settings::{
    Bind, DEFAULT_MESH_PREFIX, Family, LocalEndpoint, Node, NodeName, PeerIdentity, RemoteEndpoint, Settings,
};

/// Where nodes are on the underlay: the networks for benchmarks (RFC 2544) and for documentation (RFC 3849).
const UNDERLAY_IP4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const UNDERLAY_IP6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// The IPv4 addresses of nodes in the mesh.
const OVERLAY_IP4: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1);

/// Address of a node on the underlay.
pub(super) fn underlay_address(node: NodeId, family: Family) -> IpAddr {
    let index = u32::try_from(node.0).unwrap_or(u32::MAX);
    match family {
        Family::Ip4 => Ipv4Addr::from_bits(UNDERLAY_IP4.to_bits() + index).into(),
        Family::Ip6 => Ipv6Addr::from_bits(UNDERLAY_IP6.to_bits() + u128::from(index)).into(),
    }
}

/// The node at an address of the underlay, if there could be one.
pub(super) fn node_at(address: IpAddr) -> Option<NodeId> {
    let index = match address {
        IpAddr::V4(address) => address.to_bits().checked_sub(UNDERLAY_IP4.to_bits())?,
        IpAddr::V6(address) => u32::try_from(address.to_bits().checked_sub(UNDERLAY_IP6.to_bits())?).ok()?,
    };
    usize::try_from(index).ok().map(NodeId)
}

/// IPv4 address of a node in the mesh.
pub(super) fn overlay_ip4(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::from_bits(OVERLAY_IP4.to_bits() + u32::try_from(node.0).unwrap_or(u32::MAX))
}

/// IPv6 address of a node in the mesh.
pub(super) fn overlay_ip6(blueprint: &Blueprint) -> Ipv6Addr {
    locator(blueprint).node_address()
}

/// The private key of a node: 32 octets (RFC 8032).
pub(super) fn private_key(seed: u64, node: NodeId) -> [u8; 32] {
    random_seed::octets(seed, "key", [node.0 as u64, 0])
}

/// What a node runs on, in a mesh of `all`.
pub(super) fn settings<'a>(
    node: NodeId,
    blueprint: &Blueprint,
    all: impl Iterator<Item = (NodeId, &'a Blueprint)>,
    seed: u64,
) -> Settings {
    let mut settings = Settings::new(name(blueprint), locator(blueprint).prefix());
    settings.endpoints = local_endpoints(blueprint);
    settings.announce.clone_from(&blueprint.announce);
    settings.addresses = vec![overlay_ip4(node).into()];
    settings.policies.clone_from(&blueprint.policies);
    settings.nodes = all.map(|(id, blueprint)| registry_entry(id, blueprint, seed)).collect();
    blueprint.adjust.iter().for_each(|adjust| adjust(&mut settings));
    settings
}

/// The address of a socket of a node.
pub(super) fn socket_address(node: NodeId, family: Family, port: u16) -> SocketAddr {
    SocketAddr::new(underlay_address(node, family), port)
}

fn name(blueprint: &Blueprint) -> NodeName {
    NodeName::new(ORGANIZATION, blueprint.name.clone())
}

fn locator(blueprint: &Blueprint) -> srv6::Locator {
    match srv6::Locator::derive(DEFAULT_MESH_PREFIX, ORGANIZATION, &blueprint.name) {
        Ok(locator) => locator,
        Err(error) => panic!("{} has no locator: {error}", blueprint.name),
    }
}

fn local_endpoints(blueprint: &Blueprint) -> Vec<LocalEndpoint> {
    let endpoint = |(serial, family): (usize, &Family)| LocalEndpoint {
        serial_number: serial.to_string(),
        family: *family,
        bind: Bind::Any,
        port: PORT,
        fwmark: None,
    };
    blueprint.families.iter().enumerate().map(endpoint).collect()
}

fn registry_entry(node: NodeId, blueprint: &Blueprint, seed: u64) -> Node {
    let endpoint = |(serial, family): (usize, &Family)| RemoteEndpoint {
        serial_number: serial.to_string(),
        family: *family,
        address: blueprint.published.then(|| underlay_address(node, *family).to_string()),
        port: PORT,
    };
    Node {
        name: name(blueprint),
        public_keys: vec![SigningKey::from_bytes(&private_key(seed, node)).verifying_key()],
        authorities: Vec::new(),
        shared_key: false,
        identity: PeerIdentity::Ranet,
        endpoints: blueprint.families.iter().enumerate().map(endpoint).collect(),
        locator: locator(blueprint).prefix(),
        sids: None,
        usid: None,
        transit: true,
        accept: Vec::new(),
        announce: blueprint.announce.clone(),
        offer_internet: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_their_nodes() {
        for node in [NodeId(0), NodeId(9), NodeId(4000)] {
            for family in [Family::Ip4, Family::Ip6] {
                assert_eq!(node_at(underlay_address(node, family)), Some(node));
            }
        }
        assert_eq!(node_at(Ipv4Addr::LOCALHOST.into()), None);
    }
}
