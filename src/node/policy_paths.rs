//! Policies at run time: their candidates, which of them are in use, and what keeps the others from it.

use super::policy_candidate::{CandidateRuntime, Resolved};
use super::{Node, NodeEvent};
use crate::config::settings::{Exit, IfUnreachable, NodeName, Policy, PolicyProbe, Settings};
use crate::forwarding::{CandidatePath, PolicyCounters, PolicyPath, Share};
use crate::{config::settings, forwarding};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after the start a policy may be down without a line in the log.
const START_GRACE: Duration = Duration::from_secs(15);

/// A policy and what has become of it.
pub(crate) struct PolicyRuntime {
    pub(crate) name: String,
    pub(crate) if_unreachable: IfUnreachable,
    /// Whether its packets leave to the internet rather than to networks that the exit announces.
    pub(crate) internet: bool,
    pub(crate) candidates: Vec<CandidateRuntime>,
    pub(crate) probe: Option<PolicyProbe>,
    /// Why it cannot be used; `None` if it can.
    pub(crate) problem: Option<String>,
    /// The ways that carry, as the log has told; empty before any did.
    told_paths: Vec<Vec<NodeName>>,
    pub(crate) counters: Arc<PolicyCounters>,
    /// What the log was told last; `None` if nothing.
    told: Option<Option<String>>,
}

impl PolicyRuntime {
    /// The candidate that speaks for the policy: the first in use, or else the first of all.
    pub(crate) fn foremost(&self) -> Option<&CandidateRuntime> {
        self.in_use().next().or(self.candidates.first())
    }

    /// Go on where the policy of this name stood under the settings before.
    pub(crate) fn take_over(&mut self, before: Self) {
        self.counters = before.counters;
        self.problem = before.problem;
        self.told = before.told;
        let mut known = before.candidates;
        for candidate in &mut self.candidates {
            if let Some(at) = known.iter().position(|known| known.wanted == candidate.wanted) {
                // Its health is known, and the nearest exit stays the same unless another is clearly nearer.
                let (number, hmac) = (candidate.number, candidate.hmac);
                *candidate = known.swap_remove(at);
                (candidate.number, candidate.hmac) = (number, hmac);
            }
        }
    }

    /// The candidates that packets take now, in the order of the data path.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = &CandidateRuntime> {
        self.tier().filter(|candidate| candidate.is_usable())
    }

    /// The candidates whose priority is in force: the lowest that has a usable one.
    pub(crate) fn tier(&self) -> impl Iterator<Item = &CandidateRuntime> {
        let usable = self.candidates.iter().filter(|candidate| candidate.is_usable());
        let priority = usable.map(|candidate| candidate.wanted.priority).min();
        self.candidates.iter().filter(move |candidate| Some(candidate.wanted.priority) == priority)
    }

    /// Whether some stop or the exit is chosen by distance.
    pub(crate) fn chooses(&self) -> bool {
        self.candidates.iter().any(CandidateRuntime::chooses)
    }

    /// That packets take other stops than before, if they do. The first way is no news beyond that the policy is up.
    fn tell_paths(&mut self, settings: &Settings) -> Option<NodeEvent> {
        let taken: Vec<Vec<NodeName>> = self.in_use().map(|path| path.journey.clone()).collect();
        if taken.is_empty() || taken == self.told_paths {
            return None;
        }
        let written = |path: &Vec<NodeName>| {
            path.iter().map(|name| settings.display_name(name)).collect::<Vec<_>>().join(" > ")
        };
        let paths = taken.iter().map(written).collect();
        let first = std::mem::replace(&mut self.told_paths, taken).is_empty();
        (!first).then(|| NodeEvent::PolicyPath { name: self.name.clone(), paths })
    }

    /// What keeps the policy from being followed.
    fn find_problem(&self) -> Option<String> {
        if self.candidates.iter().any(CandidateRuntime::is_usable) {
            return None;
        }
        let problems = self.candidates.iter().filter_map(|candidate| candidate.problem());
        match self.candidates.as_slice() {
            [_] => problems.map(str::to_owned).next(),
            _ => {
                let numbered: Vec<String> = (1..)
                    .zip(problems)
                    .map(|(number, problem)| format!("path {number}: {problem}"))
                    .collect();
                Some(numbered.join("; "))
            }
        }
    }

    /// As the data path sees it.
    pub(crate) fn path(&self) -> PolicyPath {
        let if_unreachable = match self.if_unreachable {
            settings::IfUnreachable::Drop => forwarding::IfUnreachable::Drop,
            settings::IfUnreachable::AnyPath => forwarding::IfUnreachable::AnyPath,
            settings::IfUnreachable::Next => forwarding::IfUnreachable::Next,
        };
        let shares = self.tier().map(|candidate| Share {
            weight: candidate.wanted.weight,
            path: candidate.encapsulation.as_ref().filter(|_| candidate.is_usable()).map(|encapsulation| {
                CandidatePath {
                    number: candidate.number,
                    encapsulation: encapsulation.clone(),
                    link: candidate.link,
                    mtu: candidate.mtu,
                }
            }),
        });
        PolicyPath::new(if_unreachable, Arc::clone(&self.counters), shares)
    }
}

