//! Which links a node has: each of its endpoints with each endpoint of the same family in the registry.

use super::link::{Link, LinkKey, RemoteAddress, Trust};
use super::link_local::link_local;
use super::sockets::SocketPlan;
use crate::config::settings::{
    Bind, Family, LocalEndpoint, Node as RegistryNode, NodeName, RemoteEndpoint, Settings, TUNNEL_MTU_IP4,
    TUNNEL_MTU_IP6,
};
use crate::forwarding::{LinkCounters, LinkId, PrefixTable};
use ikev2::{ConnectionConfig, SecretBytes, VerifyingKey};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Keys that this node shares with single nodes.
pub(crate) type SharedKeys = BTreeMap<NodeName, SecretBytes>;

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
        shared_keys: &SharedKeys,
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
                    match planned(settings, (sockets, shared_keys), number(&key), local, peer, remote) {
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
    (sockets, shared_keys): (&SocketPlan, &SharedKeys),
    id: LinkId,
    local: &LocalEndpoint,
    peer: &RegistryNode,
    remote: &RemoteEndpoint,
) -> Result<PlannedLink, String> {
    let name = settings.display_name(&peer.name);
    let refuse = |problem: &dyn std::fmt::Display| format!("no link to {name}: {problem}");
    let by_credentials = peer.shared_key || !peer.authorities.is_empty();
    let local_id = settings.own_identity(&local.serial_number, by_credentials).map_err(|e| refuse(&e))?;
    let remote_id = peer.identity.of_endpoint(&peer.name, &remote.serial_number).map_err(|e| refuse(&e))?;
    let keys: Result<Vec<_>, _> =
        peer.public_keys.iter().map(|key| VerifyingKey::from_bytes(&key.to_bytes())).collect();
    let address = remote_address(remote);
    let socket = sockets.index_of(local, settings).ok_or_else(|| refuse(&"its endpoint has no socket"))?;
    let mut connection =
        ConnectionConfig::new(local_id.clone(), remote_id.clone(), keys.map_err(|e| refuse(&e))?);
    connection.remote_authorities.clone_from(&peer.authorities);
    connection.prove_by_certificate = !peer.authorities.is_empty() && settings.ike.certificate.is_some();
    if peer.shared_key {
        let key = shared_keys.get(&peer.name).ok_or_else(|| refuse(&"no key is shared with it"))?;
        connection.pre_shared_key = Some(key.duplicate());
    }
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
            peer_link_local: link_local(&remote_id, &local_id),
            trust: Trust {
                local_id,
                remote_id,
                keys: peer.public_keys.iter().map(|key| key.to_bytes()).collect(),
                authorities: peer.authorities.clone(),
                shared_key: peer.shared_key,
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
            fragment_outer: false,
            probing: false,
            next_probe: None,
        },
        connection,
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
pub(super) fn link_mtu(family: Family) -> u16 {
    match family {
        Family::Ip4 => TUNNEL_MTU_IP4,
        Family::Ip6 => TUNNEL_MTU_IP6,
    }
}
