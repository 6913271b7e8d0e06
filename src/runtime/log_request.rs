//! `viamesh log`: another log level for a while.

use super::control_loop::ControlLoop;
use crate::control::{Reply, Responder};
use crate::telemetry::component;
use std::time::{Duration, Instant};

/// How long another level lasts at most.
const LONGEST: Duration = Duration::from_secs(86_400);

impl ControlLoop {
    /// Tell the level in force, or set another one that returns by itself.
    pub(super) fn take_log(&mut self, levels: Option<&str>, seconds: Option<u32>, responder: Responder) {
        let Some(level) = &self.host.log_level else {
            return responder.refuse(1, "this daemon's log was not set up by `viamesh run`");
        };
        let Some(levels) = levels else {
            let text = match self.log_returns {
                Some(_) => format!("{} (for a while)", level.current()),
                None => level.current(),
            };
            return responder.finish(Reply::Done { text });
        };
        let changed = component::directives(levels)
            .and_then(|directives| level.raise(&directives).map_err(|error| error.to_string()));
        if let Err(reason) = changed {
            return responder.refuse(2, reason);
        }
        let time = seconds.map_or(LONGEST, |seconds| Duration::from_secs(seconds.into())).min(LONGEST);
        self.log_returns = Some(self.host.clock.now() + time);
        let text =
            format!("{levels} for {}; then as before", crate::control::quantity::whole_span(time.as_secs()));
        responder.finish(Reply::Done { text });
    }

    /// Return to the usual level when the time has come.
    pub(super) fn log_due(&mut self, now: Instant) {
        if self.log_returns.is_some_and(|at| at <= now) {
            self.log_returns = None;
            if let Some(level) = &self.host.log_level {
                level.revert();
            }
        }
    }
}
