//! The one function that chooses what becomes of a packet.

use super::policy_path::{CandidatePath, IfUnreachable, Steered};
use super::snapshot::{Forwarding, LinkId, Local, NextHop};
use super::{DropReason, address};
use crate::policy::{Class, PolicyIndex};
use srv6::Behaviour;
use srv6::ip::FlowKey;
use std::net::IpAddr;

/// Where a packet entered the mesh node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Read from the TUN of this class: an application of this host, or its LAN.
    Tun(Class),
    /// Authenticated by the security association of this link.
    Link(LinkId),
    /// Decapsulated by this behaviour of ours, received over this link.
    Decapsulated(LinkId, Behaviour),
    /// Built by this node itself, for example an ICMP error or a probe towards a segment.
    Node,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Write it to the TUN: the kernel owns the destination or knows the way.
    Local,
    /// Apply this SRv6 behaviour.
    LocalSid(Behaviour),
    /// Send it over a link, inside the path of `policy` if there is one.
    Link {
        /// The next-hop link.
        link: LinkId,
        /// The policy and candidate whose path the packet takes.
        policy: Option<Steered>,
    },
    /// Hand it to the control plane.
    Punt,
    /// Discard it.
    Drop(DropReason),
}

/// Chooses for one packet. The data path, `explain` and `trace` all call this.
#[inline]
pub fn decide(forwarding: &Forwarding, flow: &FlowKey, origin: Origin) -> Decision {
    if address::is_link_local(flow.destination) || address::is_multicast(flow.destination) {
        return decide_link_scope(flow, origin);
    }
    if let Err(reason) = check_source(forwarding, flow, origin) {
        return Decision::Drop(reason);
    }
    if let Some(local) = forwarding.locals.lookup(flow.destination) {
        return decide_local(forwarding, flow, origin, local);
    }
    if let Err(reason) = check_remote_sid(forwarding, flow, origin) {
        return Decision::Drop(reason);
    }
    if let Origin::Decapsulated(_, Behaviour::Internet) = origin {
        return Decision::Local;
    }
    if let Origin::Tun(class) = origin
        && let Some(decision) = steer(forwarding, flow, class)
    {
        return decision;
    }
    route(forwarding, flow.destination, origin)
}

/// The way to `destination` by the routes alone. For SRv6 also the way to the next segment.
#[inline]
pub fn route(forwarding: &Forwarding, destination: IpAddr, origin: Origin) -> Decision {
    match forwarding.routes.lookup(destination) {
        Some(NextHop::Link(link)) if forwarding.is_up(*link) => Decision::Link { link: *link, policy: None },
        Some(NextHop::Link(_)) => Decision::Drop(DropReason::LinkDown),
        Some(NextHop::Local) if matches!(origin, Origin::Tun(_)) => Decision::Drop(DropReason::RoutingLoop),
        Some(NextHop::Local) => Decision::Local,
        Some(NextHop::Unreachable) => Decision::Drop(DropReason::Unreachable),
        None => Decision::Drop(DropReason::NoRoute),
    }
}

/// Link-local unicast and multicast: control traffic of a link, and nothing else.
fn decide_link_scope(flow: &FlowKey, origin: Origin) -> Decision {
    let multicast = address::is_multicast(flow.destination);
    match origin {
        Origin::Link(_) if !multicast || address::is_link_scope_multicast(flow.destination) => Decision::Punt,
        Origin::Tun(_) | Origin::Node if !multicast => Decision::Drop(DropReason::LinkLocalFromTun),
        Origin::Decapsulated(..) if !multicast => Decision::Drop(DropReason::Martian),
        _ => Decision::Drop(DropReason::Multicast),
    }
}

/// Sources that no packet of this origin may have.
#[inline]
fn check_source(forwarding: &Forwarding, flow: &FlowKey, origin: Origin) -> Result<(), DropReason> {
    if address::is_martian(flow.source) {
        return Err(DropReason::Martian);
    }
    let (Origin::Link(link) | Origin::Decapsulated(link, _)) = origin else { return Ok(()) };
    if forwarding.locals.lookup(flow.source).is_some() && !is_own_envelope(forwarding, flow, origin) {
        return Err(DropReason::OwnAddressFromOutside);
    }
    let accepts = forwarding.link(link).and_then(|path| path.accept.as_ref());
    if accepts.is_some_and(|accept| accept.lookup(flow.source).is_none()) {
        return Err(DropReason::TransitRefused);
    }
    Ok(())
}

