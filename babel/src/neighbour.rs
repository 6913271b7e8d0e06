//! A neighbour (RFC 8966 §3.2.4, §3.4): is it there, and what does the link to it cost?

use std::{
    net::Ipv6Addr,
    time::{Duration, Instant},
};

use crate::{
    CostMap, INFINITY, InterfaceId, Seqno, hello_history::HelloHistory, outbox::Outbox, path_mtu::Probe,
    rtt::RttEstimator,
};

/// An IHU is valid for so many of its intervals, times two (RFC 8966 appendix B).
const IHU_HOLD_HALVES: u32 = 7;
/// Streams with an interval below this tell of failures faster than the multicast Hellos do.
const FAST: Duration = Duration::from_secs(1);
/// After so many halves of a fast Hello's interval without any traffic other ways are prepared.
const SUSPICIOUS_HALVES: u32 = 5;
/// Fast unicast Hellos that still follow when nobody needs them any more: with them goes the news.
const LAST_FAST_HELLOS: u8 = 16;
/// Changes of the cost due to round-trip time below this are not followed.
const LEAST_RTT_CHANGE: u16 = 4;

/// Interface and link-local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NeighbourKey {
    pub(crate) interface: InterfaceId,
    pub(crate) address: Ipv6Addr,
}

/// The last Hello with a timestamp, to be echoed in IHUs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    pub(crate) origin: u32,
    pub(crate) receive: u32,
    pub(crate) received: Instant,
}

/// The state of one neighbour.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) multicast: HelloHistory,
    pub(crate) unicast: HelloHistory,
    /// Its Hellos arrive.
    pub(crate) heard: bool,
    /// It was once told that we hear it.
    pub(crate) told: bool,
    /// What it advertises to us, and until when.
    pub(crate) txcost: u16,
    pub(crate) ihu_expires: Option<Instant>,
    pub(crate) rtt: RttEstimator,
    pub(crate) echo: Option<Echo>,
    /// When authenticated traffic of any kind last arrived.
    pub(crate) last_traffic: Instant,
    /// The unicast Hello interval that it wants, as its last IHU said.
    pub(crate) wants_fast: Option<Duration>,
    /// Whether we wait for fast unicast Hellos.
    pub(crate) expects_fast: bool,
    pub(crate) next_fast_hello: Option<Instant>,
    /// Fast Hellos that are still to be sent although nobody wants them.
    pub(crate) last_fast_hellos: u8,
    /// The silence in which other ways were prepared: since when it lasted.
    prepared: Option<Instant>,
    pub(crate) unicast_seqno: Seqno,
    pub(crate) outbox: Outbox,
    /// What its routes cost in addition, and the part of it due to round-trip time.
    pub(crate) cost: u16,
    pub(crate) rtt_cost: u16,
    /// Routes learned from it, selected or not.
    pub(crate) routes: usize,
    pub(crate) selected: usize,
    /// Wildcard requests still to be sent as long as it announced nothing.
    pub(crate) requests_left: u8,
    pub(crate) next_request: Option<Instant>,
    /// The search for the path MTU.
    pub(crate) probe: Option<Probe>,
    /// When its last wildcard request was answered.
    pub(crate) last_dump: Option<Instant>,
}

impl Neighbour {
    pub(crate) fn new(unicast_seqno: Seqno, now: Instant) -> Self {
        Self {
            multicast: HelloHistory::default(),
            unicast: HelloHistory::default(),
            heard: false,
            told: false,
            txcost: INFINITY,
            ihu_expires: None,
            rtt: RttEstimator::default(),
            echo: None,
            last_traffic: now,
            wants_fast: None,
            expects_fast: false,
            next_fast_hello: None,
            last_fast_hellos: 0,
            prepared: None,
            unicast_seqno,
            outbox: Outbox::default(),
            cost: INFINITY,
            rtt_cost: 0,
            routes: 0,
            selected: 0,
            requests_left: 0,
            next_request: None,
            probe: None,
            last_dump: None,
        }
    }

    /// Reachable both ways.
    pub(crate) const fn is_up(&self) -> bool {
        self.cost < INFINITY
    }

    /// Percent of its Hellos that do not arrive.
    pub(crate) fn loss_percent(&self) -> u8 {
        let unicast = self.unicast.loss_percent(false).filter(|_| self.has_fast_hellos());
        unicast.or_else(|| self.multicast.loss_percent(true)).unwrap_or(0)
    }

    /// How many Hellos in a row may be missing, given the loss before them.
    fn tolerated_misses(&self) -> u32 {
        let unicast = self.unicast.loss_before_silence(false).filter(|_| self.has_fast_hellos());
        let loss = unicast.or_else(|| self.multicast.loss_before_silence(true));
        tolerated_misses(loss.unwrap_or(0))
    }

    //= RFC 8966 §3.4.3
    /// The cost of receiving from it, to be advertised.
    pub(crate) fn rxcost(&self, map: &CostMap) -> u16 {
        if !self.heard {
            return INFINITY;
        }
        let loss = map.loss_cost_per_percent.saturating_mul(u16::from(self.loss_percent()));
        map.rxcost.saturating_add(loss).min(INFINITY - 1)
    }

