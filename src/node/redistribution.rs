//! What this node announces: its own prefixes, and what the host's interfaces and routing tables feed it.

use super::{Node, NodeEvent, routing};
use crate::config::redistribution::RouteImport;
use crate::kernel::{ConnectedNetwork, HostRoute, KernelState};
use babel::Prefix;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

/// Networks of the host that are announced at most. A full table of the internet is not for a mesh.
const MOST: usize = 10_000;

/// Where an announced network of the host comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Feed {
    /// An interface is part of it.
    Connected { interface: String },
    /// A routing table has it.
    Table { table: u32, metric: u16 },
}

/// What the host feeds, and what Babel was told to announce.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    /// Networks that this host's interfaces are part of.
    pub(super) connected: Vec<ConnectedNetwork>,
    /// Routes of others in the tables that are imported.
    host_routes: Vec<HostRoute>,
    /// Networks behind this node beside those that its file announces.
    pub(super) fed: BTreeMap<IpNet, Feed>,
    /// Everything that Babel originates, with its metric.
    originated: BTreeMap<IpNet, u16>,
    /// Whether what is to be announced must be looked at again.
    pub(super) stale: bool,
    full: bool,
}

impl Node {
    /// The networks that this host's interfaces are part of: they are never routed into the mesh.
    pub fn set_connected_networks(&mut self, networks: Vec<ConnectedNetwork>, now: Instant) {
        if self.announcements.connected != networks {
            self.announcements.connected = networks;
            self.announcements.stale = true;
            self.kernel_changed = true;
            self.pump(now);
        }
    }

    /// The routes in the tables of [`KernelState::import_tables`] that others made.
    pub fn set_host_routes(&mut self, routes: Vec<HostRoute>, now: Instant) {
        if self.announcements.host_routes != routes {
            self.announcements.host_routes = routes;
            self.announcements.stale = true;
            self.pump(now);
        }
    }

    /// Announce what is to be announced by now, if that may have changed. True if there was something to look at.
    pub(super) fn refresh_announcements(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.announcements.stale) {
            return false;
        }
        let fed = self.fed();
        let mut wanted: BTreeMap<IpNet, u16> =
            fed.iter().map(|(network, feed)| (*network, feed.metric())).collect();
        // What the file says has metric 0, whatever a table says of it.
        wanted.extend(routing::own_prefixes(&self.settings).into_iter().map(|prefix| (prefix, 0)));
        for prefix in self.announcements.originated.keys().filter(|prefix| !wanted.contains_key(prefix)) {
            self.babel.withdraw(Prefix::to(*prefix), now);
        }
        for (prefix, metric) in &wanted {
            if self.announcements.originated.get(prefix) != Some(metric) {
                self.babel.announce_with_metric(Prefix::to(*prefix), *metric, now);
            }
        }
        self.announcements.originated = wanted;
        if self.announcements.fed != fed {
            self.announcements.fed = fed;
            self.forwarding_changed = true;
            self.kernel_changed = true;
        }
        self.update_import_policy(now);
        true
    }

    /// The networks that the host feeds, and from where.
    fn fed(&mut self) -> BTreeMap<IpNet, Feed> {
        let wanted = &self.settings.redistribution;
        let mut fed = BTreeMap::new();
        for found in &self.announcements.connected {
            if wanted.connected.contains(&found.interface) && self.is_feedable(&found.network) {
                let interface = found.interface.clone();
                fed.insert(found.network.trunc(), Feed::Connected { interface });
            }
        }
        for import in &wanted.import {
            for route in self.announcements.host_routes.iter().filter(|route| self.is_imported(import, route))
            {
                let feed = Feed::Table { table: import.table, metric: import.metric };
                fed.entry(route.destination).or_insert(feed);
            }
        }
        let full = fed.len() > MOST;
        if full {
            fed = fed.into_iter().take(MOST).collect();
            if !self.announcements.full {
                let text = format!(
                    "the host's tables have more than {MOST} networks to announce: the rest is left out"
                );
                self.events.push_back(NodeEvent::Trouble { text });
            }
        }
        self.announcements.full = full;
        fed
    }

    fn is_imported(&self, import: &RouteImport, route: &HostRoute) -> bool {
        route.table == import.table
            && import.admits(route.protocol, &route.destination)
            && self.is_feedable(&route.destination)
            && !self.is_from_the_mesh(&route.destination)
    }

    /// Whether the host has the network from us: a routing daemon may pass on, to another table or over another
    /// router, what we exported. Taken back it would be ours all at once, and the mesh would go in circles.
    fn is_from_the_mesh(&self, destination: &IpNet) -> bool {
        let mesh = self.routes.contains_key(destination) || self.held.contains(destination);
        mesh && !self.announcements.fed.contains_key(destination)
            && self.settings.redistribution.export.iter().any(|export| export.filter.admits(destination))
    }

    /// Segments are the mesh's own matter, and multicast is none of routing.
    fn is_feedable(&self, network: &IpNet) -> bool {
        let segments = IpNet::V6(self.settings.mesh_prefix);
        let scoped = match network.network() {
            IpAddr::V4(address) => address.is_link_local() || address.is_multicast() || address.is_loopback(),
            IpAddr::V6(address) => {
                address.is_unicast_link_local() || address.is_multicast() || address.is_loopback()
            }
        };
        !scoped && !segments.contains(network) && !network.contains(&segments)
    }

    /// Networks behind this node, from its file and from the host.
    pub(super) fn networks_behind(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.settings.announce.iter().map(IpNet::trunc).chain(self.announcements.fed.keys().copied())
    }

    /// What the kernel's other tables are to have and to tell.
    pub(super) fn add_redistribution(&self, state: &mut KernelState) {
        let wanted = &self.settings.redistribution;
        state.import_tables.extend(wanted.import.iter().map(|import| import.table));
        for export in &wanted.export {
            for prefix in self.routes.keys().filter(|prefix| export.filter.admits(prefix)) {
                state.add_export(export.table, *prefix, export.metric, self.source_for(prefix));
            }
        }
    }

    /// Why this node announces a network, if not because its file says so.
    pub(super) fn announced_because(&self, network: &IpNet) -> Option<String> {
        Some(match self.announcements.fed.get(network)? {
            Feed::Connected { interface } => format!("connected to {interface}"),
            Feed::Table { table, .. } => format!("imported from table {table}"),
        })
    }
}

impl Feed {
    fn metric(&self) -> u16 {
        match self {
            Self::Connected { .. } => 0,
            Self::Table { metric, .. } => *metric,
        }
    }
}
