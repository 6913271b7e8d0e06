//! The largest packet that a neighbour receives, found with padded packets that ask for an acknowledgment
//! (RFC 8966 §3.3). Any Babel speaker answers them, up to the MTU of its own interface.

use std::time::{Duration, Instant};

use crate::{Event, InterfaceId, Router, neighbour::NeighbourKey};

/// Every IPv6 link carries this.
const LEAST: u16 = 1280;
/// A size is given up after so many packets without an answer.
const TRIES: u8 = 3;
/// The search ends when the result is known this exactly.
const PRECISION: u16 = 8;
/// An answer may take this much longer than a round trip.
pub(crate) const ANSWER_DELAY: Duration = Duration::from_millis(200);
/// The round-trip time assumed as long as none was measured.
const ASSUMED_RTT: Duration = Duration::from_millis(500);

/// A search under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// Known to arrive, or the least size of all.
    low: u16,
    /// Whether a packet of at least the size `low` was answered.
    confirmed: bool,
    /// Not known not to arrive.
    high: u16,
    /// The size being tried.
    pub(crate) size: u16,
    pub(crate) opaque: u16,
    /// When to send the next packet.
    pub(crate) at: Instant,
    /// Packets of this size that may still be sent.
    left: u8,
}

impl Probe {
    fn new(ceiling: u16, opaque: u16, now: Instant) -> Self {
        let high = ceiling.max(LEAST);
        Self { low: LEAST, confirmed: false, high, size: high, opaque, at: now, left: TRIES }
    }

    /// Continues with the next size. `None` if the search is over.
    fn narrow(&mut self, opaque: u16, now: Instant) -> Option<()> {
        if self.high - self.low >= PRECISION {
            self.size = self.low + (self.high - self.low).div_ceil(2);
        } else if !self.confirmed && self.size != LEAST {
            self.size = LEAST;
        } else {
            return None;
        }
        self.opaque = opaque;
        self.left = TRIES;
        self.at = now;
        Some(())
    }

    /// A packet was sent.
    pub(crate) fn sent(&mut self, rtt: Option<Duration>, now: Instant) {
        self.left = self.left.saturating_sub(1);
        self.at = now + rtt.unwrap_or(ASSUMED_RTT) * 5 / 4 + ANSWER_DELAY * 3 / 2;
    }

    /// Whether a packet is due, and not the verdict on those sent.
    pub(crate) const fn may_send(&self) -> bool {
        self.left > 0
    }
}

impl Router {
    /// Searches the largest IPv6 packet (in octets, from 1280 to `ceiling`) that arrives at the neighbours on a
    /// point-to-point interface. `ceiling` must not exceed the MTU of the link itself. The result is an
    /// [`Event::PathMtu`]; a search under way is replaced.
    pub fn probe_path_mtu(&mut self, interface: InterfaceId, ceiling: u16, now: Instant) {
        let opaque = self.random_u16();
        for (_, neighbour) in self.neighbours_on_mut(interface) {
            neighbour.probe = Some(Probe::new(ceiling, opaque, now));
        }
    }

    /// An acknowledgment arrived.
    pub(crate) fn handle_ack(&mut self, key: NeighbourKey, opaque: u16, now: Instant) {
        let next = self.random_u16();
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        let Some(probe) = neighbour.probe.as_mut().filter(|probe| probe.opaque == opaque) else { return };
        probe.low = probe.size;
        probe.confirmed = true;
        if probe.narrow(next, now).is_none() {
            self.finish_probe(key);
        }
    }

    /// No answer came to the last packet of a size.
    pub(crate) fn check_probe(&mut self, key: NeighbourKey, now: Instant) {
        let next = self.random_u16();
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        let Some(probe) = neighbour.probe.as_mut().filter(|probe| probe.at <= now && probe.left == 0) else {
            return;
        };
        probe.high = probe.size.saturating_sub(1).max(probe.low);
        if probe.narrow(next, now).is_none() {
            self.finish_probe(key);
        }
    }

    fn finish_probe(&mut self, key: NeighbourKey) {
        let NeighbourKey { interface, address } = key;
        let probe = self.neighbours.get_mut(&key).and_then(|neighbour| neighbour.probe.take());
        if let Some(Probe { low, confirmed, .. }) = probe {
            let mtu = confirmed.then_some(low);
            self.events.push_back(Event::PathMtu { interface, address, mtu });
        }
    }
}
