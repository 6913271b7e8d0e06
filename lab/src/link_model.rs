//! One direction of a link, in virtual time: the emulator and simulations use the same model.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// The properties of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Time from the end of sending to arrival.
    pub delay: Duration,
    /// Each frame takes up to this much longer, evenly spread. Keeps the order.
    pub jitter: Duration,
    /// The share of frames that get lost, 0 to 1.
    pub loss: f64,
    /// Bits per second; `None` means without limit.
    pub rate: Option<u64>,
    /// How many bytes may wait for a link with a `rate`; more are dropped.
    pub queue: u64,
    /// The share of frames, 0 to 1, that arrive `reorder_by` late and are overtaken meanwhile.
    pub reorder: f64,
    /// See `reorder`.
    pub reorder_by: Duration,
    /// The share of frames that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// The direction is dead: nothing passes.
    pub down: bool,
}

impl LinkSettings {
    /// No delay, no loss, no limit.
    pub const PERFECT: Self = Self {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        loss: 0.0,
        rate: None,
        queue: 1_000_000,
        reorder: 0.0,
        reorder_by: Duration::from_millis(1),
        duplicate: 0.0,
        down: false,
    };

    /// Nothing passes.
    pub const DEAD: Self = Self { down: true, ..Self::PERFECT };

    /// A good link whose round trip, both directions being alike, takes `rtt`.
    pub fn with_rtt(rtt: Duration) -> Self {
        Self { delay: rtt / 2, ..Self::PERFECT }
    }

    /// A good link whose round trip takes so many milliseconds.
    pub fn with_rtt_ms(rtt: u64) -> Self {
        Self::with_rtt(Duration::from_millis(rtt))
    }

    /// Whether frames share one fate only if they are sent one by one: then super-frames must be split.
    pub(crate) fn judges_single_frames(&self) -> bool {
        self.loss > 0.0 || self.reorder > 0.0 || self.duplicate > 0.0
    }
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self::PERFECT
    }
}

/// Why a frame did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// The direction is down.
    Down,
    /// Bad luck, by the loss ratio.
    Loss,
    /// The queue before the rate limit was full.
    QueueFull,
}

/// What becomes of a submitted frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deliveries {
    /// It never arrives.
    Lost(Lost),
    /// It arrives once.
    Once(Instant),
    /// It arrives twice.
    Twice(Instant, Instant),
}

impl Deliveries {
    /// The arrival times: none, one or two.
    pub fn iter(&self) -> impl Iterator<Item = Instant> + use<> {
        let (first, second) = match *self {
            Self::Lost(_) => (None, None),
            Self::Once(at) => (Some(at), None),
            Self::Twice(at, again) => (Some(at), Some(again)),
        };
        first.into_iter().chain(second)
    }
}

/// One direction of a link with its memory: when the line is free again, and what arrives last.
#[derive(Debug, Clone)]
pub struct LinkModel {
    settings: LinkSettings,
    /// Until then the line is busy with frames already accepted (only with a rate).
    busy_until: Option<Instant>,
    /// No frame in order arrives before this one.
    last_arrival: Option<Instant>,
}

impl LinkModel {
    /// An idle link.
    pub fn new(settings: LinkSettings) -> Self {
        Self { settings, busy_until: None, last_arrival: None }
    }

    /// The present settings.
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// Changes the settings from now on; frames under way keep their arrival times, and the shorter delay of a
    /// later frame makes it overtake them.
    pub fn set(&mut self, settings: LinkSettings) {
        if settings.delay != self.settings.delay || settings.jitter != self.settings.jitter {
            self.last_arrival = None;
        }
        if settings.rate != self.settings.rate {
            self.busy_until = None;
        }
        self.settings = settings;
    }

    /// Sends a frame of `bytes` at `now` and says when it arrives.
    ///
    /// Calls must come in the order of `now`.
    pub fn submit(&mut self, bytes: usize, now: Instant, random: &mut Random) -> Deliveries {
        if self.settings.down {
            return Deliveries::Lost(Lost::Down);
        }
        let Some(sent) = self.serialise(bytes, now) else {
            return Deliveries::Lost(Lost::QueueFull);
        };
        // A frame that gets lost on the way has used the line all the same.
        if random.happens(self.settings.loss) {
            return Deliveries::Lost(Lost::Loss);
        }
        let at = self.arrival(sent, random);
        if random.happens(self.settings.duplicate) {
            return Deliveries::Twice(at, self.arrival(sent, random));
        }
        Deliveries::Once(at)
    }

    /// When the last bit leaves the sender, or `None` when the queue is full.
    fn serialise(&mut self, bytes: usize, now: Instant) -> Option<Instant> {
        let Some(rate) = self.settings.rate else { return Some(now) };
        let start = self.busy_until.map_or(now, |busy| busy.max(now));
        let waiting = start.duration_since(now).as_nanos() * u128::from(rate) / 8_000_000_000;
        if waiting > u128::from(self.settings.queue) {
            return None;
        }
        let nanos = bytes as u128 * 8_000_000_000 / u128::from(rate.max(1));
        let sent = start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX >> 8));
        self.busy_until = Some(sent);
        Some(sent)
    }

    fn arrival(&mut self, sent: Instant, random: &mut Random) -> Instant {
        let settings = &self.settings;
        let mut at = sent + settings.delay;
        if !settings.jitter.is_zero() {
            at += settings.jitter.mul_f64(random.fraction());
        }
        if random.happens(settings.reorder) {
            return at + settings.reorder_by;
        }
        let at = self.last_arrival.map_or(at, |last| last.max(at));
        self.last_arrival = Some(at);
        at
    }
}
