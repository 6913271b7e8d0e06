//! Policies that never match because those above take everything.

use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::settings::{IfUnreachable, Policy};
use crate::config::source::Spanned;
use crate::config::suggestion::enumerate;

/// Reports each policy of which nothing is left.
pub(super) fn report_shadowed(policies: &[Spanned<Policy>], diagnostics: &mut Diagnostics) {
    let matchers: Vec<Matcher<'_>> = policies.iter().map(|policy| Matcher::of(&policy.value)).collect();
    for (index, policy) in policies.iter().enumerate() {
        let earlier = matchers.get(..index).unwrap_or_default();
        let Some(takers) = takers(&policy.value, earlier) else { continue };
        let title = format!("policy `{}` never matches", policy.value.name);
        let diagnostic = Diagnostic::at(policy.span, Code::NeverMatches, title);
        let label = match takers.as_slice() {
            [taker] => format!("`{}` on line {} takes all of it first", taker.name, taker.line),
            _ => {
                format!("{} take all of it first", enumerate(takers.iter().map(|taker| taker.name.as_str())))
            }
        };
        let (name, line) = (&policy.value.name, takers.first().map_or(0, |taker| taker.line));
        let help = format!("the first match wins: move `{name}` above line {line}, or delete it");
        diagnostics.push(diagnostic.label(label).help(help));
    }
}

/// A policy with its networks merged and sorted, so that one look-up answers for lists of thousands.
struct Matcher<'a> {
    policy: &'a Policy,
    from: Vec<IpNet>,
    to: Vec<IpNet>,
}

impl<'a> Matcher<'a> {
    fn of(policy: &'a Policy) -> Self {
        let merged = |networks: &Vec<IpNet>| {
            let mut merged = IpNet::aggregate(networks);
            merged.sort();
            merged
        };
        Self { policy, from: merged(&policy.from), to: merged(&policy.to) }
    }
}

/// The earlier policies that together take every packet of `policy`; `None` if something is left for it.
fn takers<'a>(policy: &Policy, earlier: &[Matcher<'a>]) -> Option<Vec<&'a Policy>> {
    // While its path is down, a policy with `next` lets go of its packets.
    let wider: Vec<_> = earlier
        .iter()
        .filter(|other| other.policy.if_unreachable != IfUnreachable::Next && is_wider(other.policy, policy))
        .collect();
    let mut takers: Vec<&Policy> = Vec::new();
    for from in &policy.from {
        for to in policy.to.iter().filter(|to| is_v4(to) == is_v4(from)) {
            let taker = wider.iter().find(|other| covers(&other.from, from) && covers(&other.to, to))?;
            if !takers.iter().any(|known| known.name == taker.policy.name) {
                takers.push(taker.policy);
            }
        }
    }
    takers.sort_by_key(|taker| taker.line);
    (!takers.is_empty()).then_some(takers)
}

fn is_v4(network: &IpNet) -> bool {
    matches!(network, IpNet::V4(_))
}

/// Whether one of the networks, which are sorted and do not overlap, contains all of `network`.
fn covers(networks: &[IpNet], network: &IpNet) -> bool {
    let after = networks.partition_point(|other| other <= network);
    // The container of a network sorts before it; a network equal in address and shorter sorts first too.
    after
        .checked_sub(1)
        .and_then(|index| networks.get(index))
        .is_some_and(|candidate| candidate.contains(network))
}

/// Whether `other` asks for no protocol, port or DSCP that `policy` does not ask for.
fn is_wider(other: &Policy, policy: &Policy) -> bool {
    let protocol = other.protocol.is_none() || other.protocol == policy.protocol;
    let dscp = other.dscp.is_empty()
        || (!policy.dscp.is_empty() && policy.dscp.iter().all(|dscp| other.dscp.contains(dscp)));
    protocol
        && dscp
        && other.membership.includes(&policy.membership)
        && ports_cover(&other.ports, &policy.ports)
        && ports_cover(&other.source_ports, &policy.source_ports)
}

fn ports_cover(wide: &[RangeInclusive<u16>], narrow: &[RangeInclusive<u16>]) -> bool {
    let inside = |range: &RangeInclusive<u16>| {
        wide.iter().any(|wide| wide.contains(range.start()) && wide.contains(range.end()))
    };
    wide.is_empty() || (!narrow.is_empty() && narrow.iter().all(inside))
}
