//! The record of one stream of Hellos (RFC 8966 §3.4.1 and appendix A.1).

use std::time::{Duration, Instant};

use crate::Seqno;

/// How far a sequence number may jump before the sender is taken to have restarted.
const RESTART_DISTANCE: i16 = 32;
/// After so many misses in a row the stream is over: nothing more is counted.
const GIVE_UP: u32 = 16;

/// Which Hellos of a stream arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HelloHistory {
    /// Newest in bit 0; 1 is received.
    bits: u64,
    /// How many of the bits mean something.
    length: u32,
    expected: Option<Seqno>,
    interval: Duration,
    last: Option<Instant>,
    miss_at: Option<Instant>,
    prior: Option<Prior>,
}

/// A better measurement of the loss, which takes the place of all Hellos before it.
#[derive(Clone, Copy, Debug)]
struct Prior {
    percent: u8,
    /// Hellos counted since.
    since: u32,
}

impl HelloHistory {
    /// Records a Hello. An `interval` of zero is unscheduled: it proves that the Hello arrived, and no more.
    /// Returns whether the sender has restarted.
    pub(crate) fn receive(&mut self, seqno: Seqno, interval: Duration, received: Instant) -> bool {
        let distance = self.expected.map_or(0, |expected| seqno.since(expected));
        let restarted = !(-RESTART_DISTANCE..=RESTART_DISTANCE).contains(&distance);
        if restarted {
            self.clear();
        } else if distance < 0 {
            // The sender's interval grew, or the packet was late: take misses back.
            let back = u32::from(distance.unsigned_abs());
            self.bits = self.bits.checked_shr(back).unwrap_or(0);
            self.length = self.length.saturating_sub(back);
            self.prior = self.prior.map(|prior| Prior { since: prior.since.saturating_sub(back), ..prior });
        } else {
            (0..distance).for_each(|_| self.shift(false));
        }
        self.shift(true);
        self.expected = Some(seqno.plus(1));
        //= RFC 8966 §3.4.1
        if !interval.is_zero() {
            self.interval = interval;
            self.last = self.last.max(Some(received));
            self.miss_at = Some(received + interval * 3 / 2);
        }
        restarted
    }

