//! The feasibility condition (RFC 8966 §3.5.1), on which freedom from loops rests.
//!
//! For each source (prefix and originator) a router remembers the best pair (sequence number, metric) that it
//! ever announced: its feasibility distance. It only uses routes announced to it with a strictly better pair.
//! Along a path of selected routes the distances therefore get strictly better from hop to hop, so no router can
//! appear twice. A pair is better if its sequence number is newer, or equal with a lower metric.

use crate::{INFINITY, Seqno};

/// A feasibility distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distance {
    pub(crate) seqno: Seqno,
    pub(crate) metric: u16,
}

impl Distance {
    /// Whether this is strictly better than `other`.
    pub(crate) const fn is_better_than(self, other: Self) -> bool {
        self.seqno.is_newer_than(other.seqno) || (self.seqno.0 == other.seqno.0 && self.metric < other.metric)
    }
}

//= RFC 8966 §3.5.1
/// Whether a route announced with `announced` may be used against the remembered `distance`.
pub(crate) fn is_feasible(announced: Distance, distance: Option<Distance>) -> bool {
    announced.metric == INFINITY || distance.is_none_or(|distance| announced.is_better_than(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_or_nearer_is_feasible() {
        let distance = |seqno, metric| Distance { seqno: Seqno(seqno), metric };
        let known = Some(distance(0, 100));
        assert!(is_feasible(distance(0, 99), known));
        assert!(!is_feasible(distance(0, 100), known));
        assert!(is_feasible(distance(1, 60000), known));
        assert!(!is_feasible(distance(0xFFFF, 1), known), "older, across the wrap");
        assert!(is_feasible(distance(0xFFFF, INFINITY), known), "retractions always are");
        assert!(is_feasible(distance(5, 5), None));
    }
}
