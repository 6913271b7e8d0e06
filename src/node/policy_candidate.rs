//! One way of a policy: its stops as segments, with the present routes.

use super::policy_health::Health;
use super::routing::host_route;
use super::{Node, SelectedRoute};
use crate::config::settings::{Candidate, Exit, Node as RegistryNode, NodeName};
use crate::forwarding::LinkId;
use ipnet::IpNet;
use srv6::compressed_sid::{Function, pack};
use srv6::{CompressedSid, Encapsulation, SegmentPath};
use std::net::{IpAddr, Ipv6Addr};

/// A nearer node must be better than the present one by this part of its metric (in percent) and this many units: two
/// at the same distance must not take turns.
const MARGIN_PERCENT: u32 = 10;
const MARGIN: u32 = 32;

/// A candidate and what has become of it.
pub(crate) struct CandidateRuntime {
    /// Its place in the policy, from 1.
    pub(crate) number: u8,
    pub(crate) wanted: Candidate,
    /// The key that signs its list.
    pub(crate) hmac: Option<u32>,
    /// Stops in order, the exit last; empty while no exit is known.
    pub(crate) journey: Vec<NodeName>,
    pub(crate) segments: Vec<Ipv6Addr>,
    /// Whether `segments` hold several stops each (RFC 9800).
    pub(crate) compressed: bool,
    pub(crate) encapsulation: Option<Encapsulation>,
    /// The link to the first stop, where that has to be a direct one.
    pub(crate) link: Option<LinkId>,
    /// Longest inner packet in octets.
    pub(crate) mtu: u16,
    /// What the probes say.
    pub(crate) health: Health,
    /// Why its stops cannot be reached; `None` if they can.
    unreachable: Option<String>,
}

/// What a candidate comes to with the present routes.
pub(super) struct Resolved {
    pub(super) journey: Vec<NodeName>,
    segments: Vec<Ipv6Addr>,
    compressed: bool,
    encapsulation: Option<Encapsulation>,
    link: Option<LinkId>,
    mtu: u16,
    unreachable: Option<String>,
}

impl CandidateRuntime {
    pub(super) fn new(number: u8, wanted: &Candidate, hmac: Option<u32>) -> Self {
        Self {
            number,
            wanted: wanted.clone(),
            hmac,
            journey: Vec::new(),
            segments: Vec::new(),
            compressed: false,
            encapsulation: None,
            link: None,
            mtu: 0,
            health: Health::default(),
            unreachable: Some("the mesh has not been heard yet".to_owned()),
        }
    }

    /// Where the packets leave the mesh, if that is known.
    pub(crate) fn exit_node(&self) -> Option<&NodeName> {
        self.journey.last()
    }

    /// Whether the exit is chosen by distance.
    pub(crate) fn is_nearest(&self) -> bool {
        self.wanted.exit == Exit::Nearest
    }

    pub(super) fn chooses(&self) -> bool {
        self.is_nearest() || self.wanted.via.iter().any(|stop| stop.any_of.len() > 1)
    }

    /// Whether all stops can be reached, whatever the probes say.
    pub(crate) fn is_reachable(&self) -> bool {
        self.unreachable.is_none()
    }

    /// Whether packets may take it.
    pub(crate) fn is_usable(&self) -> bool {
        self.problem().is_none()
    }

    /// Why packets may not take it.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.unreachable.as_deref().or_else(|| self.health.problem())
    }

    pub(super) fn adopt(&mut self, new: Resolved) {
        if new.segments != self.segments || new.unreachable.is_some() {
            // What was measured was another way.
            self.health.forget();
        }
        self.journey = new.journey;
        self.segments = new.segments;
        self.compressed = new.compressed;
        self.encapsulation = new.encapsulation;
        self.link = new.link;
        self.mtu = new.mtu;
        self.unreachable = new.unreachable;
    }
}

/// The segment by which a node is a waypoint.
pub(crate) fn waypoint(node: &RegistryNode) -> Option<Ipv6Addr> {
    match &node.sids {
        Some(sids) => sids.end,
        None => srv6::Locator::new(node.locator).ok().map(|locator| locator.end()),
    }
}

/// The segment by which a node is an exit to what it announces, or to the internet.
pub(crate) fn exit_segment(node: &RegistryNode, internet: bool) -> Option<Ipv6Addr> {
    match &node.sids {
        Some(sids) if internet => sids.internet.or(sids.dt46),
        Some(sids) => sids.dt46.or(sids.dt4).or(sids.dt6),
        None => srv6::Locator::new(node.locator)
            .ok()
            .map(|locator| if internet { locator.internet() } else { locator.dt46() }),
    }
}

