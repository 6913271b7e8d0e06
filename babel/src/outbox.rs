//! What waits to be sent to one destination: all of an interface, or one neighbour (RFC 8966 §3.1).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use crate::{Prefix, wire::tlv::Tlv};

/// TLVs beyond this many are dropped: the peer asks faster than we may answer.
const LONGEST: usize = 512;
/// Urgent updates are repeated so often, in case a packet is lost.
const REPETITIONS: u8 = 2;
/// Between repetitions.
const REPETITION_DELAY: Duration = Duration::from_millis(300);

/// A buffer of TLVs and of prefixes to announce. Announcements are resolved when the packet is written, so they
/// are always about the present.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) tlvs: VecDeque<Tlv>,
    updates: BTreeSet<Prefix>,
    repeats: BTreeMap<Prefix, u8>,
    /// Taken from `updates`, in the order in which they will be written.
    pub(crate) ready: VecDeque<Prefix>,
    flush_at: Option<Instant>,
    repeat_at: Option<Instant>,
}

impl Outbox {
    /// Queues a TLV, to be sent at `at` or earlier.
    pub(crate) fn push(&mut self, tlv: Tlv, at: Instant) {
        if self.tlvs.len() < LONGEST {
            self.tlvs.push_back(tlv);
            self.flush_by(at);
        }
    }

    /// Queues an announcement. An `urgent` one is repeated.
    pub(crate) fn update(&mut self, prefix: Prefix, urgent: bool, at: Instant) {
        self.updates.insert(prefix);
        if urgent {
            self.repeats.insert(prefix, REPETITIONS);
        }
        self.flush_by(at);
    }

    /// Queues many announcements.
    pub(crate) fn update_all(&mut self, prefixes: impl Iterator<Item = Prefix>, at: Instant) {
        self.updates.extend(prefixes);
        if !self.updates.is_empty() {
            self.flush_by(at);
        }
    }

    /// Whether something is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|at| at <= now)
    }

    /// When something is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.flush_at, self.repeat_at].into_iter().flatten().min()
    }

    /// The prefixes whose announcements are due now; the caller orders them into `ready`.
    pub(crate) fn take_updates(&mut self, now: Instant) -> Vec<Prefix> {
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.updates.extend(self.repeats.keys().copied());
            self.repeat_at = None;
            self.repeats.retain(|_, left| {
                *left = left.saturating_sub(1);
                *left > 0
            });
        }
        if !self.repeats.is_empty() && self.repeat_at.is_none() {
            self.repeat_at = Some(now + REPETITION_DELAY);
        }
        std::mem::take(&mut self.updates).into_iter().collect()
    }

    /// Called after a packet was written.
    pub(crate) fn written(&mut self, now: Instant) {
        let rest = !self.tlvs.is_empty() || !self.ready.is_empty();
        self.flush_at = rest.then_some(now);
    }

    fn flush_by(&mut self, at: Instant) {
        self.flush_at = Some(self.flush_at.map_or(at, |flush_at| flush_at.min(at)));
    }
}
