//! Seqno requests under way (RFC 8966 §3.2.7): our own, which are repeated, and those forwarded for others,
//! which are not.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{Prefix, RouterId, Seqno, neighbour::NeighbourKey};

/// After the last repetition a request of our own may begin anew.
const PAUSE: Duration = Duration::from_secs(2);
/// How long an answer is waited for.
const LIFETIME: Duration = Duration::from_secs(10);
/// A request for the same or an older number is not sent again within this.
const SUPPRESSION: Duration = Duration::from_millis(300);
/// The first repetition of our own requests comes after this, each later one after twice the time.
const FIRST_REPETITION: Duration = Duration::from_millis(500);
/// How often our own requests are repeated.
const REPETITIONS: u8 = 4;
/// Neighbours remembered for one request.
const REQUESTERS: usize = 16;

/// Where a request of our own goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To this neighbour.
    Neighbour(NeighbourKey),
    /// To all.
    Everyone,
}

#[derive(Debug)]
struct Repetition {
    target: Target,
    at: Instant,
    delay: Duration,
    left: u8,
}

#[derive(Debug)]
struct Pending {
    seqno: Seqno,
    sent: Instant,
    requesters: Vec<NeighbourKey>,
    /// We asked for ourselves.
    asked: bool,
    repetition: Option<Repetition>,
}

/// The requests, at most one for each source.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    entries: BTreeMap<(Prefix, RouterId), Pending>,
}

/// A request that is to be repeated now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    pub(crate) prefix: Prefix,
    pub(crate) router_id: RouterId,
    pub(crate) seqno: Seqno,
    pub(crate) target: Target,
}

impl RequestTable {
    /// Notes a request of our own. Returns whether it must be sent now.
    pub(crate) fn ask(
        &mut self,
        source: (Prefix, RouterId),
        seqno: Seqno,
        target: Target,
        limit: usize,
        now: Instant,
    ) -> bool {
        let asking = self.entries.get(&source).is_some_and(|pending| {
            let recent = now.saturating_duration_since(pending.sent) < PAUSE;
            pending.asked && (recent || pending.repetition.is_some()) && !seqno.is_newer_than(pending.seqno)
        });
        if asking || !self.admit(source, seqno, limit, now) {
            return false;
        }
        let repetition =
            Repetition { target, at: now + FIRST_REPETITION, delay: FIRST_REPETITION, left: REPETITIONS };
        if let Some(pending) = self.entries.get_mut(&source) {
            pending.repetition = Some(repetition);
            pending.asked = true;
        }
        true
    }

    //= RFC 8966 §3.8.1.2
    /// Notes a request to forward. Returns `false` if the same was forwarded just now.
    pub(crate) fn forward(
        &mut self,
        source: (Prefix, RouterId),
        seqno: Seqno,
        requester: NeighbourKey,
        limit: usize,
        now: Instant,
    ) -> bool {
        let fresh = self.admit(source, seqno, limit, now);
        if let Some(pending) = self.entries.get_mut(&source)
            && pending.requesters.len() < REQUESTERS
            && !pending.requesters.contains(&requester)
        {
            pending.requesters.push(requester);
        }
        fresh
    }

    fn admit(&mut self, source: (Prefix, RouterId), seqno: Seqno, limit: usize, now: Instant) -> bool {
        if let Some(pending) = self.entries.get_mut(&source) {
            let older = !seqno.is_newer_than(pending.seqno);
            if older && now.saturating_duration_since(pending.sent) < SUPPRESSION {
                return false;
            }
            if !older {
                pending.seqno = seqno;
            }
            pending.sent = now;
            return true;
        }
        if self.entries.len() >= limit {
            return false;
        }
        let pending = Pending { seqno, sent: now, requesters: Vec::new(), asked: false, repetition: None };
        self.entries.insert(source, pending);
        true
    }

    /// An announcement of `seqno` arrived. Returns who waited for it, if it answers a request.
    pub(crate) fn satisfy(&mut self, source: (Prefix, RouterId), seqno: Seqno) -> Option<Vec<NeighbourKey>> {
        let pending = self.entries.get(&source)?;
        if pending.seqno.is_newer_than(seqno) {
            return None;
        }
        self.entries.remove(&source).map(|pending| pending.requesters)
    }

    /// A route for the prefix is in use again: our own requests are moot.
    pub(crate) fn stop_asking(&mut self, prefix: &Prefix) {
        let range = (*prefix, RouterId([0; 8]))..=(*prefix, RouterId([0xFF; 8]));
        self.entries.range_mut(range).for_each(|(_, pending)| pending.repetition = None);
    }

    /// When something is to be repeated.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.entries.values().filter_map(|pending| pending.repetition.as_ref().map(|r| r.at)).min()
    }

    /// What is to be repeated now.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Repeat> {
        let mut due = Vec::new();
        for ((prefix, router_id), pending) in &mut self.entries {
            let Some(repetition) = pending.repetition.as_mut().filter(|repetition| repetition.at <= now)
            else {
                continue;
            };
            let (prefix, router_id) = (*prefix, *router_id);
            due.push(Repeat { prefix, router_id, seqno: pending.seqno, target: repetition.target });
            pending.sent = now;
            repetition.delay *= 2;
            repetition.at = now + repetition.delay;
            repetition.left -= 1;
            if repetition.left == 0 {
                pending.repetition = None;
            }
        }
        due
    }

    /// Drops what was not answered.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.entries.retain(|_, pending| {
            pending.repetition.is_some() || now.saturating_duration_since(pending.sent) < LIFETIME
        });
    }

    /// A neighbour is gone.
    pub(crate) fn forget(&mut self, neighbour: NeighbourKey) {
        for pending in self.entries.values_mut() {
            pending.requesters.retain(|requester| *requester != neighbour);
        }
    }
}