/// The segment by which `node` goes on over its own link to `next`.
fn adjacency(node: &RegistryNode, next: &RegistryNode) -> Option<Ipv6Addr> {
    let (own, next) = (srv6::Locator::new(node.locator).ok()?, srv6::Locator::new(next.locator).ok()?);
    node.sids.is_none().then(|| own.end_x(&next))
}

impl Node {
    /// The stops of a candidate as segments, and what stands against it.
    pub(super) fn resolve(&self, candidate: &CandidateRuntime, internet: bool) -> Resolved {
        self.try_resolve(candidate, internet).unwrap_or_else(|problem| Resolved {
            journey: Vec::new(),
            segments: Vec::new(),
            compressed: false,
            encapsulation: None,
            link: None,
            mtu: 0,
            unreachable: Some(problem),
        })
    }

    fn try_resolve(&self, candidate: &CandidateRuntime, internet: bool) -> Result<Resolved, String> {
        let wanted = &candidate.wanted;
        let stops = self.stops(candidate)?;
        let last = stops.len() - 1;
        let strict: Vec<bool> =
            wanted.via.iter().map(|stop| stop.strict).chain([wanted.exit_strict]).collect();
        let (mut segments, mut unreachable) = (Vec::new(), None);
        for (index, node) in stops.iter().enumerate() {
            let is_exit = index == last;
            let segment = match stops.get(index + 1) {
                Some(next) if strict.get(index + 1) == Some(&true) => adjacency(node, next),
                Some(_) => waypoint(node),
                None => exit_segment(node, internet),
            };
            let segment = segment.ok_or_else(|| {
                format!("the registry lists no segment by which {} could serve", self.display(node))
            })?;
            if unreachable.is_none() {
                unreachable = self.stop_problem(node, segment, is_exit && internet);
            }
            segments.push(segment);
        }
        let link = if strict.first() == Some(&true) { self.direct_link(stops[0])? } else { None };
        let listed = strict.contains(&true) || candidate.hmac.is_some();
        let compressed = if listed { None } else { self.compress(&stops, internet) };
        let is_compressed = compressed.is_some();
        let segments = compressed.unwrap_or(segments);
        let envelope = self.envelope(&segments, candidate.hmac)?;
        let header = u16::try_from(envelope.header_len()).unwrap_or(u16::MAX);
        let tunnel = match link.and_then(|id| self.links.get(&id)) {
            Some(link) => link.mtu,
            None => self.tunnel_mtu_towards(segments.first().copied()),
        };
        Ok(Resolved {
            journey: stops.iter().map(|node| node.name.clone()).collect(),
            segments,
            compressed: is_compressed,
            encapsulation: Some(envelope),
            link,
            mtu: tunnel.saturating_sub(header),
            unreachable,
        })
    }

    /// The nodes of a candidate in order, the exit last.
    fn stops(&self, candidate: &CandidateRuntime) -> Result<Vec<&RegistryNode>, String> {
        let mut stops = Vec::new();
        for (index, stop) in candidate.wanted.via.iter().enumerate() {
            let present = candidate.journey.get(index);
            let node = match stop.any_of.as_slice() {
                [name] => self.registered(name)?,
                names => self.nearest_of(names, present).ok_or_else(|| {
                    let names: Vec<String> =
                        names.iter().map(|name| self.settings.display_name(name)).collect();
                    format!("none of {} is reachable", names.join(", "))
                })?,
            };
            stops.push(node);
        }
        stops.push(match &candidate.wanted.exit {
            Exit::Node(name) => self.registered(name)?,
            Exit::Nearest => {
                self.nearest_exit(candidate.exit_node()).ok_or("no reachable node offers the internet")?
            }
        });
        Ok(stops)
    }

    fn registered(&self, name: &NodeName) -> Result<&RegistryNode, String> {
        let missing = || format!("{} is not in the registry", self.settings.display_name(name));
        self.settings.node(name).ok_or_else(missing)
    }

    /// The stops as few addresses, if each of them has a compressed SID that is announced.
    fn compress(&self, stops: &[&RegistryNode], internet: bool) -> Option<Vec<Ipv6Addr>> {
        let (exit, waypoints) = stops.split_last()?;
        let announced = |node: &RegistryNode| {
            let sid = self.compressed_sid(node)?;
            let known = node.name == self.settings.name || self.routes.contains_key(&IpNet::V6(sid.prefix()));
            known.then_some(sid)
        };
        let waypoints: Option<Vec<CompressedSid>> = waypoints.iter().map(|node| announced(node)).collect();
        let exit = announced(exit).filter(|_| exit.sids.is_none())?;
        let function = if internet { Function::Internet } else { Function::Dt46 };
        Some(pack(&waypoints?, &exit, function).ok()?.as_slice().to_vec())
    }

    /// The compressed SID that the registry gives to a node.
    pub(super) fn compressed_sid(&self, node: &RegistryNode) -> Option<CompressedSid> {
        CompressedSid::new(self.settings.mesh_prefix, node.usid?).ok()
    }

