//! What changes between two settings, so that a reload touches only that.

use std::net::IpAddr;

use ed25519_dalek::VerifyingKey;
use ipnet::IpNet;

use super::settings::{LocalEndpoint, Node, NodeName, RemoteEndpoint, Settings};

/// The difference between the settings in force and new ones. Empty lists and `false` everywhere mean that nothing
/// changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Fields that only a restart can change.
    pub needs_restart: Vec<&'static str>,
    /// Endpoints of this node that go.
    pub endpoints_removed: Vec<LocalEndpoint>,
    /// Endpoints of this node that come. One that changes is in both lists.
    pub endpoints_added: Vec<LocalEndpoint>,
    /// Nodes that left the registry.
    pub nodes_removed: Vec<NodeName>,
    /// Nodes that came into the registry.
    pub nodes_added: Vec<NodeName>,
    /// Nodes of which something changed.
    pub nodes_changed: Vec<NodeChange>,
    /// Networks that are no longer announced.
    pub announce_removed: Vec<IpNet>,
    /// Networks that are announced from now on.
    pub announce_added: Vec<IpNet>,
    /// Whether what passes between the mesh and the host's tables changes.
    pub redistribution: bool,
    /// Addresses that go from the TUN device.
    pub addresses_removed: Vec<IpAddr>,
    /// Addresses that come.
    pub addresses_added: Vec<IpAddr>,
    /// Whether the internet is offered from now on, if that changes.
    pub offer_internet: Option<bool>,
    /// Whether any policy or their order changes.
    pub policies: bool,
    /// Whether a timer changes.
    pub timers: bool,
    /// Whether the cost map changes.
    pub cost: bool,
    /// Whether the registry comes from somewhere else, or is watched otherwise.
    pub registry: bool,
}

/// What changed of a node that is in both registries.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeChange {
    /// Which node.
    pub name: NodeName,
    /// Keys that no longer count: SAs that one of them authenticated must go at once.
    pub keys_removed: Vec<VerifyingKey>,
    /// Keys that count from now on.
    pub keys_added: Vec<VerifyingKey>,
    /// Endpoints that go.
    pub endpoints_removed: Vec<RemoteEndpoint>,
    /// Endpoints that come. One that changes is in both lists.
    pub endpoints_added: Vec<RemoteEndpoint>,
    /// Whether its identity in IKE changed, which no SA survives.
    pub identity: bool,
    /// Whether what steers packets to it changed: locator, SIDs, transit, accepted networks.
    pub routing: bool,
}

