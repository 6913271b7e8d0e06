//! Babel over the links, and the routes that it selects.

use super::path_mtu::LEAST_MTU;
use super::publish::compressed_prefixes;
use super::{Node, NodeEvent, babel_packet};
use crate::config::settings::{self, CostMap, NodeName, Settings};
use crate::forwarding::{Down, LinkId};
use babel::{ImportPolicy, InterfaceConfig, InterfaceId, Prefix, RouterId};
use ipnet::{IpNet, Ipv6Net};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A route that Babel selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedRoute {
    pub(crate) link: LinkId,
    pub(crate) metric: u16,
    pub(crate) router_id: RouterId,
}

/// A node's Babel router with its own settings.
pub(super) fn new_router(
    settings: &Settings,
    seqno: Option<u16>,
    rng: ChaCha20Rng,
    now: Instant,
) -> Result<babel::Router, String> {
    let mut config = babel::Config::new(router_id(&settings.name));
    config.seqno = seqno.map(babel::Seqno);
    config.cost = cost_map(&settings.cost);
    babel::Router::new(config, rng, now).map_err(|error| error.to_string())
}

/// The cost map in Babel's own terms.
pub(super) fn cost_map(cost: &CostMap) -> babel::CostMap {
    babel::CostMap {
        rxcost: cost.rxcost,
        rtt_min: cost.rtt_min,
        rtt_max: cost.rtt_max,
        rtt_cost: cost.rtt_cost,
        loss_cost_per_percent: cost.loss_cost,
    }
}