    /// The link to a node that has to be next to this one.
    fn direct_link(&self, node: &RegistryNode) -> Result<Option<LinkId>, String> {
        let link =
            self.best_link(&node.name).filter(|link| self.links.get(link).is_some_and(|link| link.is_up()));
        link.map(Some).ok_or_else(|| format!("there is no direct link to {}", self.display(node)))
    }

    /// A link to this peer, one that is up if there is any.
    pub(super) fn best_link(&self, peer: &NodeName) -> Option<LinkId> {
        let links = self.links.values().filter(|link| link.key.peer == *peer);
        links.max_by_key(|link| (link.is_up(), std::cmp::Reverse(link.id))).map(|link| link.id)
    }

    /// What keeps a stop from being reached; `None` if nothing does.
    fn stop_problem(&self, node: &RegistryNode, segment: Ipv6Addr, internet: bool) -> Option<String> {
        if node.name == self.settings.name {
            return None;
        }
        let name = self.display(node);
        if self.route_to(IpAddr::V6(segment)).is_none() {
            return Some(format!("{name} is unreachable"));
        }
        // The locator alone would cover the segment: only the segment's own route says that it is offered.
        let offered = node.sids.is_some() || self.routes.contains_key(&host_route(segment));
        (internet && !offered).then(|| format!("{name} does not offer the internet"))
    }

    /// The nearest node that offers the internet.
    fn nearest_exit(&self, present: Option<&NodeName>) -> Option<&RegistryNode> {
        let distance = |node: &RegistryNode| {
            let route = self.routes.get(&host_route(exit_segment(node, true)?))?;
            self.links.get(&route.link)?.is_up().then_some(u32::from(route.metric))
        };
        sticky_nearest(self.settings.peers(), present, distance)
    }

    /// The nearest of several nodes, as seen from here.
    fn nearest_of(&self, names: &[NodeName], present: Option<&NodeName>) -> Option<&RegistryNode> {
        let distance = |node: &RegistryNode| {
            if node.name == self.settings.name {
                return Some(0);
            }
            let (_, route) = self.route_to(IpAddr::V6(waypoint(node)?))?;
            Some(u32::from(route.metric))
        };
        sticky_nearest(names.iter().filter_map(|name| self.settings.node(name)), present, distance)
    }

    /// The selected route that covers an address, if its link is up.
    pub(super) fn route_to(&self, address: IpAddr) -> Option<(IpNet, &SelectedRoute)> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        (0..=longest).rev().find_map(|length| {
            let prefix = IpNet::new(address, length).ok()?.trunc();
            let route = self.routes.get(&prefix)?;
            self.links.get(&route.link)?.is_up().then_some((prefix, route))
        })
    }

    /// The longest packet that the link towards `address` takes, in octets.
    pub(super) fn tunnel_mtu_towards(&self, address: Option<Ipv6Addr>) -> u16 {
        let route = address.and_then(|address| self.route_to(IpAddr::V6(address)));
        let link = route.and_then(|(_, route)| self.links.get(&route.link));
        link.map_or(self.settings.kernel.tun_mtu, |link| link.mtu)
    }

    /// The headers of a path, signed with the key of this number if there is one.
    pub(super) fn envelope(&self, segments: &[Ipv6Addr], hmac: Option<u32>) -> Result<Encapsulation, String> {
        let source = self.own_address().ok_or("this node has no locator")?;
        let path = SegmentPath::new(segments).map_err(|error| error.to_string())?;
        let envelope = match hmac {
            None => Encapsulation::new(source, &path, srv6::Form::Reduced),
            Some(id) => {
                let key =
                    self.hmac_keys.get(id).ok_or_else(|| format!("there is no key {id} to sign with"))?;
                Encapsulation::with_hmac(source, &path, srv6::Form::Reduced, key)
            }
        };
        envelope.map_err(|error| error.to_string())
    }
}

/// The nearest of some nodes, staying with the present one unless another is clearly nearer.
fn sticky_nearest<'a>(
    nodes: impl Iterator<Item = &'a RegistryNode>,
    present: Option<&NodeName>,
    distance: impl Fn(&RegistryNode) -> Option<u32>,
) -> Option<&'a RegistryNode> {
    let reachable: Vec<(u32, &RegistryNode)> =
        nodes.filter_map(|node| Some((distance(node)?, node))).collect();
    let (best, nearest) = *reachable.iter().min_by_key(|(metric, _)| *metric)?;
    let present = reachable.iter().find(|(_, node)| Some(&node.name) == present);
    match present {
        Some((metric, node)) if best + MARGIN + metric * MARGIN_PERCENT / 100 > *metric => Some(node),
        _ => Some(nearest),
    }
}
