//! Waiting for a condition instead of sleeping for a time.

use std::time::{Duration, Instant};

use crate::error::{LabError, Result};

/// The longest pause between two looks at a condition.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// What a condition answers: `bool` (true: go on) or `Option<T>` (some: go on with it).
pub trait Ready {
    /// What the wait yields.
    type Output;
    /// The value, once there is one.
    fn ready(self) -> Option<Self::Output>;
}

impl Ready for bool {
    type Output = ();
    fn ready(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Ready for Option<T> {
    type Output = T;
    fn ready(self) -> Option<T> {
        self
    }
}

/// Asks `condition` again and again until it answers true or some, for at most `limit`.
///
/// The condition is asked at least twice, the last time after the limit, so that a stalled machine does not fail
/// a condition that has long come true.
///
/// # Errors
/// [`LabError::TimedOut`] with `what` in it.
pub fn wait_until<R: Ready>(
    limit: Duration,
    what: &str,
    mut condition: impl FnMut() -> R,
) -> Result<R::Output> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        let late = start.elapsed() >= limit;
        if let Some(value) = condition().ready() {
            return Ok(value);
        }
        if late {
            return Err(LabError::TimedOut { what: what.to_owned(), waited: start.elapsed() });
        }
        std::thread::sleep(pause.min(limit.saturating_sub(start.elapsed())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::wait_until;
    use crate::error::LabError;

    #[test]
    fn yields_the_value() {
        let mut looks = 0;
        let value = wait_until(Duration::from_secs(5), "third look", || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(value.unwrap(), 3);
        wait_until(Duration::ZERO, "the obvious", || true).unwrap();
    }

    #[test]
    fn says_what_it_waited_for() {
        let error = wait_until(Duration::from_millis(3), "the impossible", || false).unwrap_err();
        assert!(matches!(error, LabError::TimedOut { .. }));
        assert!(error.to_string().contains("the impossible"));
    }
}
