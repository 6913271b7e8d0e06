//! What happened since the daemon started, in numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Text;
use crate::control::quantity::count;

/// The answer to [`crate::control::Request::Counters`]: what metrics show besides the present state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CountersReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Changes of the best way to a prefix.
    pub route_changes: u64,
    /// Finished rekeys, by what was rekeyed: `ike` or `child`.
    pub rekeys: BTreeMap<String, u64>,
    /// Dials that failed, by the stage at which they did.
    pub dial_failures: BTreeMap<String, u64>,
    /// Messages that were refused.
    pub refused_messages: u64,
    /// How late the control loop woke, compared with when it wanted to.
    pub loop_delay: DelayHistogram,
}

/// How often something took how long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayHistogram {
    /// Upper ends of the buckets in seconds; the last bucket of [`Self::counts`] has none.
    pub bounds_seconds: Vec<f64>,
    /// How many fell into each bucket, one more than there are bounds.
    pub counts: Vec<u64>,
    /// Sum of all in seconds.
    pub sum_seconds: f64,
}

impl Text for CountersReport {
    fn text(&self) -> String {
        let mut text = format!("route changes     {}\n", count(self.route_changes));
        let _ = writeln!(text, "refused messages  {}", count(self.refused_messages));
        for (kind, number) in &self.rekeys {
            let _ = writeln!(text, "rekeys, {kind:<9} {}", count(*number));
        }
        for (reason, number) in &self.dial_failures {
            let _ = writeln!(text, "failed dials      {} ({reason})", count(*number));
        }
        text
    }
}
