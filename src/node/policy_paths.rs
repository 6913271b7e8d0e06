//! Policies at run time: their segment lists, whether every stop can be reached, and the exit that was chosen.

use super::{Node, NodeEvent};
use crate::config::settings::{Exit, IfUnreachable, Node as RegistryNode, NodeName, Policy, Settings};
use crate::forwarding::PolicyCounters;
use ipnet::IpNet;
use srv6::Encapsulation;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// A nearer internet exit must be better than the present one by this part of its metric (in percent) and
/// this many units: two exits at the same distance must not take turns.
const EXIT_MARGIN_PERCENT: u32 = 10;
const EXIT_MARGIN: u32 = 32;

/// A policy and what has become of it.
pub(crate) struct PolicyRuntime {
    pub(crate) name: String,
    pub(crate) if_unreachable: IfUnreachable,
    via: Vec<NodeName>,
    exit: Exit,
    /// Whether its packets leave to the internet rather than to networks that the exit announces.
    internet: bool,
    /// Stops in order, the exit last; empty while no exit is known.
    pub(crate) journey: Vec<NodeName>,
    pub(crate) segments: Vec<Ipv6Addr>,
    pub(crate) encapsulation: Option<Encapsulation>,
    /// Why it cannot be used; `None` if it can.
    pub(crate) problem: Option<String>,
    /// Longest inner packet in octets.
    pub(crate) mtu: u16,
    pub(crate) counters: Arc<PolicyCounters>,
}

impl PolicyRuntime {
    /// Where the packets leave the mesh, if that is known.
    pub(crate) fn exit_node(&self) -> Option<&NodeName> {
        self.journey.last()
    }

    /// Whether the exit is chosen by distance.
    pub(crate) fn is_nearest(&self) -> bool {
        self.exit == Exit::Nearest
    }
}

/// The policies of a node before anything is known of the mesh.
pub(crate) fn compile(settings: &Settings) -> Vec<PolicyRuntime> {
    settings.policies.iter().map(PolicyRuntime::from).collect()
}

impl From<&Policy> for PolicyRuntime {
    fn from(policy: &Policy) -> Self {
        Self {
            name: policy.name.clone(),
            if_unreachable: policy.if_unreachable,
            via: policy.via.clone(),
            exit: policy.exit.clone(),
            internet: policy.exit == Exit::Nearest
                || policy.to.iter().any(|network| network.prefix_len() == 0),
            journey: Vec::new(),
            segments: Vec::new(),
            encapsulation: None,
            problem: Some("the mesh has not been heard yet".to_owned()),
            mtu: 0,
            counters: Arc::new(PolicyCounters::default()),
        }
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

/// What a policy comes to with the present routes.
struct Resolved {
    journey: Vec<NodeName>,
    segments: Vec<Ipv6Addr>,
    encapsulation: Option<Encapsulation>,
    mtu: u16,
    problem: Option<String>,
}

impl Node {
    /// Look at all policies again after routes or links have changed.
    pub(super) fn update_policies(&mut self) {
        let resolved: Vec<Resolved> =
            self.policies.iter().map(|policy| self.resolve_policy(policy)).collect();
        for (policy, new) in self.policies.iter_mut().zip(resolved) {
            if policy.problem != new.problem {
                self.events
                    .push_back(NodeEvent::Policy { name: policy.name.clone(), problem: new.problem.clone() });
            }
            policy.journey = new.journey;
            policy.segments = new.segments;
            policy.encapsulation = new.encapsulation;
            policy.mtu = new.mtu;
            policy.problem = new.problem;
        }
    }

    fn resolve_policy(&self, policy: &PolicyRuntime) -> Resolved {
        let failed = |problem: String| Resolved {
            journey: Vec::new(),
            segments: Vec::new(),
            encapsulation: None,
            mtu: 0,
            problem: Some(problem),
        };
        let exit = match &policy.exit {
            Exit::Node(name) => Some(name.clone()),
            Exit::Nearest => self.nearest_exit(policy),
        };
        let Some(exit) = exit else {
            return failed("no reachable node offers the internet".to_owned());
        };
        let (mut journey, mut segments, mut problem) = (Vec::new(), Vec::new(), None);
        let last = policy.via.len();
        for (index, name) in policy.via.iter().chain(std::iter::once(&exit)).enumerate() {
            let display = self.settings.display_name(name);
            let Some(node) = self.settings.node(name) else {
                return failed(format!("{display} is not in the registry"));
            };
            let is_exit = index == last;
            let segment = if is_exit { exit_segment(node, policy.internet) } else { waypoint(node) };
            let Some(segment) = segment else {
                return failed(format!("the registry lists no segment by which {display} could serve"));
            };
            if problem.is_none() {
                problem = self.stop_problem(node, segment, is_exit && policy.internet);
            }
            journey.push(name.clone());
            segments.push(segment);
        }
        match self.envelope(&segments) {
            Ok(envelope) => {
                let header = u16::try_from(envelope.header_len()).unwrap_or(u16::MAX);
                let mtu = self.tunnel_mtu_towards(segments.first().copied()).saturating_sub(header);
                Resolved { journey, segments, encapsulation: Some(envelope), mtu, problem }
            }
            Err(error) => failed(error),
        }
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
        let offered = node.sids.is_some() || self.routes.contains_key(&super::routing::host_route(segment));
        (internet && !offered).then(|| format!("{name} does not offer the internet"))
    }

    /// The nearest node that offers the internet, staying with the present one unless another is clearly nearer.
    fn nearest_exit(&self, policy: &PolicyRuntime) -> Option<NodeName> {
        let distance = |node: &RegistryNode| {
            let segment = exit_segment(node, true)?;
            let route = self.routes.get(&super::routing::host_route(segment))?;
            self.links.get(&route.link)?.is_up().then_some(u32::from(route.metric))
        };
        let offers = self.settings.peers().filter_map(|node| Some((distance(node)?, node)));
        let (best, nearest) = offers.min_by_key(|(metric, _)| *metric)?;
        let present = policy.exit_node().and_then(|name| self.settings.node(name));
        if let Some((metric, node)) = present.and_then(|node| Some((distance(node)?, node)))
            && best + EXIT_MARGIN + metric * EXIT_MARGIN_PERCENT / 100 > metric
        {
            return Some(node.name.clone());
        }
        Some(nearest.name.clone())
    }

    /// Whether a policy's exit is chosen by distance and another is the nearest by now.
    pub(super) fn wants_another_exit(&self, policy: &PolicyRuntime) -> bool {
        policy.is_nearest() && self.nearest_exit(policy).as_ref() != policy.exit_node()
    }

    /// The selected route that covers an address, if its link is up.
    pub(super) fn route_to(&self, address: IpAddr) -> Option<(IpNet, &super::SelectedRoute)> {
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
}
