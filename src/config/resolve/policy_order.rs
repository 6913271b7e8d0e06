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
    for (index, policy) in policies.iter().enumerate() {
        let earlier = policies.get(..index).unwrap_or_default();
        let Some(takers) = takers(&policy.value, earlier) else { continue };
        let title = format!("policy `{}` never matches", policy.value.name);
        let diagnostic = Diagnostic::at(policy.span, Code::NeverMatches, title);
        let name = &policy.value.name;
        diagnostics.push(match takers.as_slice() {
            [taker] => diagnostic
                .label(format!("`{}` on line {} takes all of it first", taker.name, taker.line))
                .help(format!("the first match wins: move `{name}` above line {}, or delete it", taker.line)),
            _ => {
                let names = enumerate(takers.iter().map(|taker| taker.name.as_str()));
                let line = takers.first().map_or(0, |taker| taker.line);
                diagnostic
                    .label(format!("{names} take all of it first"))
                    .help(format!("the first match wins: move `{name}` above line {line}, or delete it"))
            }
        });
    }
}

/// The earlier policies that together take every packet of `policy`; `None` if something is left for it.
fn takers<'a>(policy: &Policy, earlier: &'a [Spanned<Policy>]) -> Option<Vec<&'a Policy>> {
    let mut takers: Vec<&Policy> = Vec::new();
    for from in &policy.from {
        for to in policy.to.iter().filter(|to| is_v4(to) == is_v4(from)) {
            let taker = earlier.iter().map(|other| &other.value).find(|other| {
                // While its path is down, a policy with `next` lets go of its packets.
                other.if_unreachable != IfUnreachable::Next
                    && covers(&other.from, from)
                    && covers(&other.to, to)
                    && is_wider(other, policy)
            })?;
            if !takers.iter().any(|known| known.name == taker.name) {
                takers.push(taker);
            }
        }
    }
    takers.sort_by_key(|taker| taker.line);
    (!takers.is_empty()).then_some(takers)
}

fn is_v4(network: &IpNet) -> bool {
    matches!(network, IpNet::V4(_))
}

/// Whether the networks together contain all of `network`.
fn covers(networks: &[IpNet], network: &IpNet) -> bool {
    IpNet::aggregate(&networks.to_vec()).iter().any(|wider| wider.contains(network))
}

/// Whether `other` asks for no protocol, port or DSCP that `policy` does not ask for.
fn is_wider(other: &Policy, policy: &Policy) -> bool {
    let protocol = other.protocol.is_none() || other.protocol == policy.protocol;
    let dscp = other.dscp.is_empty()
        || (!policy.dscp.is_empty() && policy.dscp.iter().all(|dscp| other.dscp.contains(dscp)));
    protocol
        && dscp
        && ports_cover(&other.ports, &policy.ports)
        && ports_cover(&other.source_ports, &policy.source_ports)
}

fn ports_cover(wide: &[RangeInclusive<u16>], narrow: &[RangeInclusive<u16>]) -> bool {
    let inside = |range: &RangeInclusive<u16>| {
        wide.iter().any(|wide| wide.contains(range.start()) && wide.contains(range.end()))
    };
    wide.is_empty() || (!narrow.is_empty() && narrow.iter().all(inside))
}
