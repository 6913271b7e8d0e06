//! Builds the snapshot that the data path reads.

use super::link::Link;
use super::{Node, PolicyRuntime};
use crate::config::settings;
use crate::forwarding::{
    Forwarding, InboundEntry, LinkPath, Local, LocalAddresses, NextHop, PrefixTable, SidSpace, SpiTable,
};
use crate::policy::{ClassTable, Rule};
use ipnet::{IpNet, Ipv6Net};
use srv6::hmac::Requirement;
use srv6::{Behaviour, CompressedSid, Flavours, LocalSids};
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
            policies: self.policies.iter().map(PolicyRuntime::path).collect(),
            links: self.link_paths(),
            inbound: self.inbound_table(),
            sids: sid_space(settings),
            hmac_keys: self.hmac_keys.clone(),
            node_address: self.own_address().unwrap_or(Ipv6Addr::UNSPECIFIED),
            node_address_v4: own_ipv4(settings).unwrap_or(DUMMY_IPV4),
            tun_mtu: settings.kernel.tun_mtu,
            probe_identifier: Some(self.probes.identifier()),
        }
    }

    fn local_addresses(&self) -> LocalAddresses {
        let mut entries: Vec<(IpAddr, Local)> =
            self.settings.addresses.iter().map(|address| (*address, Local::Address)).collect();
        let sids = self.local_sids();
        entries.extend(self.own_address().map(|address| (IpAddr::V6(address), Local::Address)));
        entries.extend(sids.iter().map(|(sid, behaviour)| (IpAddr::V6(sid), Local::Sid(behaviour))));
        entries.extend(self.adjacencies());
        LocalAddresses::new(entries).with_compressed(sids.compressed())
    }

    /// The segments that this node has of itself.
    fn local_sids(&self) -> LocalSids {
        let Ok(locator) = srv6::Locator::new(self.settings.locator) else { return LocalSids::default() };
        let internet = self.settings.offer_internet;
        let sids = LocalSids::of_locator(&locator, internet);
        match self.settings.own_node().and_then(|node| self.compressed_sid(node)) {
            Some(compressed) => sids.with_compressed(&compressed, internet),
            None => sids,
        }
    }

    /// A segment for the link to each peer.
    //= RFC 8986 §4.2
    fn adjacencies(&self) -> impl Iterator<Item = (IpAddr, Local)> + '_ {
        let own = srv6::Locator::new(self.settings.locator).ok();
        self.settings.peers().filter_map(move |peer| {
            let sid = own?.end_x(&srv6::Locator::new(peer.locator).ok()?);
            let link = u16::try_from(self.best_link(&peer.name)?.0).ok()?;
            Some((IpAddr::V6(sid), Local::Sid(Behaviour::EndX(Flavours::NONE, link))))
        })
    }

    /// Mesh routes, and the networks behind this node. What was lost lately leads nowhere, rather than by a
    /// shorter prefix somewhere else; so does the rest of our own locator.
    fn prefix_table(&self) -> PrefixTable<NextHop> {
        let learned = self.routes.iter().map(|(prefix, route)| (*prefix, NextHop::Link(route.link)));
        let behind = self.networks_behind().map(|network| (network, NextHop::Local));
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
                *slot = link_path(link, self.hmac_requirement(link));
            }
        }
        paths
    }

    /// Who knows no key cannot check anything: it forwards what others sign.
    fn hmac_requirement(&self, link: &Link) -> Requirement {
        if self.settings.require_hmac_from.contains(&link.key.peer) {
            Requirement::Required
        } else if self.hmac_keys.is_empty() {
            Requirement::Ignored
        } else {
            Requirement::IfPresent
        }
    }

    fn inbound_table(&self) -> SpiTable {
        let entries = self.links.values().flat_map(|link| {
            link.children.values().map(|child| InboundEntry { sa: Arc::clone(&child.inbound), link: link.id })
        });
        entries.collect()
    }
}

/// `None` while nothing is known of where the peer is.
fn link_path(link: &Link, hmac: Requirement) -> Option<LinkPath> {
    let path = link.path?;
    Some(LinkPath {
        id: link.id,
        socket: link.socket,
        local: link.local_address(),
        remote: path.remote,
        outbound: link.outbound().cloned(),
        mtu: link.mtu,
        fragment_outer: link.fragment_outer,
        accept: link.accept.clone(),
        hmac,
        counters: Arc::clone(&link.counters),
    })
}

/// The policies as the classifier sees them, in file order.
pub(super) fn rules(settings: &settings::Settings, classes: &ClassTable) -> Vec<Rule> {
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
            membership: policy.membership.clone(),
            classes: classes.within(&policy.membership),
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
    segments.extend(compressed_prefixes(settings).map(|(_, prefix)| prefix));
    SidSpace::new(settings.mesh_prefix, segments, locators)
}

/// The nodes that have compressed SIDs, and the prefixes of these.
pub(super) fn compressed_prefixes(
    settings: &settings::Settings,
) -> impl Iterator<Item = (&settings::NodeName, Ipv6Net)> {
    settings.nodes.iter().filter_map(|node| {
        let sid = CompressedSid::new(settings.mesh_prefix, node.usid?).ok()?;
        Some((&node.name, sid.prefix()))
    })
}

/// The first IPv4 address of the node itself.
pub(super) fn own_ipv4(settings: &settings::Settings) -> Option<Ipv4Addr> {
    settings.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    })
}
