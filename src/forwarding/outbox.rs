//! The worker's fixed pool of send buffers and the trains that are built in them.
//!
//! A train grows while packets for one link have one size; it is closed by a shorter packet, by
//! the kernel's limits, or at the end of the turn, and then sent. What a full socket refuses
//! stays here in order, and the worker stops reading the TUN until it is gone.

use super::egress::{Egress, MAX_SEGMENTS, MAX_TRAIN_LEN, Sent, TrainRoute, Transmit};
use super::super_packet::SuperPacket;
use super::{DropReason, LinkPath, SocketIndex};
use esp::{HEADER_LEN, sealed_len};
use srv6::ip::mss;
use srv6::{Encapsulation, FlowSummary};
use std::collections::VecDeque;

/// Send buffers of a worker.
pub(crate) const BUFFERS: usize = 8;

/// Octets of one send buffer.
const BUFFER_LEN: usize = 65_536;

/// The pool.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Buffers that nothing is in.
    free: Vec<Box<[u8]>>,
    /// Trains that may still grow, at most one for each route.
    open: Vec<Train>,
    /// Trains that are complete, in the order of their completion.
    ready: VecDeque<Train>,
}

#[derive(Debug)]
struct Train {
    buffer: Box<[u8]>,
    len: usize,
    /// Octets that have left already.
    done: usize,
    segment: usize,
    count: usize,
    route: TrainRoute,
}

/// The SRv6 envelope of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope<'a> {
    pub(crate) encapsulation: &'a Encapsulation,
    pub(crate) summary: FlowSummary,
    /// The traveller's, for the envelope: it counts the hops of the journey, so that a probe can
    /// expire at each of them, and a packet with few hops left does not get more.
    pub(crate) hop_limit: u8,
}

/// A packet or super-packet with what is done to it on the way into the buffer.
#[derive(Debug)]
pub(crate) struct Parcel<'a> {
    pub(crate) packet: SuperPacket<'a>,
    pub(crate) envelope: Option<Envelope<'a>>,
    /// What ESP carries: 4 or 41.
    pub(crate) next_header: u8,
    /// Lower the MSS of a SYN to what fits this many octets.
    pub(crate) clamp: Option<usize>,
}

/// Where IPv6 has its hop limit.
const HOP_LIMIT_AT: usize = 7;

