//! Round-trip time of a link (RFC 9616): samples, smoothing, cost.

use std::time::{Duration, Instant};

use crate::CostMap;

/// Samples above this are nonsense.
const LONGEST: i64 = 60_000_000;
/// Time constant of the slow filter: jitter averages out over this.
const TIME_CONSTANT: i64 = 20_000_000;
/// By samples that are out of the usual the deviation grows this slowly.
const DEVIATION_TIME_CONSTANT: i64 = 16_000_000;
/// A change is believed at once after so many samples in a row agree on it…
const AGREEING_SAMPLES: usize = 3;
/// For so many samples an estimate counts that was just agreed on.
const CONFIRMATIONS: i64 = 3;
/// …that cover at least this time.
const AGREEING_SPAN: Duration = Duration::from_millis(1500);
/// A deviation that is not confirmed within this was chance.
const EXAMINATION: Duration = Duration::from_secs(5);
/// Deviations below this many microseconds are never a change.
const LEAST_CHANGE: i64 = 4_000;
/// Samples that the running average of a new neighbour covers before the slow filter takes over.
const KEPT_SAMPLES: i64 = 16;

/// Computes a sample from the four stamps of RFC 9616 §3.2, all modulo 2^32 microseconds. `None` if the stamps
/// contradict each other or are stale.
//= RFC 9616 §3.2
pub(crate) fn sample(origin: u32, peer_received: u32, peer_sent: u32, received: u32) -> Option<u32> {
    let total = i64::from(received.wrapping_sub(origin));
    let remote = i64::from(peer_sent.wrapping_sub(peer_received));
    let rtt = total - remote;
    // The wrap is at 71 minutes; anything of minutes means that a stamp belongs to another life of the peer.
    if total > 3 * LONGEST || remote > 3 * LONGEST || !(-1000..=LONGEST).contains(&rtt) {
        return None;
    }
    u32::try_from(rtt.max(0)).ok()
}

/// Smoothed round-trip time.
///
/// Jitter goes into a slow exponential average. When several samples in a row deviate to the same side by more
/// than the usual jitter, the path has changed, and the estimate jumps to what they agree on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RttEstimator {
    /// Microseconds.
    smoothed: Option<i64>,
    /// Mean deviation, microseconds.
    deviation: i64,
    count: i64,
    last: Option<Instant>,
    /// Samples in a row that deviate to the same side.
    agreeing: Vec<(i64, Instant)>,
}

impl RttEstimator {
    /// Takes a sample in microseconds.
    pub(crate) fn add(&mut self, sample: u32, received: Instant) {
        let sample = i64::from(sample);
        let Some(smoothed) = self.smoothed else {
            *self = Self { smoothed: Some(sample), deviation: (sample / 8).max(2_000), ..Self::default() };
            self.count = 1;
            self.last = Some(received);
            return;
        };
        let error = sample - smoothed;
        let usual = error.abs() <= self.usual_deviation();
        if !usual && self.has_changed(error, sample, received) {
            // The first of them may have been under way while the path changed: the median knows better.
            let mut agreed: Vec<i64> = self.agreeing.drain(..).map(|(sample, _)| sample).collect();
            agreed.sort_unstable();
            self.smoothed = agreed.get(agreed.len() / 2).copied();
            self.count = CONFIRMATIONS;
        } else {
            let passed = self.last.map_or(0, |last| micros(received.saturating_duration_since(last)));
            let passed = passed.min(4_000_000);
            // The weight of the time that passed; in the beginning that of a running average.
            let slow = error * passed / (passed + TIME_CONSTANT);
            if usual {
                self.agreeing.clear();
                self.count += 1;
                let step = if self.count <= KEPT_SAMPLES { error / self.count } else { slow };
                self.smoothed = Some(smoothed + step);
                self.deviation += (error.abs() - self.deviation) / 8;
            } else {
                // An outlier, or the start of a change: it must hardly teach the filter to tolerate more.
                self.smoothed = Some(smoothed + slow);
                self.deviation += self.deviation * passed / DEVIATION_TIME_CONSTANT + 1;
            }
        }
        self.last = Some(received);
    }

