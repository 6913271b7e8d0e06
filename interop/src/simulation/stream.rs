//! Continuous traffic, and what became of it.

use super::journey::Journeys;
use super::packet::Packet;
use super::{NodeId, PacketId};
use std::time::Duration;

/// A stream, as [`Simulation::stream`](super::Simulation::stream) numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(super) usize);

/// Packets at regular intervals.
pub(super) struct Stream {
    pub(super) from: NodeId,
    pub(super) packet: Packet,
    pub(super) interval: Duration,
    pub(super) running: bool,
    pub(super) sent: Vec<PacketId>,
}

/// What became of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamReport {
    /// Packets sent.
    pub sent: usize,
    /// Packets that arrived unharmed, not counting duplicates.
    pub received: usize,
    /// Arrivals of packets that had arrived before.
    pub duplicates: usize,
    /// Arrivals after that of a packet sent later.
    pub reordered: usize,
    /// When the packets were sent that have not arrived: lost, or still under way.
    pub missing: Vec<Duration>,
    /// The longest time between two arrivals.
    pub longest_gap: Duration,
    /// The first packet that arrived: when it was sent, and when it arrived.
    pub first: Option<(Duration, Duration)>,
    /// The last packet that arrived: when it was sent, and when it arrived.
    pub last: Option<(Duration, Duration)>,
}

impl Stream {
    pub(super) fn forget(&mut self) {
        self.sent.clear();
    }

    pub(super) fn report(&self, journeys: &Journeys) -> StreamReport {
        let mut arrivals: Vec<(Duration, usize, Duration)> = Vec::new();
        let mut missing = Vec::new();
        let mut duplicates = 0;
        for (sequence, packet) in self.sent.iter().enumerate() {
            let journey = journeys.get(*packet);
            let mut intact = journey.arrivals.iter().filter(|arrival| arrival.intact);
            match intact.next() {
                Some(first) => arrivals.push((first.at, sequence, journey.sent_at)),
                None => missing.push(journey.sent_at),
            }
            duplicates += intact.count();
        }
        arrivals.sort_unstable();
        let pairs = || arrivals.iter().zip(arrivals.iter().skip(1));
        let ends = |arrival: Option<&(Duration, usize, Duration)>| arrival.map(|(at, _, sent)| (*sent, *at));
        StreamReport {
            sent: self.sent.len(),
            received: arrivals.len(),
            duplicates,
            reordered: pairs().filter(|(before, after)| before.1 > after.1).count(),
            missing,
            longest_gap: pairs().map(|(before, after)| after.0 - before.0).max().unwrap_or_default(),
            first: ends(arrivals.first()),
            last: ends(arrivals.last()),
        }
    }
}