/// The router-id of a node: a hash of its name, so that it survives restarts and needs no numbering.
pub(crate) fn router_id(name: &NodeName) -> RouterId {
    let mut hash = Sha256::new();
    hash.update(b"viamesh router-id");
    for part in [&name.organization, &name.common_name] {
        hash.update(part.len().to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut octets = [0; 8];
    octets.copy_from_slice(&hash.finalize()[..8]);
    RouterId(octets)
}

/// Everything that a node announces: its locator, its internet exit, its addresses, the networks behind it.
pub(crate) fn own_prefixes(settings: &Settings) -> BTreeSet<IpNet> {
    let mut prefixes: BTreeSet<IpNet> = settings.announce.iter().map(IpNet::trunc).collect();
    prefixes.insert(IpNet::V6(settings.locator));
    prefixes.extend(settings.addresses.iter().map(|address| IpNet::from(*address)));
    let compressed = compressed_prefixes(settings).filter(|(name, _)| **name == settings.name);
    prefixes.extend(compressed.map(|(_, prefix)| IpNet::V6(prefix)));
    if settings.offer_internet
        && let Ok(locator) = srv6::Locator::new(settings.locator)
    {
        prefixes.insert(host_route(locator.internet()));
    }
    prefixes
}

/// A /128.
pub(crate) fn host_route(address: std::net::Ipv6Addr) -> IpNet {
    IpNet::V6(Ipv6Net::from(address))
}

impl Node {
    pub(super) fn update_import_policy(&mut self, now: Instant) {
        let endpoints = self.settings.peers().flat_map(|peer| &peer.endpoints);
        // A node that runs other software has a router-id of its own choice, so nobody can tell whose a route to its
        // segments is.
        let derive = |node: &&settings::Node| node.sids.is_none();
        let ours = self.settings.nodes.iter().filter(derive);
        let locators = ours.clone().map(|node| (IpNet::V6(node.locator), router_id(&node.name)));
        let names: BTreeSet<&NodeName> = ours.map(|node| &node.name).collect();
        let compressed = compressed_prefixes(&self.settings).filter(|(name, _)| names.contains(name));
        let compressed = compressed.map(|(name, prefix)| (IpNet::V6(prefix), router_id(name)));
        let mut local_networks: Vec<IpNet> = own_prefixes(&self.settings).into_iter().collect();
        local_networks.extend(self.announcements.connected.iter().map(|connected| connected.network));
        let policy = ImportPolicy {
            accept_default_routes: false,
            local_networks,
            endpoints: endpoints
                .filter_map(|endpoint| endpoint.address.as_ref()?.parse::<IpAddr>().ok())
                .collect(),
            locators: locators.chain(compressed).collect(),
            denied: Vec::new(),
        };
        self.babel.set_import_policy(policy, now);
    }

    /// Start Babel on a link that has just come up. It says hello and asks for all routes at once.
    pub(super) fn add_babel_interface(&mut self, id: LinkId, now: Instant) {
        let Some(link) = self.links.get(&id) else { return };
        let timers = &self.settings.timers;
        let mut config = InterfaceConfig::new(link.link_local);
        // What every path carries: the link's own MTU is searched with other packets.
        config.mtu = LEAST_MTU;
        config.hello_interval = timers.hello;
        config.update_interval = timers.update;
        config.fast_hello = link.ours.then_some(timers.fast_hello);
        self.babel.add_interface(InterfaceId(id.0), config, now);
    }

    /// An authenticated packet for the control plane.
    pub(super) fn handle_packet(&mut self, id: LinkId, packet: &[u8], arrival: Instant, now: Instant) {
        self.observe_arrival(id, now);
        let Some(link) = self.links.get(&id) else { return };
        match babel_packet::unwrap(packet, link.link_local) {
            Some(found) => {
                let (source, multicast) = (found.source, found.multicast);
                let outcome = self.babel.handle_packet(
                    InterfaceId(id.0),
                    source,
                    multicast,
                    found.payload,
                    arrival,
                    now,
                );
                if let Err(error) = outcome {
                    let reason = format!("bad Babel packet: {error}");
                    self.events.push_back(NodeEvent::Rejected { remote: link.peer.clone(), reason });
                }
            }
            None if self.answer_echo(packet) => {}
            None if self.handle_introduction(id, packet, now) => {}
            None => self.handle_probe_reply(packet, arrival),
        }
    }

    /// Take what Babel has to send and to say. True if there was anything.
    pub(super) fn drain_babel(&mut self, now: Instant) -> bool {
        let mut busy = false;
        while let Some(event) = self.babel.poll_event() {
            busy = true;
            self.handle_babel_event(event, now);
        }
        let mut payload = std::mem::take(&mut self.scratch);
        while let Some(transmit) = self.babel.poll_transmit(&mut payload, now) {
            busy = true;
            let id = LinkId(transmit.interface.0);
            let Some(link) = self.links.get(&id) else { continue };
            if let Some(packet) = babel_packet::wrap(link.link_local, transmit.destination, &payload) {
                self.down.push_back(Down::Control { link: id, packet });
            }
        }
        self.scratch = payload;
        busy
    }

    fn handle_babel_event(&mut self, event: babel::Event, now: Instant) {
        match event {
            babel::Event::RouteSelected { prefix, interface, metric, router_id, .. } => {
                let route = SelectedRoute { link: LinkId(interface.0), metric, router_id };
                self.install_route(&prefix, Some(route));
            }
            babel::Event::RouteLost { prefix } => self.install_route(&prefix, None),
            babel::Event::NeighbourUp { interface, .. } => {
                self.note_neighbour(interface, true);
                self.search_path_mtu(LinkId(interface.0), now);
            }
            babel::Event::NeighbourDown { interface, .. } => self.note_neighbour(interface, false),
            babel::Event::Rejected { prefix, interface, reason, .. } => {
                let text =
                    format!("{}: did not take the route to {prefix}: {reason:?}", self.peer_of(interface));
                self.events.push_back(NodeEvent::Rejected { remote: self.peer_of(interface), reason: text });
            }
            babel::Event::DuplicateRouterId { prefix, interface, .. } => {
                let peer = self.peer_of(interface);
                let text = format!(
                    "{peer} passes on {prefix} under this node's own router-id: is another node running with this \
                     node's name?"
                );
                self.events.push_back(NodeEvent::Trouble { text });
            }
            babel::Event::LimitReached { table } => {
                let text = format!("Babel's {table} table is full: announcements are being refused");
                self.events.push_back(NodeEvent::Trouble { text });
            }
            babel::Event::SeqnoChanged(seqno) => self.events.push_back(NodeEvent::Seqno(seqno.0)),
            babel::Event::PathMtu { interface, mtu, .. } => self.take_path_mtu(LinkId(interface.0), mtu),
        }
    }

    /// Replace the route to a prefix in one step.
    fn install_route(&mut self, prefix: &Prefix, route: Option<SelectedRoute>) {
        // Source-specific routes are not used by the data path yet: it would send all sources there.
        if prefix.source.is_some() {
            return;
        }
        let via = route.as_ref().map(|route| self.peer_of(InterfaceId(route.link.0)));
        let metric = route.as_ref().map(|route| route.metric);
        let known = self.routes.contains_key(&prefix.destination);
        match route {
            Some(route) => self.routes.insert(prefix.destination, route),
            None => self.routes.remove(&prefix.destination),
        };
        self.forwarding_changed = true;
        self.kernel_changed |= known != metric.is_some();
        self.announcements.stale |= known != metric.is_some();
        self.update_held();
        self.events.push_back(NodeEvent::RouteChanged { prefix: prefix.to_string(), via, metric });
    }

    /// Read the metrics of selected routes again. A policy that wants the nearest exit may choose another.
    pub(super) fn refresh_metrics(&mut self, now: Instant) {
        for report in self.babel.selected(now).into_iter().filter(|report| report.prefix.source.is_none()) {
            if let Some(route) = self.routes.get_mut(&report.prefix.destination) {
                route.metric = report.metric;
            }
        }
        self.forwarding_changed |= self.wants_other_stops();
        self.tell_policies(now);
        self.update_held();
    }

    /// See which lost prefixes must be refused, and which are forgotten by now.
    //= RFC 8966 §2.8
    fn update_held(&mut self) {
        let lost = self.babel.unreachable().filter(|prefix| prefix.source.is_none());
        let held: BTreeSet<IpNet> = lost.map(|prefix| prefix.destination).collect();
        if held != self.held {
            self.held = held;
            self.announcements.stale = true;
            self.forwarding_changed = true;
            self.kernel_changed = true;
        }
    }

    fn note_neighbour(&mut self, interface: InterfaceId, up: bool) {
        let peer = self.peer_of(interface);
        self.events.push_back(NodeEvent::Neighbour { peer, up });
    }

    fn peer_of(&self, interface: InterfaceId) -> String {
        self.links
            .get(&LinkId(interface.0))
            .map_or_else(|| "a removed link".to_owned(), |link| link.peer.clone())
    }

    /// Round-trip time and cost of each link's neighbour.
    pub(super) fn link_quality(&self, now: Instant) -> std::collections::BTreeMap<LinkId, LinkQuality> {
        let reports = self.babel.neighbours(now).into_iter();
        reports
            .filter(|report| report.up)
            .map(|report| {
                let quality =
                    LinkQuality { rtt: report.rtt, cost: report.cost, loss_percent: report.loss_percent };
                (LinkId(report.interface.0), quality)
            })
            .collect()
    }
}

/// What Babel measured on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkQuality {
    pub(crate) rtt: Option<Duration>,
    pub(crate) cost: u16,
    pub(crate) loss_percent: u8,
}
