//! The record of one stream of Hellos (RFC 8966 §3.4.1 and appendix A.1).

use std::time::{Duration, Instant};

use crate::Seqno;

/// How far a sequence number may jump before the sender is taken to have restarted…
const RESTART_DISTANCE: i16 = 32;
/// …if no more Hellos were due meanwhile than this part of them.
const LIKELY_DISTANCE: i16 = 8;
/// Hellos that may come out of turn between two scheduled ones.
const OUT_OF_TURN: u32 = 2;
/// After so many misses in a row the stream is over: nothing more is counted.
const GIVE_UP: u32 = 16;
/// Hellos over which loss is counted: enough that luck does not make a bad link look good.
const LONG_WINDOW: u32 = 64;
/// Hellos that tell of a link that turns bad…
const SHORT_WINDOW: u32 = 16;
/// …if so many of them are lost: fewer may be chance on a good link.
const SHORT_LEAST: u32 = 3;
/// With fewer Hellos nothing is said about loss.
const LEAST_KNOWN: u32 = 8;

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
        if self.is_over() {
            self.begin_anew();
        }
        let distance = self.expected.map_or(0, |expected| seqno.since(expected));
        let due = self.due_since_last(received);
        let far = distance > LIKELY_DISTANCE && u32::from(distance.unsigned_abs()) / 4 > due;
        let restarted = far || !(-RESTART_DISTANCE..=RESTART_DISTANCE).contains(&distance);
        if restarted {
            self.clear();
        } else if distance < 0 {
            // The sender's interval grew, or the packet was late: take misses back.
            let back = u32::from(distance.unsigned_abs());
            self.bits = self.bits.checked_shr(back).unwrap_or(0);
            self.length = self.length.saturating_sub(back);
            self.prior = self.prior.map(|prior| Prior { since: prior.since.saturating_sub(back), ..prior });
        } else {
            let missed = u32::from(distance.unsigned_abs()).min(due + OUT_OF_TURN);
            (0..missed).for_each(|_| self.shift(false));
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

    /// How many Hellos were due since the last one; none if that is not known.
    fn due_since_last(&self, received: Instant) -> u32 {
        let passed = self.last.map(|last| received.saturating_duration_since(last).as_millis());
        let intervals = passed.unwrap_or(0) / self.interval.as_millis().max(1);
        u32::try_from(intervals).unwrap_or(u32::MAX)
    }

    /// Counts what should have arrived by now. Returns whether the history changed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(miss_at) = self.miss_at.filter(|at| *at <= now) {
            self.shift(false);
            self.expected = self.expected.map(|seqno| seqno.plus(1));
            self.miss_at = (!self.is_over()).then(|| miss_at + self.interval);
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

    /// When the last scheduled Hello came.
    pub(crate) const fn last(&self) -> Option<Instant> {
        self.last
    }

    /// The announced interval, if Hellos are scheduled.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.last.map(|_| self.interval)
    }

    /// Percent lost. It falls slowly, as luck is not to bring traffic back to a bad link; `quick` lets it rise at
    /// once when several Hellos in a row of few are lost, for streams in which 64 Hellos take minutes. `None`
    /// while nothing is known.
    pub(crate) fn loss_percent(&self, quick: bool) -> Option<u8> {
        self.loss(0, quick)
    }

    /// The same without the run of misses that goes on now.
    pub(crate) fn loss_before_silence(&self, quick: bool) -> Option<u8> {
        self.loss(self.bits.trailing_zeros().min(self.length), quick)
    }

    /// Takes the loss that another stream has measured for that of all Hellos so far. Those to come replace it one
    /// by one.
    pub(crate) fn believe(&mut self, percent: u8) {
        self.prior = Some(Prior { percent, since: 0 });
    }

    /// Loss among the Hellos before the last `silence` ones.
    fn loss(&self, silence: u32, quick: bool) -> Option<u8> {
        let counted = |hellos: u32, window: u32| hellos.saturating_sub(silence).min(window);
        let since = self.prior.map_or(self.length, |prior| prior.since.min(self.length));
        // What the silence has pushed out is not known any more.
        let window = LONG_WINDOW.saturating_sub(silence).max(1);
        let known = counted(since, LONG_WINDOW);
        let percent = match self.prior {
            Some(prior) => u32::from(prior.percent),
            None if known < LEAST_KNOWN => return None,
            // A new link is taken to be good: of few Hellos, one that is lost would count too much.
            None => 0,
        };
        let long = self.lost(silence, known) * 100 + window.saturating_sub(known) * percent;
        let lost_lately = self.lost(silence, counted(since, SHORT_WINDOW));
        let short = if quick && lost_lately >= SHORT_LEAST { lost_lately * 100 / SHORT_WINDOW } else { 0 };
        u8::try_from((long / window).max(short)).ok()
    }

    /// How many of `count` Hellos before the last `silence` ones were lost.
    fn lost(&self, silence: u32, count: u32) -> u32 {
        let bits = self.bits.checked_shr(silence).unwrap_or(0);
        let mask = u64::MAX.checked_shr(64 - count).unwrap_or(0);
        count - (bits & mask).count_ones()
    }

    /// Whether so many Hellos are missing that none is expected any more.
    const fn is_over(&self) -> bool {
        self.length > 0 && self.bits.trailing_zeros() >= GIVE_UP
    }

    /// Starts a new record. The silence says nothing about the link, the loss before it does.
    fn begin_anew(&mut self) {
        let loss = self.loss_before_silence(false);
        self.clear();
        if let Some(percent) = loss {
            self.believe(percent);
        }
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

    /// No Hello is waited for any more. Those that were missed still count if the stream goes on soon.
    pub(crate) const fn fall_silent(&mut self) {
        self.last = None;
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

    /// Receives every Hello for which `arrives` is true.
    fn hear(history: &mut HelloHistory, numbers: std::ops::Range<u16>, arrives: impl Fn(u16) -> bool) {
        let t0 = start();
        numbers.filter(|number| arrives(*number)).for_each(|number| {
            history.receive(Seqno(number), SECOND, t0 + SECOND * u32::from(number));
        });
    }

    #[test]
    fn loss_rises_at_once_and_falls_slowly() {
        let mut history = HelloHistory::default();
        hear(&mut history, 0..7, |_| true);
        assert_eq!(history.loss_percent(true), None, "nobody knows yet");
        hear(&mut history, 7..64, |_| true);
        assert_eq!(history.loss_percent(true), Some(0));
        hear(&mut history, 66..67, |_| true);
        assert_eq!((history.loss_percent(true), history.loss_percent(false)), (Some(3), Some(3)), "chance");
        hear(&mut history, 67..79, |number| number % 3 != 0);
        assert_eq!((history.loss_percent(true), history.loss_percent(false)), (Some(31), Some(7)));
        hear(&mut history, 79..99, |_| true);
        assert_eq!(history.loss_percent(true), Some(9), "16 lucky Hellos are forgotten by nobody");
        hear(&mut history, 99..150, |_| true);
        assert_eq!(history.loss_percent(true), Some(0));
    }

    #[test]
    fn a_jump_that_time_does_not_explain_is_a_restart() {
        let t0 = start();
        let mut history = HelloHistory::default();
        hear(&mut history, 0..20, |_| true);
        let last = history.last.unwrap();
        assert!(!history.clone().receive(Seqno(29), SECOND, last + SECOND * 10));
        assert!(history.clone().receive(Seqno(49), SECOND, last + SECOND * 2));
        // Some Hellos may come out of turn, and be lost.
        assert!(!history.receive(Seqno(26), SECOND, last + SECOND));
        assert_eq!(history.last_sixteen() & 0b11111, 0b10001, "{:?}", last - t0);
    }

    #[test]
    fn a_stream_that_comes_back_is_not_new() {
        let t0 = start();
        let mut history = HelloHistory::default();
        hear(&mut history, 0..64, |number| number % 4 != 1);
        assert_eq!(history.loss_percent(true), Some(25));
        assert!(history.handle_timeout(t0 + SECOND * 90));
        assert_eq!(history.deadline(), None, "over");
        assert!(
            !history.receive(Seqno(9000), SECOND, t0 + SECOND * 199),
            "it did not restart: it was forgotten"
        );
        assert_eq!(history.last_sixteen(), 1);
        assert_eq!(history.loss_percent(true), Some(24));
    }

    #[test]
    fn what_another_stream_measured_fades_with_each_hello() {
        let mut history = HelloHistory::default();
        hear(&mut history, 0..20, |_| true);
        assert_eq!(history.loss_percent(true), Some(0));
        history.believe(50);
        assert_eq!((history.loss_percent(true), history.loss_before_silence(true)), (Some(50), Some(50)));
        hear(&mut history, 20..36, |_| true);
        assert_eq!(history.loss_percent(true), Some(37));
        hear(&mut history, 36..84, |_| true);
        assert_eq!(history.loss_percent(true), Some(0));
        history.clear();
        assert_eq!(history.loss_percent(true), None);
    }
}