impl Envelope<'_> {
    fn write(&self, header: &mut [u8], inner: usize) -> Result<(), DropReason> {
        self.encapsulation.write(header, &self.summary, inner).map_err(|_| DropReason::TooBig)?;
        if let Some(field) = header.get_mut(HOP_LIMIT_AT) {
            *field = self.hop_limit;
        }
        Ok(())
    }
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let free = (0..BUFFERS).map(|_| vec![0; BUFFER_LEN].into_boxed_slice()).collect();
        Outbox { free, open: Vec::with_capacity(BUFFERS), ready: VecDeque::with_capacity(BUFFERS) }
    }

    /// Whether trains wait for a socket.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The sockets that trains wait for.
    pub(crate) fn waits_for(&self) -> impl Iterator<Item = SocketIndex> + '_ {
        self.ready.iter().map(|train| train.route.socket)
    }

    /// Whether trains for this socket wait, so that nothing may overtake them.
    pub(crate) fn holds_back(&self, route: &TrainRoute) -> bool {
        self.ready.iter().any(|train| train.route.socket == route.socket)
    }

    /// Seals all segments of a parcel for a link.
    ///
    /// Returns the inner octets. On an error some segments may have been sealed already: their
    /// sequence numbers are spent, and they leave.
    pub(crate) fn append(
        &mut self,
        link: &LinkPath,
        route: TrainRoute,
        parcel: &Parcel<'_>,
        egress: &mut impl Egress,
    ) -> Result<u64, DropReason> {
        let Parcel { packet, envelope, next_header, clamp } = parcel;
        let sa = link.outbound.as_deref().ok_or(DropReason::LinkDown)?;
        let count = u32::try_from(packet.count()).map_err(|_| DropReason::BadOffload)?;
        let sequences = sa.reserve(count).map_err(|_| DropReason::SequenceExhausted)?;
        let outer = envelope.as_ref().map_or(0, |envelope| envelope.encapsulation.header_len());
        let mut bytes = 0u64;
        for (index, sequence) in sequences.enumerate() {
            let inner = packet.segment_len(index);
            let datagram = sealed_len(outer + inner);
            let train = self.train(route, datagram, egress).ok_or(DropReason::EgressFull)?;
            let out = &mut train.buffer[train.len..train.len + datagram];
            let payload = &mut out[HEADER_LEN..HEADER_LEN + outer + inner];
            let (header, body) = payload.split_at_mut(outer);
            packet.write(index, body);
            if let Some(mtu) = *clamp {
                mss::clamp(body, mtu);
            }
            if let Some(envelope) = envelope {
                envelope.write(header, inner)?;
            }
            // Neither length nor SPI can be wrong here; were they, the number is spent and nothing leaves.
            sa.seal(sequence, out, outer + inner, *next_header).map_err(|_| DropReason::TooBig)?;
            train.len += datagram;
            train.count += 1;
            bytes += inner as u64;
            self.close_if_complete(route, datagram, egress);
        }
        Ok(bytes)
    }

    /// Queues a UDP payload that needs no sealing.
    pub(crate) fn push(
        &mut self,
        contents: &[u8],
        segment: usize,
        route: TrainRoute,
        egress: &mut impl Egress,
    ) -> Result<(), DropReason> {
        self.close_route(&route, egress);
        let mut buffer = self.take_buffer(egress).ok_or(DropReason::EgressFull)?;
        let Some(room) = buffer.get_mut(..contents.len()) else {
            self.free.push(buffer);
            return Err(DropReason::TooBig);
        };
        room.copy_from_slice(contents);
        let count = contents.len().div_ceil(segment.max(1));
        self.ready.push_back(Train { buffer, len: contents.len(), done: 0, segment, count, route });
        self.send_ready(egress);
        Ok(())
    }

    /// Closes the open train of a link, so that what is sent next cannot overtake it.
    pub(crate) fn close_route(&mut self, route: &TrainRoute, egress: &mut impl Egress) {
        while let Some(index) = self.open.iter().position(|train| train.route.link == route.link) {
            let train = self.open.remove(index);
            self.ready.push_back(train);
        }
        self.send_ready(egress);
    }

    /// Closes all trains and sends what the sockets take.
    pub(crate) fn flush(&mut self, egress: &mut impl Egress) {
        self.ready.extend(self.open.drain(..));
        self.send_ready(egress);
    }

    /// Sends complete trains, in order for each socket. A full socket holds back its own only.
    pub(crate) fn send_ready(&mut self, egress: &mut impl Egress) {
        let mut index = 0;
        // One bit for each socket; those from 63 on share the last.
        let mut full = 0u64;
        while let Some(train) = self.ready.get_mut(index) {
            let bit = 1 << train.route.socket.0.min(63);
            if full & bit != 0 {
                index += 1;
                continue;
            }
            let contents = &train.buffer[train.done..train.len];
            let transmit = Transmit { contents, segment: train.segment, route: train.route };
            match egress.transmit(&transmit) {
                Sent::Taken => {
                    let sent = self.ready.remove(index);
                    self.free.extend(sent.map(|train| train.buffer));
                }
                Sent::Blocked { done } => {
                    train.done += done;
                    full |= bit;
                    index += 1;
                }
            }
        }
    }

    /// The open train for this route if a datagram of this size fits, or else a new one.
    fn train(&mut self, route: TrainRoute, datagram: usize, egress: &mut impl Egress) -> Option<&mut Train> {
        if datagram > MAX_TRAIN_LEN {
            return None;
        }
        let found = self.open.iter().position(|train| train.route == route);
        let fits = found.is_some_and(|index| {
            let train = &self.open[index];
            datagram <= train.segment && train.len + datagram <= MAX_TRAIN_LEN
        });
        if !fits {
            self.close_route(&route, egress);
            let buffer = self.take_buffer(egress)?;
            self.open.push(Train { buffer, len: 0, done: 0, segment: datagram, count: 0, route });
            return self.open.last_mut();
        }
        self.open.get_mut(found?)
    }

    /// Closes the route's train once nothing can be added behind its last datagram.
    fn close_if_complete(&mut self, route: TrainRoute, last: usize, egress: &mut impl Egress) {
        let complete = self.open.iter().find(|train| train.route == route).is_some_and(|train| {
            last < train.segment || train.count == MAX_SEGMENTS || train.len + train.segment > MAX_TRAIN_LEN
        });
        if complete {
            self.close_route(&route, egress);
        }
    }

    /// A free buffer; if there is none, closes and sends trains to get one.
    fn take_buffer(&mut self, egress: &mut impl Egress) -> Option<Box<[u8]>> {
        if self.free.is_empty() {
            self.flush(egress);
        }
        self.free.pop()
    }
}
