//! The source table (RFC 8966 §3.2.5): feasibility distances, forgotten after three minutes without use.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{Prefix, RouterId, feasibility::Distance};

/// How long a distance outlives the last announcement (RFC 8966 appendix B).
const LIFETIME: Duration = Duration::from_secs(180);

/// Feasibility distances by source.
#[derive(Debug, Default)]
pub(crate) struct SourceTable {
    entries: BTreeMap<(Prefix, RouterId), (Distance, Instant)>,
}

impl SourceTable {
    /// The distance of a source.
    pub(crate) fn distance(&self, prefix: &Prefix, router_id: RouterId) -> Option<Distance> {
        self.entries.get(&(*prefix, router_id)).map(|(distance, _)| *distance)
    }

    //= RFC 8966 §3.7.3
    /// Remembers that a route is announced with `announced`. Returns `false` if the table is full: then it must
    /// not be announced.
    #[must_use]
    pub(crate) fn announce(
        &mut self,
        prefix: Prefix,
        router_id: RouterId,
        announced: Distance,
        limit: usize,
        now: Instant,
    ) -> bool {
        let full = self.entries.len() >= limit;
        match self.entries.get_mut(&(prefix, router_id)) {
            Some((distance, touched)) => {
                if announced.is_better_than(*distance) {
                    *distance = announced;
                }
                *touched = now;
            }
            None if full => return false,
            None => {
                self.entries.insert((prefix, router_id), (announced, now));
            }
        }
        true
    }

    /// Drops what was not used for three minutes.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.entries.retain(|_, (_, touched)| now.saturating_duration_since(*touched) < LIFETIME);
    }

    /// Moves all deadlines by the time that our own control loop overslept.
    pub(crate) fn postpone(&mut self, lateness: Duration) {
        self.entries.values_mut().for_each(|(_, touched)| *touched += lateness);
    }
}
