//! How links did lately: a short memory of the reports, for charts.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::StatusReport;

/// Samples that are kept of a link.
const SAMPLES: usize = 300;
/// Samples that are kept of all links together.
const ALL_SAMPLES: usize = 60_000;

/// One look at a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkSample {
    /// Number of the look; the same for all links of one look.
    pub number: u64,
    /// Seconds since the history began.
    pub at_seconds: f64,
    /// Smoothed round trip.
    pub rtt_ms: Option<f64>,
    /// Lost Hellos.
    pub loss_percent: Option<f64>,
    /// Octets received a second since the last look.
    pub received_per_second: f64,
    /// Octets sent a second since the last look.
    pub sent_per_second: f64,
}

#[derive(Debug, Clone, Default)]
struct Track {
    last: Option<(Duration, u64, u64)>,
    samples: VecDeque<LinkSample>,
}

/// The memory. Bounded, however many links there are and however long it runs.
#[derive(Debug, Clone, Default)]
pub struct History {
    number: u64,
    links: BTreeMap<String, Track>,
}

/// Samples by the name of their link (`0 > bravo/0`), oldest first.
pub type Samples = BTreeMap<String, Vec<LinkSample>>;

impl History {
    /// Remembers what a report says of each link. `at` is the time since the history began.
    pub fn record(&mut self, at: Duration, status: &StatusReport) {
        self.number += 1;
        let mut before = std::mem::take(&mut self.links);
        let links =
            status.nodes.iter().flat_map(|node| node.links.iter().map(|link| (link.name(&node.node), link)));
        for (name, link) in links {
            // A link that is gone is forgotten.
            let mut track = before.remove(&name).unwrap_or_default();
            let (received, sent) = (link.received_bytes, link.sent_bytes);
            let rate = |now: u64, then: fn(&(Duration, u64, u64)) -> u64| {
                let Some(last) = &track.last else { return 0.0 };
                per_second(now.saturating_sub(then(last)), at.saturating_sub(last.0))
            };
            let sample = LinkSample {
                number: self.number,
                at_seconds: hundredths(at.as_secs_f64()),
                rtt_ms: link.rtt_ms.map(hundredths),
                loss_percent: link.loss_percent.map(hundredths),
                received_per_second: rate(received, |last| last.1),
                sent_per_second: rate(sent, |last| last.2),
            };
            track.last = Some((at, received, sent));
            track.samples.push_back(sample);
            self.links.insert(name, track);
        }
        let room = (ALL_SAMPLES / self.links.len().max(1)).clamp(1, SAMPLES);
        for track in self.links.values_mut() {
            while track.samples.len() > room {
                track.samples.pop_front();
            }
        }
    }

    /// Number of the newest look; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Everything that is newer than look `number`.
    pub fn since(&self, number: u64) -> Samples {
        let newer =
            |track: &Track| track.samples.iter().filter(|sample| sample.number > number).copied().collect();
        self.links.iter().map(|(name, track)| (name.clone(), newer(track))).collect()
    }

    /// What is remembered of one link, oldest first.
    pub fn of(&self, link: &str) -> impl DoubleEndedIterator<Item = &LinkSample> {
        self.links.get(link).into_iter().flat_map(|track| &track.samples)
    }
}

fn per_second(octets: u64, span: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a chart shows three digits")]
    let octets = octets as f64;
    if span.is_zero() { 0.0 } else { (octets / span.as_secs_f64()).round() }
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::tests::{link, status_of};

    #[test]
    fn rates_are_differences_over_time() {
        let mut history = History::default();
        let report = |received: u64| status_of(vec![("bravo", vec![link(Some(20.0), received, 0)])]);
        history.record(Duration::from_secs(0), &report(1_000));
        history.record(Duration::from_secs(2), &report(5_000));
        let rates: Vec<f64> = history.of("0 > bravo/0").map(|sample| sample.received_per_second).collect();
        assert_eq!(rates, [0.0, 2_000.0]);
        // A restarted counter is no negative rate.
        history.record(Duration::from_secs(4), &report(0));
        assert_eq!(history.since(2)["0 > bravo/0"][0].received_per_second, 0.0);
        assert_eq!(history.since(3)["0 > bravo/0"], []);
    }

    #[test]
    fn memory_is_bounded_and_gone_links_are_forgotten() {
        let mut history = History::default();
        let report = status_of(vec![("bravo", vec![link(Some(20.0), 1, 1)])]);
        for second in 0..1_000 {
            history.record(Duration::from_secs(second), &report);
        }
        assert_eq!(history.of("0 > bravo/0").count(), SAMPLES);
        history.record(Duration::from_secs(1_000), &status_of(Vec::new()));
        assert_eq!(history.of("0 > bravo/0").count(), 0);
    }
}
