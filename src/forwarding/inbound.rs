//! From the sockets: datagrams to authenticated inner packets.

use super::egress::Egress;
use super::pipeline::{Pipeline, Turn};
use super::ring::{Heard, LONGEST_STRANGER, Punt, Stranger};
use super::{DropReason, Forwarding, InboundEntry, LinkId, SocketIndex};
use esp::{Accepted, Discard, Encapsulated, Opened, PendingOpen};
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Datagrams of one security association that are opened together.
const BATCH: usize = 64;

/// How long the same link's move is not reported again.
const MOVED_AGAIN: Duration = Duration::from_millis(100);

/// How long no other unknown SPI is reported: a flood of them must not displace IKE messages.
const UNKNOWN_AGAIN: Duration = Duration::from_millis(200);

/// What one receive call returned: datagrams of one size, except a shorter last, from one peer.
#[derive(Debug, Clone)]
pub struct Received {
    /// Where the datagrams stand in the receive buffer.
    pub range: Range<usize>,
    /// Octets of each datagram but the last.
    pub segment: usize,
    /// The socket.
    pub socket: SocketIndex,
    /// The address they were sent to; an unspecified address if unknown.
    pub local: SocketAddr,
    /// Where they came from.
    pub remote: SocketAddr,
    /// The ECN codepoint of the outer header.
    pub ecn: u8,
    /// When the kernel received them.
    pub arrival: Instant,
}

/// An authenticated packet's surroundings.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) link: LinkId,
    /// The datagram in the receive buffer.
    pub(super) datagram: Range<usize>,
    pub(super) ecn: u8,
    pub(super) arrival: Instant,
}

/// Hands up what somebody sent. False if there is no room.
fn hear(turn: &mut Turn<'_, impl Egress>, received: &Received, heard: Heard) -> bool {
    let &Received { socket, local, remote, arrival, .. } = received;
    turn.egress.stranger(Stranger { socket, local, remote, heard, arrival })
}

impl Pipeline {
    /// Everything that a turn received. Nothing refers to the buffer afterwards.
    pub fn receive(&mut self, turn: &mut Turn<'_, impl Egress>, buffer: &mut [u8], batch: &[Received]) {
        // A decision is good for one snapshot only.
        self.memo = None;
        for received in batch {
            let datagrams = received.range.len().div_ceil(received.segment.max(1));
            self.counters.received.add(datagrams as u64, received.range.len() as u64);
            self.receive_one(turn, buffer, received);
        }
        self.send_run(turn, buffer);
        self.coalescer.flush(buffer, turn.egress);
        self.count_written();
        self.outbox.flush(turn.egress);
    }

    fn receive_one(&mut self, turn: &mut Turn<'_, impl Egress>, buffer: &mut [u8], received: &Received) {
        let marker = esp::uses_marker(received.local.port(), received.remote.port());
        let mut at = received.range.start;
        while at < received.range.end {
            let end = received.range.end.min(at + received.segment.max(1));
            match esp::demultiplex(&buffer[at..end], marker) {
                Encapsulated::Esp { spi } => {
                    at = self.receive_esp(turn, buffer, received, at, spi);
                    continue;
                }
                Encapsulated::Ike(message) => self.stranger(turn, received, message),
                Encapsulated::Keepalive => self.counters.keepalives.add(1),
                Encapsulated::Runt => self.drop(DropReason::Runt, 1),
            }
            at = end;
        }
    }

    fn stranger(&mut self, turn: &mut Turn<'_, impl Egress>, received: &Received, message: &[u8]) {
        if message.len() > LONGEST_STRANGER {
            return self.drop(DropReason::StrangerTooLong, 1);
        }
        if !hear(turn, received, Heard::Ike(message.to_vec())) {
            self.drop(DropReason::StrangerRingFull, 1);
        }
    }

    /// The peer of an SA that is gone here learns of it sooner if the control plane says so.
    fn unknown_spi(&mut self, turn: &mut Turn<'_, impl Egress>, received: &Received, spi: u32) {
        if self.unknown_spi.is_none_or(|last| received.arrival >= last + UNKNOWN_AGAIN) {
            self.unknown_spi = Some(received.arrival);
            // The packet is counted already, and where the ring is full there is more important news.
            hear(turn, received, Heard::UnknownSpi(spi));
        }
    }

