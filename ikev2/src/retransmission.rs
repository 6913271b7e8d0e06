//! When to send a request again and when to give up (RFC 7296 §2.1, §2.4).

use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use crate::config::Timers;

/// Back-off of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retransmission {
    sent: u32,
    wait: Duration,
    due: Instant,
}

/// What to do when a retransmission is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing yet.
    Wait,
    /// Send the same octets again.
    Resend,
    /// The peer is dead.
    GiveUp,
}

impl Retransmission {
    /// Starts with the first transmission.
    pub(crate) fn start(timers: &Timers, rng: &mut ChaCha20Rng, now: Instant) -> Self {
        let wait = timers.retransmit_first;
        Self { sent: 0, wait, due: now + jittered(wait, rng) }
    }

    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Transmissions so far were this many more than the first.
    pub(crate) fn repeats(&self) -> u32 {
        self.sent
    }

    pub(crate) fn poll(&mut self, timers: &Timers, rng: &mut ChaCha20Rng, now: Instant) -> Due {
        if now < self.due {
            return Due::Wait;
        }
        if self.sent >= timers.retransmit_tries {
            return Due::GiveUp;
        }
        self.sent += 1;
        let grown = self.wait * timers.retransmit_growth_percent / 100;
        self.wait = grown.min(timers.retransmit_max).max(timers.retransmit_first);
        self.due = now + jittered(self.wait, rng);
        Due::Resend
    }
}

/// Up to a tenth longer, so that many peers that lost the same link do not answer in step.
fn jittered(wait: Duration, rng: &mut ChaCha20Rng) -> Duration {
    wait + wait * (rng.next_u32() % 100) / 1000
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test needs some instant to start from")]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn waits_grow_to_the_maximum_and_end() {
        let timers =
            Timers { retransmit_tries: 4, retransmit_max: Duration::from_secs(1), ..Timers::default() };
        let mut rng = ChaCha20Rng::from_seed([5; 32]);
        let start = Instant::now();
        let mut retransmission = Retransmission::start(&timers, &mut rng, start);
        assert_eq!(retransmission.poll(&timers, &mut rng, start), Due::Wait);
        let mut last = start;
        let mut waits = Vec::new();
        loop {
            let due = retransmission.due();
            waits.push((due - last).as_millis());
            last = due;
            match retransmission.poll(&timers, &mut rng, due) {
                Due::Resend => {}
                Due::GiveUp => break,
                Due::Wait => panic!("a deadline that passed asks to wait"),
            }
        }
        assert_eq!(waits.len(), 5);
        for (wait, least) in waits.iter().zip([500, 900, 1000, 1000, 1000]) {
            assert!((least..=least * 11 / 10).contains(wait), "{waits:?}");
        }
    }
}
