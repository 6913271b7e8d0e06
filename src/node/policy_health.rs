//! Whether a policy's paths keep what is asked of them: probes through each, end to end.

use super::Node;
use super::name::node_address;
use super::probes::ProbeRoute;
use crate::config::settings::PolicyProbe;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Probes that count.
const WINDOW: usize = 10;
/// Probes after which their time counts.
const ENOUGH: usize = 3;
/// Probes in a row that must be right for a path that was not.
const RECOVERY: usize = 5;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the probes of one path have shown.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Round-trip times, the newest last; `None` for those that were lost.
    results: VecDeque<Option<Duration>>,
    next: Option<Instant>,
    problem: Option<String>,
}

impl Health {
    /// Why the path does not keep what is asked of it.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Median round-trip time of the last probes.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        median(self.results.iter().flatten().copied())
    }

    /// Loss of the last probes in percent; `None` before there were any.
    pub(crate) fn loss_percent(&self) -> Option<u8> {
        let lost = self.results.iter().filter(|result| result.is_none()).count();
        u8::try_from((lost * 100).checked_div(self.results.len())?).ok()
    }

    /// Begin anew: the path is another one.
    pub(super) fn forget(&mut self) {
        self.results.clear();
        self.problem = None;
    }

    /// Take the result of one probe. True if the verdict is another now.
    fn take(&mut self, result: Option<Duration>, asked: &PolicyProbe) -> bool {
        self.results.push_back(result);
        if self.results.len() > WINDOW {
            self.results.pop_front();
        }
        let was_right = self.problem.is_none();
        if was_right {
            self.problem = self.fault(asked);
        } else if self.has_recovered(asked) {
            self.problem = None;
            self.results.drain(..self.results.len() - RECOVERY);
        }
        was_right != self.problem.is_none()
    }

    fn fault(&self, asked: &PolicyProbe) -> Option<String> {
        let lost = self.results.iter().filter(|result| result.is_none()).count();
        if lost * 100 > usize::from(asked.max_loss) * WINDOW {
            return Some(format!("{lost} of the last {} probes were lost", self.results.len()));
        }
        let (rtt, limit) = (self.rtt()?, asked.max_rtt?);
        let slow = self.results.len() >= ENOUGH && rtt > limit;
        slow.then(|| format!("a round trip takes {} ms, more than {}", rtt.as_millis(), limit.as_millis()))
    }

    /// As many right answers in a row as it takes.
    fn has_recovered(&self, asked: &PolicyProbe) -> bool {
        let newest: Vec<Duration> =
            self.results.iter().rev().take(RECOVERY).map_while(|result| *result).collect();
        let in_time = |rtt: Duration| asked.max_rtt.is_none_or(|limit| rtt <= limit);
        newest.len() == RECOVERY && median(newest.into_iter()).is_some_and(in_time)
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// Which path a probe is sent on: places of the policy and of its candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathPlace {
    pub(super) policy: usize,
    pub(super) candidate: usize,
}

impl Node {
    /// When the next path is to be tried out.
    pub(super) fn next_path_probe(&self) -> Option<Instant> {
        let probed = self.policies.iter().filter(|policy| policy.probe.is_some());
        let candidates = probed.flat_map(|policy| &policy.candidates);
        candidates
            .filter(|candidate| candidate.is_reachable())
            .filter_map(|candidate| candidate.health.next)
            .min()
    }

    /// Send the probes that are due, and give each path its next date.
    pub(super) fn send_path_probes(&mut self, now: Instant) {
        for place in self.due_paths(now) {
            let Some(route) = self.path_route(place) else { continue };
            if let Some(down) = self.probes.launch_on_path(place, &route, PATIENCE, now) {
                self.down.push_back(down);
            }
        }
    }

    fn due_paths(&mut self, now: Instant) -> Vec<PathPlace> {
        let mut due = Vec::new();
        for (at, policy) in self.policies.iter_mut().enumerate() {
            let Some(asked) = &policy.probe else { continue };
            for (place, candidate) in policy.candidates.iter_mut().enumerate() {
                if candidate.is_reachable() && candidate.health.next.is_none_or(|next| next <= now) {
                    candidate.health.next = Some(now + asked.interval);
                    due.push(PathPlace { policy: at, candidate: place });
                }
            }
        }
        due
    }

    /// To the exit node itself, on the very path.
    fn path_route(&self, place: PathPlace) -> Option<ProbeRoute> {
        let candidate = self.policies.get(place.policy)?.candidates.get(place.candidate)?;
        let exit = self.settings.node(candidate.exit_node()?)?;
        let destination = IpAddr::V6(node_address(exit)?);
        let envelope = candidate.encapsulation.clone();
        Some(ProbeRoute { envelope, link: candidate.link, ..self.route_towards(destination) })
    }

    /// Take what came back on the paths, or did not.
    pub(super) fn take_path_results(&mut self) {
        let mut changed = false;
        while let Some((place, result)) = self.probes.poll_path_result() {
            let Some(policy) = self.policies.get_mut(place.policy) else { continue };
            let (Some(asked), Some(candidate)) = (&policy.probe, policy.candidates.get_mut(place.candidate))
            else {
                continue;
            };
            changed |= candidate.is_reachable() && candidate.health.take(result, asked);
        }
        self.forwarding_changed |= changed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: PolicyProbe = PolicyProbe {
        interval: Duration::from_secs(1),
        max_rtt: Some(Duration::from_millis(100)),
        max_loss: 30,
    };

    fn after(results: &[Option<u64>]) -> Health {
        let mut health = Health::default();
        for result in results {
            health.take(result.map(Duration::from_millis), &ASKED);
        }
        health
    }

    #[test]
    fn a_path_is_right_until_enough_probes_say_otherwise() {
        assert!(after(&[]).problem().is_none());
        assert!(after(&[None, None, None]).problem().is_none());
        assert!(after(&[None, None, None, None]).problem().unwrap().contains("4 of the last 4"));
        assert!(after(&[Some(150), Some(20), Some(30)]).problem().is_none(), "the median counts");
        assert!(after(&[Some(150), Some(120), Some(30)]).problem().unwrap().contains("120 ms"));
        let three_of_ten = [Some(9), Some(9), None, Some(9), Some(9), None, Some(9), Some(9), Some(9), None];
        assert!(after(&three_of_ten).problem().is_none());
    }

    #[test]
    fn a_path_must_be_right_for_a_while_before_it_is_used_again() {
        let bad = [None; 4];
        let almost = [&bad[..], &[Some(9); RECOVERY - 1]].concat();
        assert!(after(&almost).problem().is_some());
        assert!(after(&[&almost[..], &[None, Some(9)]].concat()).problem().is_some(), "in a row");
        let recovered = after(&[&bad[..], &[Some(9); RECOVERY]].concat());
        assert_eq!((recovered.problem(), recovered.loss_percent()), (None, Some(0)));
        let slow = after(&[&bad[..], &[Some(500); RECOVERY]].concat());
        assert!(slow.problem().is_some(), "answers that come too late are no recovery");
    }

    #[test]
    fn what_another_path_did_does_not_count() {
        let mut health = after(&[None; 5]);
        health.forget();
        assert_eq!((health.problem(), health.rtt(), health.loss_percent()), (None, None, None));
    }
}