    /// Computes the cost of its routes anew. Returns whether it changed.
    pub(crate) fn update_cost(&mut self, map: &CostMap) -> bool {
        let rtt_cost = self.rtt.rtt().map_or(0, |rtt| map.rtt_cost(rtt));
        // Noise below a millisecond moves nothing.
        if rtt_cost.abs_diff(self.rtt_cost) >= LEAST_RTT_CHANGE || !self.is_up() {
            self.rtt_cost = rtt_cost;
        }
        let cost = if self.heard && self.txcost < INFINITY {
            // Zero would let a route come back from where it was announced to.
            self.txcost.saturating_add(self.rtt_cost).clamp(1, INFINITY - 1)
        } else {
            INFINITY
        };
        std::mem::replace(&mut self.cost, cost) != cost
    }

    /// Takes an IHU.
    pub(crate) fn hear_ihu(&mut self, rxcost: u16, interval: Duration, received: Instant) {
        self.txcost = rxcost;
        self.ihu_expires = Some(received + interval * IHU_HOLD_HALVES / 2);
    }

    /// When it is dead if nothing more arrives.
    ///
    /// Any stream of scheduled Hellos keeps it alive. If fast unicast Hellos are due and came, it is also dead when
    /// they and all other traffic are missing.
    pub(crate) fn dead_at(&self) -> Option<Instant> {
        if !self.heard {
            return None;
        }
        let missing = self.tolerated_misses();
        let slow = self.multicast.dead_at(missing).max(self.unicast.dead_at(missing));
        if !self.has_fast_hellos() {
            return slow;
        }
        let silence = self.unicast.interval().unwrap_or_default() * (2 * missing + 1) / 2;
        let fast = self.unicast.dead_at(missing).max(Some(self.last_traffic + silence));
        [slow, fast].into_iter().flatten().min()
    }

    /// Since when neither fast Hellos nor other traffic came, and when that begins to look like a failure. `None`
    /// on links that lose packets anyway, and once the silence is known.
    pub(crate) fn suspect_at(&self) -> Option<(Instant, Instant)> {
        if !self.heard || self.tolerated_misses() > tolerated_misses(0) || !self.has_fast_hellos() {
            return None;
        }
        let since = self.unicast.last().max(Some(self.last_traffic))?;
        let interval = self.unicast.interval()?;
        (self.prepared != Some(since)).then_some((since, since + interval * SUSPICIOUS_HALVES / 2))
    }

    /// Notes that other ways were prepared.
    pub(crate) const fn note_suspicion(&mut self, since: Instant) {
        self.prepared = Some(since);
    }

    /// Whether the fast unicast Hellos that we wait for are coming.
    fn has_fast_hellos(&self) -> bool {
        self.expects_fast && self.unicast.interval().is_some_and(|interval| interval < FAST)
    }

    /// Whether we want fast unicast Hellos: to notice at once when what we send over the link gets lost, or to see
    /// whether its round-trip time has changed.
    pub(crate) fn want_fast(&self, now: Instant) -> bool {
        self.selected > 0 || self.rtt.is_examining(now)
    }

    /// Decides anew whether both sides send fast unicast Hellos: one that wants them suffices, as only the other
    /// one notices that what we send gets lost. What a stream has measured is believed until the other knows
    /// better.
    pub(crate) fn update_fast(&mut self, wanted: bool, now: Instant) {
        let active = wanted || self.wants_fast.is_some();
        if active {
            self.last_fast_hellos = LAST_FAST_HELLOS;
            self.next_fast_hello.get_or_insert(now);
        }
        if active == self.expects_fast {
            return;
        }
        if active {
            self.unicast.clear();
            self.multicast.loss_percent(true).into_iter().for_each(|percent| self.unicast.believe(percent));
        } else {
            let measured = self.unicast.loss_percent(false).filter(|_| self.has_fast_hellos());
            measured.into_iter().for_each(|percent| self.multicast.believe(percent));
        }
        self.expects_fast = active;
    }

    /// Its Hellos stopped. They may come back: what was lost before and meanwhile still counts then.
    pub(crate) fn lose(&mut self) {
        self.heard = false;
        self.multicast.fall_silent();
        self.unicast.fall_silent();
        self.rtt.clear();
        self.echo = None;
        self.requests_left = 0;
        self.next_request = None;
        self.probe = None;
    }

    /// Moves all liveness deadlines by the time that our own control loop overslept.
    pub(crate) fn postpone(&mut self, lateness: Duration) {
        self.multicast.postpone(lateness);
        self.unicast.postpone(lateness);
        self.ihu_expires = self.ihu_expires.map(|at| at + lateness);
        self.last_traffic += lateness;
    }
}

/// How many Hellos in a row may be missing at a loss rate, so that chance alone does not kill a neighbour more
/// than once in some hundred thousand Hellos.
const fn tolerated_misses(loss_percent: u8) -> u32 {
    match loss_percent {
        0..=2 => 3,
        3..=6 => 4,
        7..=10 => 5,
        11..=20 => 8,
        21..=30 => 10,
        _ => 12,
    }
}