    /// Opens the datagrams from `at` on that have this SPI; returns where they end.
    fn receive_esp(
        &mut self,
        turn: &mut Turn<'_, impl Egress>,
        buffer: &mut [u8],
        received: &Received,
        at: usize,
        spi: u32,
    ) -> usize {
        let batch = same_spi(buffer, received, at, spi);
        let Some(entry) = turn.forwarding.inbound.lookup(spi) else {
            self.drop(DropReason::UnknownSpi, batch.count() as u64);
            self.unknown_spi(turn, received, spi);
            return batch.end;
        };
        let mut accepted = [const { None }; BATCH];
        self.open(turn.forwarding, buffer, &batch, entry, received.arrival, &mut accepted);
        let mut newest = false;
        let (mut packets, mut bytes) = (0, 0);
        for (index, accepted) in accepted.iter().enumerate().take(batch.count()) {
            let Some(accepted) = accepted else { continue };
            newest |= accepted.newest();
            packets += 1;
            bytes += accepted.payload().len() as u64;
            let datagram = batch.datagram(index);
            let payload = datagram.start + accepted.payload().start..datagram.start + accepted.payload().end;
            let arrived =
                Arrived { link: entry.link, datagram, ecn: received.ecn, arrival: received.arrival };
            self.inner(turn, buffer, &arrived, payload, accepted.next_header());
        }
        if let Some(link) = turn.forwarding.link(entry.link) {
            link.counters.received.add(packets, bytes);
            if newest && link.remote != received.remote {
                self.report_move(turn, entry.link, received);
            }
        }
        batch.end
    }

    /// Pre-check under the window's lock, cipher without it, commit under it again.
    fn open(
        &self,
        forwarding: &Forwarding,
        buffer: &mut [u8],
        batch: &Batch,
        entry: &InboundEntry,
        arrival: Instant,
        accepted: &mut [Option<Accepted>; BATCH],
    ) {
        let mut pending: [Option<PendingOpen>; BATCH] = [const { None }; BATCH];
        let mut opened: [Option<Opened>; BATCH] = [const { None }; BATCH];
        let sa = &entry.sa;
        let mut window = sa.batch();
        for (index, slot) in pending.iter_mut().enumerate().take(batch.count()) {
            *slot = self.kept(window.pre_check(&buffer[batch.datagram(index)]));
        }
        drop(window);
        for (index, slot) in opened.iter_mut().enumerate().take(batch.count()) {
            let Some(pending) = &pending[index] else { continue };
            *slot = self.kept(sa.open(pending, &mut buffer[batch.datagram(index)]));
        }
        let millis = forwarding.millis(arrival);
        let mut window = sa.batch();
        for (slot, opened) in accepted.iter_mut().zip(opened).take(batch.count()) {
            let Some(opened) = opened else { continue };
            *slot = self.kept(window.commit(opened, millis));
        }
    }

    fn kept<T>(&self, result: Result<T, Discard>) -> Option<T> {
        result.map_err(|discard| self.drop(reason(discard), 1)).ok()
    }

    /// The newest authentic datagram came from elsewhere: the control plane decides whether to follow.
    //= RFC 7296 §2.23
    fn report_move(&mut self, turn: &mut Turn<'_, impl Egress>, link: LinkId, received: &Received) {
        let &Received { socket, local, remote, arrival, .. } = received;
        let known = self.moved.is_some_and(|(moved, when)| {
            moved == link && arrival.saturating_duration_since(when) < MOVED_AGAIN
        });
        if !known {
            self.moved = Some((link, arrival));
            turn.egress.punt(Punt::PeerMoved { link, socket, local: local.ip(), remote, arrival });
        }
    }
}

/// Datagrams of one size, except a shorter last, and one SPI.
struct Batch {
    start: usize,
    end: usize,
    segment: usize,
}

impl Batch {
    fn count(&self) -> usize {
        (self.end - self.start).div_ceil(self.segment)
    }

    fn datagram(&self, index: usize) -> Range<usize> {
        let start = self.start + index * self.segment;
        start..self.end.min(start + self.segment)
    }
}

/// The datagrams from `at` on that have this SPI, at most [`BATCH`].
fn same_spi(buffer: &[u8], received: &Received, at: usize, spi: u32) -> Batch {
    let segment = received.segment.max(1);
    let spi = spi.to_be_bytes();
    let mut end = received.range.end.min(at + segment);
    let limit = received.range.end.min(at + segment * BATCH);
    while end < limit && buffer[end..limit].starts_with(&spi) {
        end = limit.min(end + segment);
    }
    Batch { start: at, end, segment }
}

fn reason(discard: Discard) -> DropReason {
    match discard {
        Discard::TooShort | Discard::Misaligned => DropReason::EspTooShort,
        Discard::WrongSpi => DropReason::UnknownSpi,
        Discard::Replayed => DropReason::Replayed,
        Discard::OutsideWindow => DropReason::OutsideWindow,
        Discard::IntegrityFailure => DropReason::IntegrityFailure,
        Discard::BadPadding => DropReason::BadPadding,
        Discard::Dummy => DropReason::Dummy,
        Discard::SequenceExhausted => DropReason::SequenceExhausted,
    }
}
