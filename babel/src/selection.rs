//! Route selection (RFC 8966 §3.6): pure.
//!
//! Metrics come from smoothed round-trip times already; here hysteresis keeps a usable route unless the gain of
//! another is decisive, or clear and lasting.

use std::time::Instant;

use crate::{Hysteresis, INFINITY};

/// A route as selection sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate<K> {
    pub(crate) key: K,
    /// Total metric.
    pub(crate) metric: u16,
    pub(crate) feasible: bool,
}

impl<K> Candidate<K> {
    const fn is_usable(&self) -> bool {
        self.feasible && self.metric < INFINITY
    }
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice<K> {
    pub(crate) selected: Option<K>,
    /// A better route that must last, and since when it is better.
    pub(crate) challenger: Option<(K, Instant)>,
    /// When it will have lasted long enough.
    pub(crate) judge_again: Option<Instant>,
}

/// Chooses among `candidates`.
pub(crate) fn choose<K: Copy + Ord>(
    current: Option<K>,
    challenger: Option<(K, Instant)>,
    candidates: &[Candidate<K>],
    hysteresis: &Hysteresis,
    now: Instant,
) -> Choice<K> {
    let usable = || candidates.iter().filter(|candidate| candidate.is_usable());
    let keep = |selected| Choice { selected, challenger: None, judge_again: None };
    //= RFC 8966 §3.6
    let Some(best) = usable().min_by_key(|candidate| (candidate.metric, candidate.key)) else {
        return keep(None);
    };
    let Some(current) = usable().find(|candidate| Some(candidate.key) == current) else {
        return keep(Some(best.key));
    };
    let gain = current.metric - best.metric;
    let Some(hold) = hysteresis.hold_for(gain, current.metric) else {
        return keep(Some(current.key));
    };
    let since = challenger.filter(|(key, _)| *key == best.key).map_or(now, |(_, since)| since);
    if now.saturating_duration_since(since) >= hold {
        return keep(Some(best.key));
    }
    Choice {
        selected: Some(current.key),
        challenger: Some((best.key, since)),
        judge_again: Some(since + hold),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn candidate(key: u8, metric: u16) -> Candidate<u8> {
        Candidate { key, metric, feasible: true }
    }

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "tests need some instant to count from")]
        Instant::now()
    }

    #[test]
    fn unusable_routes_are_never_chosen() {
        let unfeasible = Candidate { feasible: false, ..candidate(1, 5) };
        let routes = [unfeasible, candidate(2, INFINITY)];
        let choice = choose(Some(1), None, &routes, &Hysteresis::default(), start());
        assert_eq!(choice.selected, None);
        let choice =
            choose(Some(1), None, &[unfeasible, candidate(3, 9000)], &Hysteresis::default(), start());
        assert_eq!(choice.selected, Some(3), "an unfeasible selected route is left at once");
    }

    #[test]
    fn small_gains_keep_clear_gains_wait_decisive_gains_move() {
        let (t0, hysteresis) = (start(), Hysteresis::default());
        let choice = choose(Some(1), None, &[candidate(1, 200), candidate(2, 180)], &hysteresis, t0);
        assert_eq!(choice, Choice { selected: Some(1), challenger: None, judge_again: None });
        // Near each other, a few units are much.
        let choice = choose(Some(1), None, &[candidate(1, 16), candidate(2, 9)], &hysteresis, t0);
        assert_eq!(choice.challenger, Some((2, t0)));
        let routes = [candidate(1, 400), candidate(2, 350)];
        let choice = choose(Some(1), None, &routes, &hysteresis, t0);
        assert_eq!((choice.selected, choice.challenger), (Some(1), Some((2, t0))));
        // 50 of the 100 that would be decisive: more than the margin of 32, which must last four seconds.
        let later = choice.judge_again.unwrap();
        assert!(
            later > t0 + Duration::from_secs(2) && later < t0 + Duration::from_secs(4),
            "{:?}",
            later - t0
        );
        assert_eq!(choose(Some(1), choice.challenger, &routes, &hysteresis, later).selected, Some(2));
        let routes = [candidate(1, 1064), candidate(2, 84)];
        assert_eq!(choose(Some(1), None, &routes, &hysteresis, t0).selected, Some(2));
    }
}
