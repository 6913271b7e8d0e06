//! Rules that can never take a packet.

use super::{PolicyIndex, Rule};
use ipnet::IpNet;
use srv6::ip::protocol;
use std::fmt;
use std::ops::RangeInclusive;

/// A rule that never matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// The rule.
    pub rule: PolicyIndex,
    /// Why.
    pub reason: IdleReason,
}

/// Why a rule never matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReason {
    /// An earlier rule takes all that it would take.
    Shadowed {
        /// The earlier rule.
        by: PolicyIndex,
    },
    /// Its sources are of one address family and its destinations of the other.
    Families,
    /// It names ports and a protocol that has none.
    NoPorts {
        /// The protocol.
        protocol: u8,
    },
}

impl fmt::Display for IdleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shadowed { by } => write!(f, "policy {} before it takes everything", by.place() + 1),
            Self::Families => {
                f.write_str("source and destination networks are of different address families")
            }
            Self::NoPorts { protocol } => write!(f, "protocol {protocol} has no ports"),
        }
    }
}

/// Finds the rules that never match, each with its first reason.
///
/// A rule counts as shadowed when one earlier rule alone covers it; several that only do so together are not found.
#[must_use]
pub fn idle_rules(rules: &[Rule]) -> Vec<Idle> {
    let reason = |place: usize, rule: &Rule| {
        let earlier = rules.get(..place).unwrap_or_default();
        impossible(rule).or_else(|| {
            let by = earlier.iter().position(|earlier| covers(earlier, rule))?;
            Some(IdleReason::Shadowed { by: PolicyIndex::at(by)? })
        })
    };
    let found = rules.iter().enumerate().filter_map(|(place, rule)| {
        Some(Idle { rule: PolicyIndex::at(place)?, reason: reason(place, rule)? })
    });
    found.collect()
}

fn impossible(rule: &Rule) -> Option<IdleReason> {
    let has = |networks: &[IpNet], is_v4: bool| {
        networks.is_empty() || networks.iter().any(|network| network.addr().is_ipv4() == is_v4)
    };
    let possible = |is_v4| has(&rule.from, is_v4) && has(&rule.to, is_v4);
    if !possible(true) && !possible(false) {
        return Some(IdleReason::Families);
    }
    let names_ports = !rule.source_ports.is_empty() || !rule.destination_ports.is_empty();
    let protocol = rule.protocol.filter(|number| names_ports && !protocol::has_ports(*number))?;
    Some(IdleReason::NoPorts { protocol })
}

/// Whether `earlier` takes everything that `later` takes, part by part.
fn covers(earlier: &Rule, later: &Rule) -> bool {
    covers_networks(earlier, later)
        && earlier.membership.includes(&later.membership)
        && (earlier.protocol.is_none() || earlier.protocol == later.protocol)
        && covers_ports(&earlier.source_ports, &later.source_ports)
        && covers_ports(&earlier.destination_ports, &later.destination_ports)
        && (earlier.dscp.is_empty()
            || !later.dscp.is_empty() && later.dscp.iter().all(|value| earlier.dscp.contains(value)))
}

/// A rule takes packets of a family only if both its lists have it, so that each family is looked at alone.
fn covers_networks(earlier: &Rule, later: &Rule) -> bool {
    [true, false].into_iter().all(|is_v4| {
        let (from, to) = (ranges(&later.from, is_v4), ranges(&later.to, is_v4));
        let takes_family = !from.is_empty() && !to.is_empty();
        !takes_family
            || covers_ranges(&ranges(&earlier.from, is_v4), &from)
                && covers_ranges(&ranges(&earlier.to, is_v4), &to)
    })
}

/// The networks of one family as ranges; an empty list is the whole family.
fn ranges(networks: &[IpNet], is_v4: bool) -> Vec<(u128, u128)> {
    if networks.is_empty() {
        return vec![(0, if is_v4 { u128::from(u32::MAX) } else { u128::MAX })];
    }
    let ranges = networks.iter().filter_map(|network| match network {
        IpNet::V4(net) if is_v4 => {
            Some((u128::from(net.network().to_bits()), u128::from(net.broadcast().to_bits())))
        }
        IpNet::V6(net) if !is_v4 => Some((net.network().to_bits(), net.broadcast().to_bits())),
        _ => None,
    });
    ranges.collect()
}

fn covers_ports(earlier: &[RangeInclusive<u16>], later: &[RangeInclusive<u16>]) -> bool {
    let wide = |ranges: &[RangeInclusive<u16>]| -> Vec<(u128, u128)> {
        ranges.iter().map(|range| (u128::from(*range.start()), u128::from(*range.end()))).collect()
    };
    // A rule without ports takes packets that have none; one with all ports does not.
    earlier.is_empty() || !later.is_empty() && covers_ranges(&wide(earlier), &wide(later))
}

/// Whether the union of `outer` contains each of `inner`.
fn covers_ranges(outer: &[(u128, u128)], inner: &[(u128, u128)]) -> bool {
    let mut merged: Vec<(u128, u128)> = Vec::new();
    let mut sorted = outer.to_vec();
    sorted.sort_unstable();
    for (start, end) in sorted {
        match merged.last_mut() {
            Some((_, last)) if last.checked_add(1).is_none_or(|behind| start <= behind) => {
                *last = end.max(*last)
            }
            _ => merged.push((start, end)),
        }
    }
    inner.iter().all(|(start, end)| {
        let behind = merged.partition_point(|(outer, _)| outer <= start);
        behind.checked_sub(1).and_then(|at| merged.get(at)).is_some_and(|(_, last)| end <= last)
    })
}

#[cfg(test)]
#[path = "idle_tests.rs"]
mod tests;
