//! The daemon's clock.
//!
//! `Instant` stops while the machine sleeps, but the peers' timers go on: the daemon's instants
//! therefore advance with CLOCK_BOOTTIME. The kernel stamps datagrams with the wall clock; their
//! age is what counts.

use std::time::{Duration, Instant};

/// A stamp older than this is not believed: the wall clock was set.
const OLDEST: Duration = Duration::from_secs(10);

/// Instants that include the time asleep. Copies agree with each other.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    base: Instant,
    boot: Duration,
}

impl Clock {
    /// A clock whose first instant is the present.
    pub fn new() -> Self {
        Clock { base: Instant::now(), boot: read(libc::CLOCK_BOOTTIME) }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.base + read(libc::CLOCK_BOOTTIME).saturating_sub(self.boot)
    }

    /// CLOCK_MONOTONIC, by which the service manager counts.
    pub fn monotonic(&self) -> Duration {
        read(libc::CLOCK_MONOTONIC)
    }

    /// The wall clock, since the Unix epoch.
    pub fn wall(&self) -> Duration {
        read(libc::CLOCK_REALTIME)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

/// The instant at which the kernel stamped a datagram, if the wall clock says `wall` at `now`.
pub(crate) fn stamped(stamp: Option<Duration>, wall: Duration, now: Instant) -> Instant {
    let age = stamp.and_then(|stamp| wall.checked_sub(stamp)).filter(|age| *age < OLDEST);
    age.and_then(|age| now.checked_sub(age)).unwrap_or(now)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call, which writes nothing else.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if result != 0 {
        return Duration::ZERO;
    }
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_becomes_an_age() {
        let now = Instant::now() + Duration::from_secs(100);
        let wall = Duration::from_secs(1_000_000);
        let before = Duration::from_millis(30);
        assert_eq!(stamped(Some(wall - before), wall, now), now - before);
        assert_eq!(stamped(Some(wall + before), wall, now), now, "the future is not believed");
        assert_eq!(stamped(Some(wall - OLDEST), wall, now), now, "nor is the distant past");
        assert_eq!(stamped(None, wall, now), now);
    }

    #[test]
    fn the_clock_advances() {
        let clock = Clock::new();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(clock.wall() > Duration::from_secs(1_600_000_000));
    }
}