/// The policies of a node before anything is known of the mesh.
pub(crate) fn compile(settings: &Settings) -> Vec<PolicyRuntime> {
    settings.policies.iter().map(PolicyRuntime::from).collect()
}

impl From<&Policy> for PolicyRuntime {
    fn from(policy: &Policy) -> Self {
        let nearest = policy.candidates.iter().any(|candidate| candidate.exit == Exit::Nearest);
        Self {
            name: policy.name.clone(),
            if_unreachable: policy.if_unreachable,
            internet: nearest || policy.to.iter().any(|network| network.prefix_len() == 0),
            candidates: (1..)
                .zip(&policy.candidates)
                .map(|(n, wanted)| CandidateRuntime::new(n, wanted, policy.hmac))
                .collect(),
            probe: policy.probe.clone(),
            problem: Some("the mesh has not been heard yet".to_owned()),
            told_paths: Vec::new(),
            counters: Arc::new(PolicyCounters::default()),
            told: None,
        }
    }
}

impl Node {
    /// Look at all policies again after routes, links or the health of a path have changed.
    pub(super) fn update_policies(&mut self) {
        let resolved: Vec<Vec<Resolved>> = self
            .policies
            .iter()
            .map(|policy| {
                policy.candidates.iter().map(|candidate| self.resolve(candidate, policy.internet)).collect()
            })
            .collect();
        for (policy, resolved) in self.policies.iter_mut().zip(resolved) {
            for (candidate, new) in policy.candidates.iter_mut().zip(resolved) {
                candidate.adopt(new);
            }
            policy.problem = policy.find_problem();
        }
    }

    /// Tell the log what changed. A policy that has not been up yet is given some time after the start: the mesh
    /// has not been heard, and nothing is wrong.
    pub(super) fn tell_policies(&mut self, now: Instant) {
        let starting = now.saturating_duration_since(self.started) < START_GRACE;
        for policy in &mut self.policies {
            self.events.extend(policy.tell_paths(&self.settings));
            let too_early = policy.told.is_none() && policy.problem.is_some() && starting;
            if too_early || policy.told.as_ref() == Some(&policy.problem) {
                continue;
            }
            policy.told = Some(policy.problem.clone());
            self.events
                .push_back(NodeEvent::Policy { name: policy.name.clone(), problem: policy.problem.clone() });
        }
    }

    /// Whether some policy would choose other stops or another exit by now.
    pub(super) fn wants_other_stops(&self) -> bool {
        self.policies.iter().filter(|policy| policy.chooses()).any(|policy| {
            policy
                .candidates
                .iter()
                .any(|candidate| self.resolve(candidate, policy.internet).journey != candidate.journey)
        })
    }
}
