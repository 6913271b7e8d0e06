//! Counts what happens in the node, for metrics. Bounded, whatever peers do.

use std::time::Duration;

use crate::control::report::{CountersReport, DelayHistogram, FORMAT};
use crate::node::NodeEvent;

/// Upper ends of the delay buckets in seconds: a loop that is on time, one that is busy, one that is starved.
const BOUNDS: [f64; 8] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// Distinct reasons that are counted apart; all further ones share a name.
const REASONS: usize = 32;

/// The counts.
#[derive(Debug)]
pub struct Tally(CountersReport);

impl Default for Tally {
    fn default() -> Self {
        let loop_delay = DelayHistogram {
            bounds_seconds: BOUNDS.to_vec(),
            counts: vec![0; BOUNDS.len() + 1],
            sum_seconds: 0.0,
        };
        Self(CountersReport { format: FORMAT, loop_delay, ..CountersReport::default() })
    }
}

impl Tally {
    /// Counts an event.
    pub fn note(&mut self, event: &NodeEvent) {
        match event {
            NodeEvent::RouteChanged { .. } => self.0.route_changes += 1,
            NodeEvent::Rekeyed { kind, .. } => *self.0.rekeys.entry((*kind).to_owned()).or_default() += 1,
            NodeEvent::DialFailed { what, .. } => {
                let known = self.0.dial_failures.len() < REASONS || self.0.dial_failures.contains_key(what);
                let reason = if known { what } else { "other" };
                *self.0.dial_failures.entry(reason.to_owned()).or_default() += 1;
            }
            NodeEvent::Rejected { .. } => self.0.refused_messages += 1,
            // States, which the status shows, and what only the log needs.
            _ => {}
        }
    }

    /// Counts by how much the control loop woke too late.
    pub fn delay(&mut self, delay: Duration) {
        let seconds = delay.as_secs_f64();
        let histogram = &mut self.0.loop_delay;
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = histogram.counts.get_mut(bucket) {
            *count += 1;
        }
        histogram.sum_seconds += seconds;
    }

    /// What was counted so far.
    pub fn report(&self) -> CountersReport {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_fall_into_buckets() {
        let mut tally = Tally::default();
        for millis in [0, 1, 7, 7, 5000] {
            tally.delay(Duration::from_millis(millis));
        }
        let delay = tally.report().loop_delay;
        assert_eq!(delay.counts, [1, 1, 0, 2, 0, 0, 0, 0, 1]);
        assert!((delay.sum_seconds - 5.015).abs() < 1e-9);
    }

    #[test]
    fn reasons_are_bounded() {
        let mut tally = Tally::default();
        for number in 0..1000 {
            let peer = "echo".to_owned();
            tally.note(&NodeEvent::DialFailed { peer, what: format!("reason {number}"), tries: 1 });
        }
        let failures = tally.report().dial_failures;
        assert_eq!((failures.len(), failures["other"]), (REASONS + 1, 1000 - REASONS as u64));
    }
}
