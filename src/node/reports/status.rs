//! `status`.

use super::{finite, milliseconds, seconds_since};
use crate::config::settings::{self, Node as RegistryNode};
use crate::control::report::{
    Dialled, FORMAT, LinkStatus, NodeState, NodeStatus, PathStatus, PolicyState, PolicyStatus, StatusReport,
};
use crate::forwarding::LinkId;
use crate::node::link::Link;
use crate::node::name::node_address;
use crate::node::routing::LinkQuality;
use crate::node::{Node, PolicyRuntime};
use crate::telemetry::{Health, HealthCode};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Instant;

/// Dials that must fail before a silent peer becomes a problem to show.
const TRIES_BEFORE_PROBLEM: u32 = 2;

impl Node {
    pub(in crate::node) fn status(&self, only: Option<&str>, now: Instant) -> Result<StatusReport, String> {
        let wanted = only.map(|name| self.find_node(name)).transpose()?;
        let quality = self.link_quality(now);
        let initiated = self.initiated_links();
        let peers = self.settings.peers().filter(|node| wanted.is_none_or(|wanted| wanted.name == node.name));
        let nodes = peers.map(|node| self.node_status(node, &quality, &initiated, now)).collect();
        let ports: BTreeSet<u16> = self.sockets.iter().map(|(_, socket)| socket.port).collect();
        let addresses = self.own_address().map(IpAddr::V6);
        Ok(StatusReport {
            format: FORMAT,
            node: format!("{}.{}", self.settings.name.common_name, self.settings.name.organization),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: seconds_since(self.started, now),
            listening: ports.into_iter().collect(),
            addresses: addresses.into_iter().chain(self.settings.addresses.iter().copied()).collect(),
            nodes,
            policies: self.policies.iter().map(|policy| self.policy_status(policy)).collect(),
            problems: self.problems(),
            // The workers count them: whoever drives the node adds them.
            drops: BTreeMap::new(),
        })
    }

    /// Links whose present IKE SA was begun by us.
    fn initiated_links(&self) -> BTreeSet<LinkId> {
        let associations = self.ike.associations().into_iter();
        associations
            .filter(|association| association.initiator)
            .filter_map(|association| association.connection.map(|connection| LinkId(connection.0)))
            .collect()
    }

    fn node_status(
        &self,
        node: &RegistryNode,
        quality: &BTreeMap<LinkId, LinkQuality>,
        initiated: &BTreeSet<LinkId>,
        now: Instant,
    ) -> NodeStatus {
        let links: Vec<&Link> = self.links.values().filter(|link| link.key.peer == node.name).collect();
        let address = node_address(node).map(IpAddr::V6);
        let found = address.and_then(|address| self.route_to(address));
        let in_kernel = found.is_some_and(|(prefix, _)| self.kernel_progress.has(&prefix));
        let route = found.map(|(_, route)| route);
        let next = route.and_then(|route| self.links.get(&route.link));
        let (state, path) = match next {
            Some(_) if !in_kernel => {
                let reason = "found, waiting for the kernel to take the route".to_owned();
                (NodeState::Connecting, PathStatus::None { reason })
            }
            Some(link) if link.key.peer == node.name => (NodeState::Up, direct(link, initiated)),
            Some(link) => (NodeState::Up, PathStatus::Through { node: link.peer.clone() }),
            None => unreachable(&links, now),
        };
        let sum = |count: fn(&Link) -> u64| Some(links.iter().map(|link| count(link)).sum());
        NodeStatus {
            node: self.display(node),
            state,
            since_seconds: links
                .iter()
                .filter_map(|link| link.up_since)
                .min()
                .map_or(0, |at| seconds_since(at, now)),
            path,
            rtt_ms: self.distance_ms(route, next, node, quality),
            received_bytes: sum(|link| link.counters.received.bytes.get()),
            sent_bytes: sum(|link| link.counters.sent.bytes.get()),
            key_exchange: links.iter().find(|link| link.is_up()).map(|link| link.key_exchange.to_lowercase()),
            addresses: address.into_iter().collect(),
            links: links.iter().map(|link| link_status(link, quality.get(&link.id))).collect(),
        }
    }

    /// Round trip to a node. A direct link is measured; over relays the metric tells it, since the cost map is
    /// linear in time.
    fn distance_ms(
        &self,
        route: Option<&crate::node::SelectedRoute>,
        next: Option<&Link>,
        node: &RegistryNode,
        quality: &BTreeMap<LinkId, LinkQuality>,
    ) -> Option<f64> {
        let (route, next) = (route?, next?);
        let first = quality.get(&next.id)?;
        if next.key.peer == node.name {
            return first.rtt.map(milliseconds);
        }
        let cost = &self.settings.cost;
        let span = milliseconds(cost.rtt_max.saturating_sub(cost.rtt_min));
        let beyond = f64::from(route.metric.saturating_sub(first.cost).saturating_sub(cost.rxcost));
        let estimate = beyond * span / f64::from(cost.rtt_cost.max(1));
        first.rtt.map(|rtt| milliseconds(rtt) + estimate)
    }