impl Changes {
    /// What has to change to get from `old` to `new`.
    #[must_use]
    pub fn between(old: &Settings, new: &Settings) -> Self {
        let (endpoints_removed, endpoints_added) = lists(&old.endpoints, &new.endpoints);
        let (announce_removed, announce_added) = lists(&old.announce, &new.announce);
        let (addresses_removed, addresses_added) = lists(&old.addresses, &new.addresses);
        let names =
            |settings: &Settings| settings.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        let (nodes_removed, nodes_added) = lists(&names(old), &names(new));
        let both = new.nodes.iter().filter_map(|node| old.node(&node.name).map(|before| (before, node)));
        Self {
            needs_restart: needs_restart(old, new),
            endpoints_removed,
            endpoints_added,
            nodes_removed,
            nodes_added,
            nodes_changed: both.filter_map(|(before, after)| NodeChange::between(before, after)).collect(),
            announce_removed,
            announce_added,
            redistribution: old.redistribution != new.redistribution,
            addresses_removed,
            addresses_added,
            offer_internet: (old.offer_internet != new.offer_internet).then_some(new.offer_internet),
            policies: !same_policies(old, new),
            timers: old.timers != new.timers,
            cost: old.cost != new.cost,
            registry: old.registry != new.registry,
        }
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl NodeChange {
    fn between(old: &Node, new: &Node) -> Option<Self> {
        let (keys_removed, keys_added) = lists(&old.public_keys, &new.public_keys);
        let (endpoints_removed, endpoints_added) = lists(&old.endpoints, &new.endpoints);
        let steering =
            |node: &Node| (node.locator, node.sids.clone(), node.usid, node.transit, node.accept.clone());
        let change = Self {
            name: new.name.clone(),
            keys_removed,
            keys_added,
            endpoints_removed,
            endpoints_added,
            identity: old.identity != new.identity
                || old.authorities != new.authorities
                || old.shared_key != new.shared_key,
            routing: steering(old) != steering(new),
        };
        change.is_something().then_some(change)
    }

    fn is_something(&self) -> bool {
        let keys = !self.keys_removed.is_empty() || !self.keys_added.is_empty();
        let endpoints = !self.endpoints_removed.is_empty() || !self.endpoints_added.is_empty();
        keys || endpoints || self.identity || self.routing
    }
}

/// What is in `old` only, and what is in `new` only. Order does not count.
fn lists<T: Clone + PartialEq>(old: &[T], new: &[T]) -> (Vec<T>, Vec<T>) {
    let only =
        |these: &[T], those: &[T]| these.iter().filter(|item| !those.contains(item)).cloned().collect();
    (only(old, new), only(new, old))
}

/// Line numbers may move without any policy changing.
fn same_policies(old: &Settings, new: &Settings) -> bool {
    let without_lines = |settings: &Settings| {
        let mut policies = settings.policies.clone();
        policies.iter_mut().for_each(|policy| policy.line = 0);
        policies
    };
    without_lines(old) == without_lines(new)
}

fn needs_restart(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let changed = [
        ("organization or common_name", old.name != new.name),
        ("private_key", old.private_key != new.private_key),
        ("mesh_prefix", old.mesh_prefix != new.mesh_prefix),
        ("kernel", old.kernel != new.kernel),
        ("hmac_keys", old.hmac_keys != new.hmac_keys),
        ("require_hmac_from", old.require_hmac_from != new.require_hmac_from),
        ("ike", old.ike != new.ike),
        ("workers", old.workers != new.workers),
        ("state_dir", old.state_dir != new.state_dir),
        ("control_socket", old.control_socket != new.control_socket),
        ("metrics", old.metrics != new.metrics),
        ("page", old.page != new.page),
    ];
    changed.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::{Candidate, Exit, Family, IfUnreachable, PeerIdentity, Policy};
    use crate::policy::Membership;

    fn settings() -> Settings {
        let locator = "fd5d:ac:0:1::/64".parse().unwrap();
        let mut settings = Settings::new(NodeName::new("acme", "alpha"), locator);
        let key = |seed: u8| ed25519_dalek::SigningKey::from_bytes(&[seed; 32]).verifying_key();
        let endpoint =
            RemoteEndpoint { serial_number: "0".into(), family: Family::Ip4, address: None, port: 13000 };
        settings.nodes = vec![Node {
            name: NodeName::new("acme", "bravo"),
            public_keys: vec![key(1), key(2)],
            authorities: Vec::new(),
            shared_key: false,
            identity: PeerIdentity::Ranet,
            endpoints: vec![endpoint],
            locator,
            sids: None,
            usid: None,
            transit: true,
            accept: Vec::new(),
            announce: Vec::new(),
            offer_internet: false,
        }];
        settings.policies = vec![Policy {
            name: "p".into(),
            from: vec!["10.0.0.0/8".parse().unwrap()],
            to: vec!["10.0.0.0/8".parse().unwrap()],
            protocol: None,
            ports: Vec::new(),
            source_ports: Vec::new(),
            dscp: Vec::new(),
            membership: Membership::default(),
            candidates: vec![Candidate {
                via: Vec::new(),
                exit: Exit::Nearest,
                exit_strict: false,
                priority: 1,
                weight: 1,
            }],
            probe: None,
            hmac: None,
            if_unreachable: IfUnreachable::Drop,
            shared: false,
            line: 9,
        }];
        settings
    }

    #[test]
    fn nothing_changes_between_equals_or_when_lines_move() {
        let (old, mut new) = (settings(), settings());
        assert!(Changes::between(&old, &new).is_empty());
        new.policies[0].line = 12;
        assert!(Changes::between(&old, &new).is_empty());
        new.policies[0].if_unreachable = IfUnreachable::AnyPath;
        assert_eq!(Changes::between(&old, &new), Changes { policies: true, ..Changes::default() });
    }

    #[test]
    fn a_removed_key_is_named() {
        let (old, mut new) = (settings(), settings());
        let removed = new.nodes[0].public_keys.remove(0);
        let changes = Changes::between(&old, &new);
        assert_eq!(changes.nodes_changed[0].keys_removed, [removed]);
        assert!(changes.nodes_changed[0].keys_added.is_empty() && !changes.nodes_changed[0].routing);
    }

    #[test]
    fn a_moved_endpoint_goes_and_comes() {
        let (old, mut new) = (settings(), settings());
        new.nodes[0].endpoints[0].port = 4500;
        let change = &Changes::between(&old, &new).nodes_changed[0];
        assert_eq!((change.endpoints_removed[0].port, change.endpoints_added[0].port), (13000, 4500));
    }

    #[test]
    fn nodes_networks_and_restarts() {
        let (old, mut new) = (settings(), settings());
        new.nodes[0].name = NodeName::new("acme", "charlie");
        new.announce.push("10.1.0.0/16".parse().unwrap());
        new.offer_internet = true;
        new.workers = 2;
        let changes = Changes::between(&old, &new);
        assert_eq!(changes.nodes_removed, [NodeName::new("acme", "bravo")]);
        assert_eq!(changes.nodes_added, [NodeName::new("acme", "charlie")]);
        assert_eq!((changes.announce_added.len(), changes.offer_internet), (1, Some(true)));
        assert_eq!(changes.needs_restart, ["workers"]);
    }
}