    /// Whether the last samples deviate, and more would tell whether the path has changed.
    pub(crate) fn is_examining(&self, now: Instant) -> bool {
        let latest = self.agreeing.last();
        latest.is_some_and(|(_, at)| now.saturating_duration_since(*at) < EXAMINATION)
    }

    fn usual_deviation(&self) -> i64 {
        (3 * self.deviation).max(LEAST_CHANGE)
    }

    fn has_changed(&mut self, error: i64, sample: i64, received: Instant) -> bool {
        let smoothed = sample - error;
        let other_side =
            self.agreeing.first().is_some_and(|(first, _)| (first - smoothed > 0) != (error > 0));
        if other_side {
            self.agreeing.clear();
        }
        self.agreeing.push((sample, received));
        let span = self.agreeing.first().map(|(_, first)| received.saturating_duration_since(*first));
        if self.agreeing.len() > 64 {
            self.agreeing.remove(0);
        }
        self.agreeing.len() >= AGREEING_SAMPLES && span >= Some(AGREEING_SPAN)
    }

    /// The smoothed value.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.smoothed.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }

    /// The mean deviation of samples from it.
    pub(crate) fn deviation(&self) -> Option<Duration> {
        self.smoothed.map(|_| Duration::from_micros(u64::try_from(self.deviation).unwrap_or(0)))
    }

    /// Forgets everything: the neighbour restarted or was gone.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl CostMap {
    /// What a round-trip time adds to the cost of a link (RFC 9616 §4.2).
    #[must_use]
    pub fn rtt_cost(&self, rtt: Duration) -> u16 {
        if rtt <= self.rtt_min || self.rtt_max <= self.rtt_min {
            return 0;
        }
        if rtt >= self.rtt_max {
            return self.rtt_cost;
        }
        let above = (rtt - self.rtt_min).as_micros();
        let span = (self.rtt_max - self.rtt_min).as_micros();
        u16::try_from(above * u128::from(self.rtt_cost) / span.max(1)).unwrap_or(self.rtt_cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "tests need some instant to count from")]
        Instant::now()
    }

    #[test]
    fn stamps_are_modular() {
        assert_eq!(sample(0xFFFF_FF00, 10, 20, 0x100), Some(0x200 - 10));
        assert_eq!(sample(0, 0xFFFF_FFFF, 9, 1010), Some(1000));
        assert_eq!(sample(0, 0, 5000, 1000), None, "negative");
        assert_eq!(sample(0, 0, 0, 200_000_000), None, "minutes");
        assert_eq!(sample(5, 0, 0, 4), None, "answered before sent");
    }

    #[test]
    fn default_cost_map() {
        let map = CostMap::default();
        let cost = |millis| map.rtt_cost(Duration::from_millis(millis));
        assert_eq!([cost(0), cost(1), cost(2), cost(40), cost(1001), cost(5000)], [0, 0, 4, 156, 4000, 4000]);
    }

    fn settled(estimator: &mut RttEstimator, millis: [u32; 2], t0: Instant) -> Instant {
        let mut now = t0;
        for round in 0..120 {
            now += Duration::from_secs(1);
            estimator.add(millis[round % 2] * 1000, now);
        }
        now
    }

    #[test]
    fn jitter_is_averaged_and_a_change_is_followed_in_seconds() {
        let mut estimator = RttEstimator::default();
        let mut now = settled(&mut estimator, [50, 30], start());
        let rtt = estimator.rtt().unwrap();
        assert!(rtt.abs_diff(Duration::from_millis(40)) < Duration::from_millis(2), "{rtt:?}");
        for _ in 0..3 {
            now += Duration::from_secs(1);
            estimator.add(120_000, now);
        }
        assert_eq!(estimator.rtt(), Some(Duration::from_millis(120)));
        for _ in 0..3 {
            now += Duration::from_secs(1);
            estimator.add(20_000, now);
        }
        assert_eq!(estimator.rtt(), Some(Duration::from_millis(20)));
    }

    #[test]
    fn a_single_outlier_hardly_matters() {
        let mut estimator = RttEstimator::default();
        let now = settled(&mut estimator, [40, 40], start());
        estimator.add(400_000, now + Duration::from_secs(1));
        estimator.add(40_000, now + Duration::from_secs(2));
        assert!(estimator.rtt().unwrap() < Duration::from_millis(60));
    }
}
