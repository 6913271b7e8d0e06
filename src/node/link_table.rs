//! Which links a node has: each of its endpoints with each endpoint of the same family in the registry.

use super::link::{Link, LinkKey, RemoteAddress, Trust};
use super::link_local::link_local;
use super::sockets::SocketPlan;
use crate::config::settings::{
    Bind, Family, LocalEndpoint, Node as RegistryNode, NodeName, PeerIdentity, RemoteEndpoint, Settings,
    TUNNEL_MTU_IP4, TUNNEL_MTU_IP6,
};
use crate::forwarding::{LinkCounters, LinkId, PrefixTable};
use ikev2::{ConnectionConfig, Identity, VerifyingKey};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A link as it should be, and its IKE connection.
pub(crate) struct PlannedLink {
    pub(crate) link: Link,
    pub(crate) connection: ConnectionConfig,
}

/// All links of a node. Pairs whose identity or key cannot be used are left out and named in `refused`.
#[derive(Default)]
pub(crate) struct LinkPlan {
    pub(crate) links: Vec<PlannedLink>,
    pub(crate) refused: Vec<String>,
}

impl LinkPlan {
    /// The links that `settings` describe, in the order of the files. `number` gives each its number.
    pub(crate) fn new(
        settings: &Settings,
        sockets: &SocketPlan,
        mut number: impl FnMut(&LinkKey) -> LinkId,
    ) -> Self {
        let mut plan = Self::default();
        for peer in settings.peers() {
            for remote in &peer.endpoints {
                for local in settings.endpoints.iter().filter(|local| local.family == remote.family) {
                    let key = LinkKey {
                        local_serial: local.serial_number.clone(),
                        peer: peer.name.clone(),
                        remote_serial: remote.serial_number.clone(),
                    };
                    match planned(settings, sockets, number(&key), local, peer, remote) {
                        Ok(link) => plan.links.push(link),
                        Err(problem) => plan.refused.push(problem),
                    }
                }
            }
        }
        plan
    }
}

fn planned(
    settings: &Settings,
    sockets: &SocketPlan,
    id: LinkId,
    local: &LocalEndpoint,
    peer: &RegistryNode,
    remote: &RemoteEndpoint,
) -> Result<PlannedLink, String> {
    let name = settings.display_name(&peer.name);
    let refuse = |problem: &dyn std::fmt::Display| format!("no link to {name}: {problem}");
    let local_id = own_identity(settings, local).map_err(|e| refuse(&e))?;
    let remote_id =
        peer_identity(&peer.identity, &peer.name, &remote.serial_number).map_err(|e| refuse(&e))?;
    let keys: Result<Vec<_>, _> =
        peer.public_keys.iter().map(|key| VerifyingKey::from_bytes(&key.to_bytes())).collect();
    let address = remote_address(remote);
    let socket = sockets.index_of(local, settings).ok_or_else(|| refuse(&"its endpoint has no socket"))?;
    let mut connection =
        ConnectionConfig::new(local_id.clone(), remote_id.clone(), keys.map_err(|e| refuse(&e))?);
    connection.local_port = local.port;
    connection.local_address = match local.bind {
        Bind::Address(address) => Some(address),
        Bind::Any | Bind::Network(_) => None,
    };
    connection.remote_address = match &address {
        RemoteAddress::Fixed(address) => Some(*address),
        RemoteAddress::None | RemoteAddress::Name(..) => None,
    };
    connection.dial = address != RemoteAddress::None;
    connection.worker = id.0 % u32::from(settings.workers.max(1));
    Ok(PlannedLink {
        link: Link {
            id,
            key: LinkKey {
                local_serial: local.serial_number.clone(),
                peer: peer.name.clone(),
                remote_serial: remote.serial_number.clone(),
            },
            family: local.family,
            peer: name,
            socket,
            local_port: local.port,
            address,
            link_local: link_local(&local_id, &remote_id),
            trust: Trust {
                local_id,
                remote_id,
                keys: peer.public_keys.iter().map(|key| key.to_bytes()).collect(),
            },
            accept: accepted_sources(peer),
            path: None,
            ike: BTreeSet::new(),
            ours: false,
            key_exchange: "",
            up_since: None,
            children: BTreeMap::new(),
            sending: None,
            counters: Arc::new(LinkCounters::default()),
            last_inbound_millis: 0,
            last_failure: None,
            mtu: link_mtu(local.family),
        },
        connection,
    })
}

fn own_identity(settings: &Settings, local: &LocalEndpoint) -> Result<Identity, String> {
    let node = settings.own_node();
    let identity = node.map_or(&PeerIdentity::Ranet, |node| &node.identity);
    peer_identity(identity, &settings.name, &local.serial_number)
}

fn peer_identity(identity: &PeerIdentity, name: &NodeName, serial: &str) -> Result<Identity, String> {
    Ok(match identity {
        PeerIdentity::Ranet => Identity::ranet(&name.organization, &name.common_name, serial)
            .map_err(|error| error.to_string())?,
        PeerIdentity::Fqdn(name) => Identity::Fqdn(name.clone()),
        PeerIdentity::Rfc822(name) => Identity::Rfc822(name.clone()),
        PeerIdentity::Address(IpAddr::V4(address)) => Identity::Ipv4(*address),
        PeerIdentity::Address(IpAddr::V6(address)) => Identity::Ipv6(*address),
        PeerIdentity::KeyId(octets) => Identity::KeyId(octets.clone()),
        PeerIdentity::DistinguishedName(der) => Identity::DistinguishedName(der.clone()),
    })
}

fn remote_address(remote: &RemoteEndpoint) -> RemoteAddress {
    match &remote.address {
        None => RemoteAddress::None,
        Some(text) => match text.parse::<IpAddr>() {
            Ok(address) => RemoteAddress::Fixed(SocketAddr::new(address, remote.port)),
            Err(_) => RemoteAddress::Name(text.clone(), remote.port),
        },
    }
}

/// The sources that a node without transit may use: its locator and what the registry accepts from it.
fn accepted_sources(peer: &RegistryNode) -> Option<Arc<PrefixTable<()>>> {
    if peer.transit {
        return None;
    }
    let own = std::iter::once(ipnet::IpNet::V6(peer.locator));
    let sources = own.chain(peer.accept.iter().copied()).chain(peer.announce.iter().copied());
    Some(Arc::new(sources.map(|network| (network, ())).collect()))
}

/// Longest inner packet on a 1,500-octet underlay.
fn link_mtu(family: Family) -> u16 {
    match family {
        Family::Ip4 => TUNNEL_MTU_IP4,
        Family::Ip6 => TUNNEL_MTU_IP6,
    }
}
