//! The ways of a policy, and which of them a flow takes.

use super::LinkId;
use super::counters::PolicyCounters;
use crate::policy::PolicyIndex;
use srv6::Encapsulation;
use srv6::ip::FlowKey;
use std::sync::Arc;

/// Parts that flows are divided into. Each candidate has its share of them.
const PARTS: usize = 256;

/// What a policy does with the packets it matched.
#[derive(Debug)]
pub struct PolicyPath {
    /// The candidates that share the packets; empty if the policy cannot be followed.
    candidates: Vec<CandidatePath>,
    /// For each part of the flows the place of its candidate; empty with fewer than two candidates.
    parts: Vec<u8>,
    /// What to do while no candidate can be used.
    pub if_unreachable: IfUnreachable,
    /// Counters that outlive the snapshot.
    pub counters: Arc<PolicyCounters>,
}

/// One way of a policy.
#[derive(Debug, Clone)]
pub struct CandidatePath {
    /// Its number among all candidates of the policy, those that cannot be used included.
    pub number: u8,
    /// Its headers.
    pub encapsulation: Encapsulation,
    /// The link to its first stop, if that must be a direct one.
    pub link: Option<LinkId>,
    /// The longest inner packet for the whole path, in octets, SRv6 headers already subtracted.
    pub mtu: u16,
}

/// A candidate that wants its share, whether or not it can be used now.
#[derive(Debug)]
pub struct Share {
    /// Its weight among the others.
    pub weight: u8,
    /// The path; `None` while it cannot be used, so that the others carry its part.
    pub path: Option<CandidatePath>,
}

/// The policy and candidate that a packet takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steered {
    /// The policy.
    pub policy: PolicyIndex,
    /// The place in [`PolicyPath::candidates`].
    pub candidate: u8,
}

/// What happens to packets of a policy that has no usable candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUnreachable {
    /// They are dropped.
    Drop,
    /// They take the fastest way.
    AnyPath,
    /// They go on to the next policy that matches.
    Next,
}

impl PolicyPath {
    /// A policy whose candidates of the present priority are `shares`.
    ///
    /// The parts are given out to all of them first, and then those of the unusable ones to the others: a candidate
    /// that fails moves its own flows and no others.
    pub fn new(
        if_unreachable: IfUnreachable,
        counters: Arc<PolicyCounters>,
        shares: impl IntoIterator<Item = Share>,
    ) -> Self {
        let shares: Vec<Share> = shares.into_iter().collect();
        // Places of the usable ones in `candidates`.
        let mut usable = 0..;
        let places: Vec<Option<u8>> =
            shares.iter().map(|share| share.path.as_ref().and_then(|_| usable.next())).collect();
        let heirs: Vec<(u8, u8)> =
            shares.iter().zip(&places).filter_map(|(share, place)| Some(((*place)?, share.weight))).collect();
        let all: Vec<(Option<u8>, u8)> =
            shares.iter().zip(&places).map(|(share, place)| (*place, share.weight)).collect();
        let mut parts = Vec::new();
        if heirs.len() > 1 {
            let mut inherited = 0;
            for part in 0..PARTS {
                let owner = owner(&all, part).flatten().or_else(|| {
                    // Heirs take turns that their own shares would not give: by a step that meets all parts.
                    inherited += 97;
                    owner(&heirs, inherited % PARTS)
                });
                parts.push(owner.unwrap_or_default());
            }
        }
        let candidates = shares.into_iter().filter_map(|share| share.path).collect();
        PolicyPath { candidates, parts, if_unreachable, counters }
    }

    /// The candidates that share the packets.
    pub fn candidates(&self) -> &[CandidatePath] {
        &self.candidates
    }

    /// The place of the candidate that a flow takes: the same for all its packets.
    #[inline]
    pub fn place_of(&self, flow: &FlowKey) -> u8 {
        if self.parts.is_empty() {
            return 0;
        }
        let part = usize::try_from(flow.hash() % PARTS as u64).unwrap_or_default();
        self.parts.get(part).copied().unwrap_or_default()
    }

    /// The candidate at a place.
    #[inline]
    pub fn candidate(&self, place: u8) -> Option<&CandidatePath> {
        self.candidates.get(usize::from(place))
    }
}

/// Whom a part belongs to, by the weights.
fn owner<T: Copy>(shares: &[(T, u8)], part: usize) -> Option<T> {
    let total: usize = shares.iter().map(|(_, weight)| usize::from(*weight)).sum();
    let mut at = part * total / PARTS;
    for (owner, weight) in shares {
        match at.checked_sub(usize::from(*weight)) {
            Some(rest) => at = rest,
            None => return Some(*owner),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use srv6::{Form, SegmentPath};
    use std::net::Ipv6Addr;

    fn path(number: u8) -> CandidatePath {
        let stop = Ipv6Addr::new(0xfd5d, 0xac, 0, number.into(), 0, 0, 0, 0xe);
        let source = "fd5d:ac:0:99::1".parse().unwrap();
        let path = SegmentPath::new(&[stop]).unwrap();
        let encapsulation = Encapsulation::new(source, &path, Form::Reduced).unwrap();
        CandidatePath { number, encapsulation, link: None, mtu: 1300 }
    }

    fn policy(shares: &[(u8, bool)]) -> PolicyPath {
        let shares = (1..)
            .zip(shares)
            .map(|(number, (weight, usable))| Share { weight: *weight, path: usable.then(|| path(number)) });
        PolicyPath::new(IfUnreachable::Drop, Arc::default(), shares)
    }

    /// The numbers of the candidates that 10,000 flows take.
    fn taken(policy: &PolicyPath) -> Vec<Option<u8>> {
        let flows = (0..10_000_u16).map(|port| FlowKey {
            source: "10.1.0.1".parse().unwrap(),
            destination: "10.2.0.1".parse().unwrap(),
            protocol: 6,
            ports: Some((port, 443)),
            dscp: 0,
            fragment: false,
        });
        flows.map(|flow| policy.candidate(policy.place_of(&flow)).map(|path| path.number)).collect()
    }

    fn count(taken: &[Option<u8>], number: u8) -> usize {
        taken.iter().filter(|one| **one == Some(number)).count()
    }

    #[test]
    fn flows_are_shared_by_weight() {
        let taken = taken(&policy(&[(1, true), (3, true), (4, true)]));
        let counts = [1, 2, 3].map(|number| count(&taken, number));
        for (counted, expected) in counts.into_iter().zip([1250, 3750, 5000]) {
            assert!(counted.abs_diff(expected) < expected / 5, "{counts:?}");
        }
    }

    #[test]
    fn a_candidate_that_fails_moves_its_own_flows_and_no_others() {
        let before = taken(&policy(&[(1, true), (1, true), (2, true)]));
        let after = taken(&policy(&[(1, true), (1, true), (2, false)]));
        for (before, after) in before.iter().zip(&after) {
            assert!(*before == Some(3) || before == after, "{before:?} moved to {after:?}");
        }
        // Its flows are shared by those that are left.
        for number in [1, 2] {
            let gained = count(&after, number) - count(&before, number);
            assert!((1500..3500).contains(&gained), "{number} gained {gained}");
        }
    }

    #[test]
    fn one_candidate_takes_all_and_none_takes_nothing() {
        assert!(taken(&policy(&[(1, false), (7, true)])).iter().all(|number| *number == Some(2)));
        assert!(taken(&policy(&[(1, false)])).iter().all(Option::is_none));
        assert!(policy(&[]).candidates().is_empty());
    }
}
