//! Relayed packets that leave from the receive buffer, without a copy.
//!
//! An ESP datagram has headers of one size in and out, so the packet of a received datagram can
//! be sealed again where it stands. A run of such datagrams, one behind the other and of one
//! size, is one send.

use super::egress::{Egress, MAX_SEGMENTS, MAX_TRAIN_LEN, Sent, TrainRoute, Transmit};
use super::outbox::Outbox;
use super::{DropReason, LinkPath};
use esp::{HEADER_LEN, OutboundSa, sealed_len};
use std::ops::Range;
use std::sync::Arc;

/// A run that is still growing. Nothing of it is sealed yet.
#[derive(Debug)]
pub(crate) struct RelayRun {
    sa: Arc<OutboundSa>,
    pub(crate) route: TrainRoute,
    /// Where the first datagram begins.
    start: usize,
    /// Octets of each datagram but the last.
    stride: usize,
    /// Octets of all datagrams.
    len: usize,
    payloads: [(u16, u8); MAX_SEGMENTS],
    count: usize,
    bytes: u64,
}

/// A packet that could be part of a run.
#[derive(Debug, Clone)]
pub(crate) struct InPlace {
    /// The inner packet in the receive buffer.
    pub(crate) packet: Range<usize>,
    /// 4 or 41.
    pub(crate) next_header: u8,
}

impl InPlace {
    /// Where its datagram begins.
    fn start(&self) -> Option<usize> {
        self.packet.start.checked_sub(HEADER_LEN)
    }

    /// Whether sealing the packet where it stands gives a datagram that fills exactly the place of
    /// the received one.
    pub(crate) fn fits(&self, datagram: &Range<usize>) -> bool {
        self.start() == Some(datagram.start) && sealed_len(self.packet.len()) == datagram.len()
    }
}

impl RelayRun {
    /// A run of one packet that [`fits`](InPlace::fits) its datagram.
    pub(crate) fn begin(link: &LinkPath, route: TrainRoute, packet: &InPlace) -> Option<RelayRun> {
        let sa = Arc::clone(link.outbound.as_ref()?);
        let stride = sealed_len(packet.packet.len());
        let start = packet.start()?;
        let mut run = RelayRun {
            sa,
            route,
            start,
            stride,
            len: 0,
            payloads: [(0, 0); MAX_SEGMENTS],
            count: 0,
            bytes: 0,
        };
        run.add(packet);
        Some(run)
    }

    /// Adds a packet if it directly follows the run; says whether it did.
    pub(crate) fn extend(&mut self, route: &TrainRoute, packet: &InPlace, datagram: &Range<usize>) -> bool {
        let sealed = sealed_len(packet.packet.len());
        let fits = *route == self.route
            && packet.start() == Some(self.start + self.len)
            && self.len == self.count * self.stride
            && sealed <= self.stride
            && sealed <= datagram.len()
            && self.count < MAX_SEGMENTS
            && self.len + sealed <= MAX_TRAIN_LEN;
        if fits {
            self.add(packet);
        }
        fits
    }

    fn add(&mut self, packet: &InPlace) {
        let length = u16::try_from(packet.packet.len()).unwrap_or(u16::MAX);
        self.payloads[self.count] = (length, packet.next_header);
        self.count += 1;
        self.len += sealed_len(packet.packet.len());
        self.bytes += packet.packet.len() as u64;
    }

    /// Seals the run and sends it. Returns packets and inner octets.
    pub(crate) fn send(
        self,
        buffer: &mut [u8],
        outbox: &mut Outbox,
        egress: &mut impl Egress,
    ) -> Result<(u64, u64), (DropReason, u64)> {
        let packets = self.count as u64;
        self.seal(buffer).map_err(|reason| (reason, packets))?;
        let contents = &buffer[self.start..self.start + self.len];
        // Sequence numbers leave in order: what was built before for this link goes first.
        outbox.close_route(&self.route, egress);
        let transmit = Transmit { contents, segment: self.stride, route: self.route };
        let sent = if outbox.holds_back(&self.route) {
            Sent::Blocked { done: 0 }
        } else {
            egress.transmit(&transmit)
        };
        if let Sent::Blocked { done } = sent {
            let rest = contents.get(done..).unwrap_or_default();
            let left = rest.len().div_ceil(self.stride.max(1)) as u64;
            outbox.push(rest, self.stride, self.route, egress).map_err(|reason| (reason, left))?;
        }
        Ok((packets, self.bytes))
    }

    fn seal(&self, buffer: &mut [u8]) -> Result<(), DropReason> {
        let count = u32::try_from(self.count).map_err(|_| DropReason::EgressFull)?;
        let sequences = self.sa.reserve(count).map_err(|_| DropReason::SequenceExhausted)?;
        let mut start = self.start;
        for (sequence, (payload, next_header)) in sequences.zip(self.payloads) {
            let payload = usize::from(payload);
            let datagram = &mut buffer[start..start + sealed_len(payload)];
            self.sa.seal(sequence, datagram, payload, next_header).map_err(|_| DropReason::TooBig)?;
            start += sealed_len(payload);
        }
        Ok(())
    }
}