    fn policy_status(&self, policy: &PolicyRuntime) -> PolicyStatus {
        let own = self.settings.display_name(&self.settings.name);
        let foremost = policy.foremost();
        let stops =
            foremost.into_iter().flat_map(|path| &path.journey).map(|name| self.settings.display_name(name));
        let state = match (&policy.problem, policy.if_unreachable) {
            (None, _) => PolicyState::Up,
            (Some(_), settings::IfUnreachable::Drop) => PolicyState::Down,
            (Some(_), settings::IfUnreachable::AnyPath | settings::IfUnreachable::Next) => {
                PolicyState::Degraded
            }
        };
        let dropped = match state {
            PolicyState::Down => policy.counters.unreachable.get(),
            PolicyState::Up | PolicyState::Degraded => 0,
        };
        PolicyStatus {
            policy: policy.name.clone(),
            state,
            path: std::iter::once(own).chain(stops).collect(),
            remark: policy_remark(policy),
            reason: policy.problem.clone(),
            mtu: foremost.map(|path| u32::from(path.mtu)).filter(|mtu| *mtu > 0),
            packets: policy.counters.steered.packets.get(),
            dropped,
        }
    }

    /// What is wrong, worst first.
    fn problems(&self) -> Vec<Health> {
        let mut problems = self.host_health.clone();
        for link in self.links.values().filter(|link| !link.is_up()) {
            if let Some(failure) =
                link.last_failure.as_ref().filter(|failure| failure.tries >= TRIES_BEFORE_PROBLEM)
            {
                let text =
                    format!("{} cannot be reached: {} ({} tries)", link.peer, failure.what, failure.tries);
                problems.push(Health::new(HealthCode::PeerNoAnswer, &link.peer, text, dial_hint(link)));
            }
        }
        for policy in &self.policies {
            if let Some(problem) = &policy.problem {
                let text = format!("policy {} has no path: {problem}", policy.name);
                let next_step = "`viamesh status` shows which node is missing";
                problems.push(Health::new(HealthCode::PolicyDown, &policy.name, text, next_step));
            }
        }
        problems.sort_by_key(|health| std::cmp::Reverse(health.severity));
        problems
    }
}

fn dial_hint(link: &Link) -> String {
    use crate::node::RemoteAddress;
    match &link.address {
        RemoteAddress::Fixed(address) => {
            format!("is its daemon running, and is udp {} open at {}?", address.port(), address.ip())
        }
        RemoteAddress::Name(name, port) => format!("does {name} resolve, and is udp {port} open there?"),
        RemoteAddress::None => "it has no address in the registry and must dial".to_owned(),
    }
}

fn direct(link: &Link, initiated: &BTreeSet<LinkId>) -> PathStatus {
    let dialled = if initiated.contains(&link.id) { Dialled::Us } else { Dialled::Them };
    match link.path {
        Some(path) => PathStatus::Direct { remote: path.remote, dialled },
        None => PathStatus::None { reason: "its address is not known".to_owned() },
    }
}

fn unreachable(links: &[&Link], now: Instant) -> (NodeState, PathStatus) {
    if links.iter().any(|link| link.is_up()) {
        let reason = "the tunnel is up, waiting for its routes".to_owned();
        return (NodeState::Connecting, PathStatus::None { reason });
    }
    let failure =
        links.iter().filter_map(|link| link.last_failure.as_ref()).max_by_key(|failure| failure.tries);
    match failure {
        Some(failure) => {
            let reason = format!("{} ({} s ago)", failure.what, seconds_since(failure.at, now));
            (NodeState::Down, PathStatus::None { reason })
        }
        None if links.is_empty() => {
            let reason = "no endpoint of a common address family".to_owned();
            (NodeState::Down, PathStatus::None { reason })
        }
        None => (NodeState::Connecting, PathStatus::None { reason: "connecting".to_owned() }),
    }
}

fn link_status(link: &Link, quality: Option<&LinkQuality>) -> LinkStatus {
    let state = match (link.is_up(), link.last_failure.is_some()) {
        (true, _) => NodeState::Up,
        (false, false) => NodeState::Connecting,
        (false, true) => NodeState::Down,
    };
    LinkStatus {
        local_endpoint: link.key.local_serial.clone(),
        remote_endpoint: link.key.remote_serial.clone(),
        state,
        remote: link.path.map(|path| path.remote),
        rtt_ms: quality.and_then(|quality| quality.rtt).map(milliseconds),
        loss_percent: quality.map(|quality| f64::from(quality.loss_percent)),
        cost: quality.and_then(|quality| finite(quality.cost)),
        mtu: Some(u32::from(link.mtu)),
        received_bytes: link.counters.received.bytes.get(),
        sent_bytes: link.counters.sent.bytes.get(),
    }
}

/// What is special about the path that a policy takes.
fn policy_remark(policy: &PolicyRuntime) -> Option<String> {
    let (foremost, paths) = (policy.foremost()?, policy.candidates.len());
    let nearest = foremost.is_nearest().then(|| "nearest internet exit".to_owned());
    let others = policy.in_use().count().saturating_sub(1);
    let place = (paths > 1).then(|| match others {
        0 => format!("path {} of {paths}", foremost.number),
        more => format!("path {} of {paths}, and {more} more", foremost.number),
    });
    let parts: Vec<String> = nearest.into_iter().chain(place).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