/// Whether this may be an envelope of our own that comes by again: the fastest way from one stop to the next may lead
/// over the headend, and the headend may be a stop itself.
fn is_own_envelope(forwarding: &Forwarding, flow: &FlowKey, origin: Origin) -> bool {
    matches!(origin, Origin::Link(_))
        && flow.source == IpAddr::V6(forwarding.node_address)
        && forwarding.sids.contains(flow.destination)
}

#[inline]
fn decide_local(forwarding: &Forwarding, flow: &FlowKey, origin: Origin, local: Local) -> Decision {
    match (local, origin) {
        (Local::Address, Origin::Tun(_)) => Decision::Drop(DropReason::OwnDestinationFromTun),
        (Local::Address, _) => Decision::Local,
        (Local::Probe, Origin::Link(_) | Origin::Decapsulated(..)) => Decision::Punt,
        (Local::Probe, Origin::Tun(_) | Origin::Node) => Decision::Drop(DropReason::OwnDestinationFromTun),
        (Local::Sid(_), Origin::Tun(_)) => Decision::Drop(DropReason::SidFromTun),
        (Local::Sid(_), Origin::Decapsulated(..)) => Decision::Drop(DropReason::NestedSid),
        (Local::Sid(_), Origin::Link(_)) if !forwarding.sids.may_send(flow.source) => {
            Decision::Drop(DropReason::SidSourceOutside)
        }
        (Local::Sid(behaviour), Origin::Link(_) | Origin::Node) => Decision::LocalSid(behaviour),
    }
}

/// Segments of other nodes: only the mesh itself addresses them.
//= RFC 8754 §5.1
#[inline]
fn check_remote_sid(forwarding: &Forwarding, flow: &FlowKey, origin: Origin) -> Result<(), DropReason> {
    if !forwarding.sids.contains(flow.destination) {
        return Ok(());
    }
    match origin {
        Origin::Node => Ok(()),
        Origin::Tun(_) => Err(DropReason::SidFromTun),
        Origin::Decapsulated(..) => Err(DropReason::NestedSid),
        Origin::Link(_) if forwarding.sids.may_send(flow.source) => Ok(()),
        Origin::Link(_) => Err(DropReason::SidSourceOutside),
    }
}

/// The first policy that matches; `None` if there is none or all that match step aside.
#[inline]
fn steer(forwarding: &Forwarding, flow: &FlowKey, class: Class) -> Option<Decision> {
    let mut index = forwarding.steering.classify(flow, class)?;
    loop {
        if let Some((link, candidate)) = follow(forwarding, index, flow) {
            return Some(Decision::Link { link, policy: Some(Steered { policy: index, candidate }) });
        }
        // A policy that the snapshot does not hold is no licence to leave by another way.
        let policy = forwarding.policies.get(usize::from(index.0));
        match policy.map_or(IfUnreachable::Drop, |policy| policy.if_unreachable) {
            IfUnreachable::Drop => return Some(Decision::Drop(DropReason::PolicyUnreachable)),
            IfUnreachable::AnyPath => return None,
            IfUnreachable::Next => index = forwarding.steering.classify_after(flow, class, index)?,
        }
    }
}

/// The link to the first stop of the flow's candidate, if the policy can be followed. A candidate whose link is down
/// since a moment is as good as none.
#[inline]
fn follow(forwarding: &Forwarding, index: PolicyIndex, flow: &FlowKey) -> Option<(LinkId, u8)> {
    let policy = forwarding.policies.get(usize::from(index.0))?;
    let place = policy.place_of(flow);
    if let Some(link) = first_link(forwarding, policy.candidate(place)?) {
        return Some((link, place));
    }
    (0..).zip(policy.candidates()).find_map(|(place, other)| Some((first_link(forwarding, other)?, place)))
}

#[inline]
fn first_link(forwarding: &Forwarding, candidate: &CandidatePath) -> Option<LinkId> {
    if let Some(link) = candidate.link {
        return forwarding.is_up(link).then_some(link);
    }
    match route(forwarding, IpAddr::V6(candidate.encapsulation.first_stop()), Origin::Node) {
        Decision::Link { link, .. } => Some(link),
        _ => None,
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
