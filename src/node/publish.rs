//! Builds the snapshot that the data path reads.

use super::Node;
use super::link::Link;
use crate::config::settings;
use crate::forwarding::{
    Forwarding, IfUnreachable, InboundEntry, LinkPath, Local, LocalAddresses, NextHop, PolicyPath,
    PolicyState, PrefixTable, SidSpace, SpiTable,
};
use crate::policy::Rule;
use ipnet::{IpNet, Ipv6Net};
use srv6::LocalSids;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Source of ICMPv4 errors of a node without an IPv4 address (RFC 7600 §4.8).
const DUMMY_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

impl Node {
    pub(super) fn build_forwarding(&self) -> Forwarding {
        let settings = &self.settings;
        Forwarding {
            generation: self.generation,
            epoch: self.epoch,
            locals: self.local_addresses(),
            routes: self.prefix_table(),
            steering: self.steering.clone(),
            policies: self.policies.iter().map(policy_path).collect(),
            links: self.link_paths(),
            inbound: self.inbound_table(),
            sids: sid_space(settings),
            node_address: self.own_address().unwrap_or(Ipv6Addr::UNSPECIFIED),
            node_address_v4: own_ipv4(settings).unwrap_or(DUMMY_IPV4),
            tun_mtu: settings.kernel.tun_mtu,
            probe_identifier: Some(self.probes.identifier()),
        }
    }

    fn local_addresses(&self) -> LocalAddresses {
        let mut entries: Vec<(IpAddr, Local)> =
            self.settings.addresses.iter().map(|address| (*address, Local::Address)).collect();
        if let Ok(locator) = srv6::Locator::new(self.settings.locator) {
            entries.push((IpAddr::V6(locator.node_address()), Local::Address));
            let sids = LocalSids::of_locator(&locator, self.settings.offer_internet);
            entries.extend(sids.iter().map(|(sid, behaviour)| (IpAddr::V6(sid), Local::Sid(behaviour))));
        }
        LocalAddresses::new(entries)
    }

    /// Mesh routes, and the networks behind this node. What was lost lately leads nowhere, rather than by a
    /// shorter prefix somewhere else; so does the rest of our own locator.
    fn prefix_table(&self) -> PrefixTable<NextHop> {
        let learned = self.routes.iter().map(|(prefix, route)| (*prefix, NextHop::Link(route.link)));
        let behind = self.settings.announce.iter().map(|network| (network.trunc(), NextHop::Local));
        let held = self.held.iter().map(|prefix| (*prefix, NextHop::Unreachable));
        let own = std::iter::once((IpNet::V6(self.settings.locator), NextHop::Unreachable));
        held.chain(learned).chain(behind).chain(own).collect()
    }

    fn link_paths(&self) -> Vec<Option<LinkPath>> {
        let count = self.links.keys().next_back().map_or(0, |last| last.0 as usize + 1);
        let mut paths: Vec<Option<LinkPath>> = Vec::new();
        paths.resize_with(count, || None);
        for link in self.links.values() {
            if let Some(slot) = paths.get_mut(link.id.0 as usize) {
                *slot = link_path(link);
            }
        }
        paths
    }

    fn inbound_table(&self) -> SpiTable {
        let entries = self.links.values().flat_map(|link| {
            link.children.values().map(|child| InboundEntry { sa: Arc::clone(&child.inbound), link: link.id })
        });
        entries.collect()
    }
}

/// `None` while nothing is known of where the peer is.
fn link_path(link: &Link) -> Option<LinkPath> {
    let path = link.path?;
    Some(LinkPath {
        id: link.id,
        socket: link.socket,
        local: link.local_address(),
        remote: path.remote,
        outbound: link.outbound().cloned(),
        mtu: link.mtu,
        fragment_outer: false,
        accept: link.accept.clone(),
        counters: Arc::clone(&link.counters),
    })
}

fn policy_path(policy: &super::PolicyRuntime) -> PolicyPath {
    PolicyPath {
        encapsulation: policy.encapsulation.clone(),
        if_unreachable: match policy.if_unreachable {
            settings::IfUnreachable::Drop => IfUnreachable::Drop,
            settings::IfUnreachable::AnyPath => IfUnreachable::AnyPath,
            settings::IfUnreachable::Next => IfUnreachable::Next,
        },
        state: if policy.problem.is_none() { PolicyState::Ready } else { PolicyState::Unreachable },
        mtu: policy.mtu,
        counters: Arc::clone(&policy.counters),
    }
}

/// The policies as the classifier sees them, in file order.
pub(super) fn rules(settings: &settings::Settings) -> Vec<Rule> {
    settings
        .policies
        .iter()
        .map(|policy| Rule {
            name: policy.name.clone(),
            from: policy.from.clone(),
            to: policy.to.clone(),
            protocol: policy.protocol,
            source_ports: policy.source_ports.clone(),
            destination_ports: policy.ports.clone(),
            dscp: policy.dscp.clone(),
        })
        .collect()
}

fn sid_space(settings: &settings::Settings) -> SidSpace {
    let foreign = settings.nodes.iter().filter_map(|node| Some((node, node.sids.as_ref()?)));
    let (mut segments, mut locators) = (Vec::new(), Vec::new());
    for (node, sids) in foreign {
        let listed = [sids.end, sids.dt4, sids.dt6, sids.dt46, sids.internet];
        segments.extend(listed.into_iter().flatten().map(Ipv6Net::from));
        locators.push(node.locator);
    }
    SidSpace::new(settings.mesh_prefix, segments, locators)
}

/// The first IPv4 address of the node itself.
pub(super) fn own_ipv4(settings: &settings::Settings) -> Option<Ipv4Addr> {
    settings.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    })
}
