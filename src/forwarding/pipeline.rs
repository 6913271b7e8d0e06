//! The state that one worker carries from packet to packet, and the turns it takes.

use super::coalesce::{Coalescer, Offload, Written};
use super::egress::{Egress, TrainRoute};
use super::icmp::ErrorLimit;
use super::outbox::Outbox;
use super::relay_run::RelayRun;
use super::ring::Down;
use super::{Decision, DropReason, Forwarding, LinkId, LinkPath, SocketIndex, WorkerCounters};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The data path of one worker.
///
/// ```text
/// TUN  → from_tun → …  → finish → trains to the sockets
/// UDP  → receive        (relay, TUN and punts; finishes itself)
/// ring → from_control → … → finish
/// ```
#[derive(Debug)]
pub struct Pipeline {
    pub(super) outbox: Outbox,
    pub(super) coalescer: Coalescer,
    pub(super) run: Option<RelayRun>,
    pub(super) memo: Option<Memo>,
    pub(super) errors: ErrorLimit,
    pub(super) counters: Arc<WorkerCounters>,
    pub(super) scratch: Box<[u8]>,
    /// The link whose peer was last reported to have moved, and when: one report is enough.
    pub(super) moved: Option<(LinkId, Instant)>,
    /// When an unknown SPI was last reported.
    pub(super) unknown_spi: Option<Instant>,
}

/// What one turn works with: the snapshot of its beginning, its time, and the way out.
pub struct Turn<'a, E> {
    /// The snapshot.
    pub forwarding: &'a Forwarding,
    /// The time of the turn.
    pub now: Instant,
    /// Takes what is emitted.
    pub egress: &'a mut E,
}

/// The last decision about a packet from a link: the packets of a batch have few flows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memo {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) link: LinkId,
    pub(super) decision: Decision,
}

impl Pipeline {
    /// A pipeline that writes what the TUN takes and counts into `counters`.
    pub fn new(offload: Offload, counters: Arc<WorkerCounters>, now: Instant) -> Self {
        Pipeline {
            outbox: Outbox::new(),
            coalescer: Coalescer::new(offload),
            run: None,
            memo: None,
            errors: ErrorLimit::new(now),
            counters,
            scratch: vec![0; 65_536].into_boxed_slice(),
            moved: None,
            unknown_spi: None,
        }
    }

    /// The counters of this worker.
    pub fn counters(&self) -> &Arc<WorkerCounters> {
        &self.counters
    }

    /// Whether trains wait for a socket: then the TUN is not to be read.
    pub fn is_blocked(&self) -> bool {
        self.outbox.is_blocked()
    }

    /// The sockets that trains wait for, possibly several times.
    pub fn waits_for(&self) -> impl Iterator<Item = SocketIndex> + '_ {
        self.outbox.waits_for()
    }

    /// Sends what was built and what had been refused before.
    pub fn finish(&mut self, turn: &mut Turn<'_, impl Egress>) {
        self.outbox.flush(turn.egress);
    }

    /// Does what the control plane asks.
    pub fn from_control(&mut self, turn: &mut Turn<'_, impl Egress>, down: Down) {
        match down {
            Down::Control { link, packet } => self.send_plain(turn, link, &packet),
            Down::Inject { packet } => self.packet_from_tun(turn, &packet),
            Down::Originate { packet } => self.originate(turn, &packet),
            Down::Deliver { packet } => self.deliver_copy(turn, &packet),
            Down::Datagram { socket, local, remote, payload } => {
                let route =
                    TrainRoute { link: None, socket, local, remote, ecn: 0, fragment: false, single: false };
                if let Err(reason) = self.outbox.push(&payload, payload.len(), route, turn.egress) {
                    self.drop(reason, 1);
                }
            }
        }
    }

    /// How datagrams of a link leave now.
    pub(super) fn train_route(forwarding: &Forwarding, link: &LinkPath, ecn: u8, now: Instant) -> TrainRoute {
        let single_until = link.counters.single_until_millis.load(Relaxed);
        TrainRoute {
            link: Some(link.id),
            socket: link.socket,
            local: link.local,
            remote: link.remote,
            ecn,
            fragment: link.fragment_outer,
            single: single_until != 0 && forwarding.millis(now) < single_until,
        }
    }

    pub(super) fn drop(&self, reason: DropReason, packets: u64) {
        self.counters.drops.add(reason, packets);
    }

    /// Moves what the coalescer wrote to the counters.
    pub(super) fn count_written(&mut self) {
        let written = std::mem::take(&mut self.coalescer.written);
        let Written { packets, bytes, writes, refused, offload_refused } = written;
        self.counters.tun_written.add(packets, bytes);
        self.counters.tun_writes.add(writes);
        self.counters.tun_offload_refused.add(offload_refused);
        if refused > 0 {
            self.drop(DropReason::TunRefused, refused);
        }
    }
}