    /// Counts what should have arrived by now. Returns whether the history changed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(miss_at) = self.miss_at.filter(|at| *at <= now) {
            self.shift(false);
            self.expected = self.expected.map(|seqno| seqno.plus(1));
            let over = self.bits.trailing_zeros() >= GIVE_UP;
            self.miss_at = (!over).then(|| miss_at + self.interval);
            changed = true;
        }
        changed
    }

    /// When the next Hello counts as missed.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.miss_at
    }

    /// When the stream is dead if nothing more comes and `missing` Hellos may be lost.
    pub(crate) fn dead_at(&self, missing: u32) -> Option<Instant> {
        self.last.map(|last| last + self.interval * missing + self.interval / 2)
    }

    /// The announced interval, if Hellos are scheduled.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.last.map(|_| self.interval)
    }

    /// Percent lost among the last `window` Hellos; `None` while fewer than eight are known.
    pub(crate) fn loss_percent(&self, window: u32) -> Option<u8> {
        self.loss(0, window)
    }

    /// The same without the run of misses that goes on now.
    pub(crate) fn loss_before_silence(&self, window: u32) -> Option<u8> {
        self.loss(self.bits.trailing_zeros(), window)
    }

    /// Takes the loss that another stream has measured for that of all Hellos so far. Those to come replace it one
    /// by one.
    pub(crate) fn believe(&mut self, percent: u8) {
        self.prior = Some(Prior { percent, since: 0 });
    }

    /// Loss among the last `window` Hellos before the last `silence` ones.
    fn loss(&self, silence: u32, window: u32) -> Option<u8> {
        let counted = |hellos: u32| hellos.saturating_sub(silence).min(window);
        let (measured, believed, percent) = match self.prior {
            Some(Prior { percent, since }) => {
                let measured = counted(since.min(self.length));
                (measured, window - measured, u32::from(percent))
            }
            None => (counted(self.length), 0, 0),
        };
        let known = measured + believed;
        if known < 8 {
            return None;
        }
        let bits = self.bits.checked_shr(silence).unwrap_or(0);
        let mask = u64::MAX.checked_shr(64 - measured).unwrap_or(0);
        let lost = measured - (bits & mask).count_ones();
        u8::try_from((lost * 100 + believed * percent) / known).ok()
    }

    /// The last 16, newest in bit 0.
    pub(crate) const fn last_sixteen(&self) -> u16 {
        (self.bits & 0xFFFF) as u16
    }

    /// Moves all deadlines by the time that our own control loop overslept.
    pub(crate) fn postpone(&mut self, lateness: Duration) {
        self.last = self.last.map(|last| last + lateness);
        self.miss_at = self.miss_at.map(|at| at + lateness);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn shift(&mut self, received: bool) {
        self.bits = self.bits << 1 | u64::from(received);
        self.length = (self.length + 1).min(64);
        self.prior = self.prior.map(|prior| Prior { since: prior.since.saturating_add(1), ..prior });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "tests need some instant to count from")]
        Instant::now()
    }

    #[test]
    fn misses_and_gaps_are_counted_once() {
        let t0 = start();
        let mut history = HelloHistory::default();
        history.receive(Seqno(0xFFFE), SECOND, t0);
        history.receive(Seqno(0xFFFF), SECOND, t0 + SECOND);
        assert!(!history.handle_timeout(t0 + SECOND * 2));
        assert!(history.handle_timeout(t0 + SECOND * 5 / 2));
        assert_eq!(history.last_sixteen(), 0b110);
        // Number 0 was missed and counted; 1 arrives.
        history.receive(Seqno(1), SECOND, t0 + SECOND * 3);
        assert_eq!(history.last_sixteen(), 0b1101);
        // The late number 0 takes nothing away but the order.
        history.receive(Seqno(4), SECOND, t0 + SECOND * 6);
        assert_eq!(history.last_sixteen(), 0b110_1001);
    }

    #[test]
    fn late_packet_undoes_a_miss() {
        let t0 = start();
        let mut history = HelloHistory::default();
        history.receive(Seqno(7), SECOND, t0);
        history.handle_timeout(t0 + SECOND * 2);
        history.receive(Seqno(8), SECOND, t0 + SECOND * 2);
        assert_eq!(history.last_sixteen(), 0b11);
    }

    #[test]
    fn restart_forgets_and_unscheduled_promises_nothing() {
        let t0 = start();
        let mut history = HelloHistory::default();
        history.receive(Seqno(7), Duration::ZERO, t0);
        assert_eq!(history.deadline(), None);
        assert_eq!(history.dead_at(3), None);
        history.receive(Seqno(9000), SECOND, t0);
        assert_eq!(history.last_sixteen(), 1);
        assert_eq!(history.dead_at(3), Some(t0 + SECOND * 7 / 2));
        // Interval 0 neither extends nor clears.
        history.receive(Seqno(9001), Duration::ZERO, t0 + SECOND * 3);
        assert_eq!(history.dead_at(3), Some(t0 + SECOND * 7 / 2));
    }

    #[test]
    fn loss_is_in_percent_of_what_is_known() {
        let t0 = start();
        let mut history = HelloHistory::default();
        for number in 0..4 {
            history.receive(Seqno(number * 2), SECOND, t0);
        }
        assert_eq!(history.loss_percent(16), None);
        history.receive(Seqno(8), SECOND, t0);
        assert_eq!(history.loss_percent(16), Some(44));
        assert_eq!(history.loss_percent(8), Some(50));
    }

    #[test]
    fn what_another_stream_measured_fades_with_each_hello() {
        let t0 = start();
        let mut history = HelloHistory::default();
        (0..20).for_each(|number| _ = history.receive(Seqno(number), SECOND, t0));
        assert_eq!(history.loss_percent(16), Some(0));
        history.believe(50);
        assert_eq!((history.loss_percent(16), history.loss_before_silence(16)), (Some(50), Some(50)));
        (20..28).for_each(|number| _ = history.receive(Seqno(number), SECOND, t0));
        assert_eq!(history.loss_percent(16), Some(25));
        (28..36).for_each(|number| _ = history.receive(Seqno(number), SECOND, t0));
        assert_eq!(history.loss_percent(16), Some(0));
        history.clear();
        assert_eq!(history.loss_percent(16), None);
    }
}
