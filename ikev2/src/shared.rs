//! What all IKE SAs of an endpoint share: settings, randomness, connections, and the ways out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use crate::child_sa::Child;
use crate::config::{Config, ConnectionId, Path};
use crate::connection::Connection;
use crate::event::{ChildDownReason, Event, IkeDownReason, IkeSpis, Rejection};
use crate::identity::Identity;
use crate::ike_sa::{IkeSa, Task};
use crate::pending_key_exchange::PendingKeyExchange;

/// Rejections reported per second; the rest is only dropped.
const REJECTIONS_PER_SECOND: u32 = 10;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) connections: BTreeMap<ConnectionId, Connection>,
    /// (remote, local) identity to the connections between them.
    pub(crate) by_identities: BTreeMap<(Identity, Identity), BTreeSet<ConnectionId>>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) transmits: VecDeque<(Path, Vec<u8>)>,
    pub(crate) actions: VecDeque<Action>,
    pub(crate) retired: VecDeque<Retired>,
    /// Key exchanges that the driver computes where it likes.
    pub(crate) work: VecDeque<PendingKeyExchange>,
    inbound_spis: BTreeSet<u32>,
    rejections: (Option<Instant>, u32),
}

/// What an IKE SA wants done to the set of IKE SAs.
pub(crate) enum Action {
    /// A rekeyed IKE SA came into being.
    Insert(Box<IkeSa>),
    /// CHILD SAs and waiting tasks move to another IKE SA.
    Adopt { connection: ConnectionId, into: u64, spis: IkeSpis, children: Vec<Child>, tasks: VecDeque<Task> },
    /// An IKE SA became usable for its connection.
    Established { spi: u64, connection: ConnectionId, initial_contact: bool },
    /// An IKE SA took the place of another.
    Replaced { connection: ConnectionId, old: u64, new: u64 },
    /// The peer surely knows this IKE SA.
    Confirm { spi: u64 },
    /// An IKE SA is no longer usable.
    Gone { connection: ConnectionId, spi: u64, reason: IkeDownReason },
    /// Another IKE SA of the link serves in place of this one.
    CloseRedundant { spi: u64 },
    /// A dial attempt ended without an IKE SA.
    AttemptFailed { connection: ConnectionId, spi: u64 },
}

/// A CHILD SA that is deleted but may still receive stragglers.
pub(crate) struct Retired {
    pub(crate) until: Instant,
    pub(crate) connection: ConnectionId,
    pub(crate) spi_in: u32,
    pub(crate) spi_out: u32,
    pub(crate) reason: ChildDownReason,
}

impl Shared {
    pub(crate) fn new(config: Config, rng: ChaCha20Rng) -> Self {
        Self {
            config,
            rng,
            connections: BTreeMap::new(),
            by_identities: BTreeMap::new(),
            events: VecDeque::new(),
            transmits: VecDeque::new(),
            actions: VecDeque::new(),
            retired: VecDeque::new(),
            work: VecDeque::new(),
            inbound_spis: BTreeSet::new(),
            rejections: (None, 0),
        }
    }

    pub(crate) fn transmit(&mut self, path: Path, datagrams: &[Vec<u8>]) {
        self.transmits.extend(datagrams.iter().map(|datagram| (path, datagram.clone())));
    }

    /// Reports a refused datagram unless there were many in this second.
    pub(crate) fn reject(&mut self, path: Path, reason: Rejection, now: Instant) {
        let second_over = self.rejections.0.is_none_or(|start| now >= start + Duration::from_secs(1));
        if second_over {
            self.rejections = (Some(now), 0);
        }
        if self.rejections.1 < REJECTIONS_PER_SECOND {
            self.rejections.1 += 1;
            self.events.push_back(Event::Rejected { path, reason });
        }
    }

    pub(crate) fn nonce(&mut self) -> Vec<u8> {
        let mut nonce = vec![0; 32];
        self.rng.fill_bytes(&mut nonce);
        nonce
    }

    /// A random IKE SPI; zero means "none" on the wire.
    pub(crate) fn ike_spi(&mut self) -> u64 {
        self.rng.next_u64().max(1)
    }

    /// An inbound ESP SPI that no other SA of this node has, for the given worker.
    //= RFC 4303 §2.1: values 1 to 255 are reserved, 0 is for local use.
    pub(crate) fn allocate_inbound_spi(&mut self, worker: u32) -> u32 {
        let workers = self.config.spi_placement.workers.max(1);
        loop {
            let random = self.rng.next_u32();
            let spi = (random - random % workers).saturating_add(worker % workers);
            if spi > 255 && spi % workers == worker % workers && self.inbound_spis.insert(spi) {
                return spi;
            }
        }
    }

    /// An allocated SPI was never or is no longer used.
    pub(crate) fn release_inbound_spi(&mut self, spi: u32) {
        self.inbound_spis.remove(&spi);
    }

    /// The CHILD SA goes out of use: at once if nothing else carries the link, else after stragglers.
    pub(crate) fn retire_child(
        &mut self,
        connection: ConnectionId,
        child: &Child,
        reason: ChildDownReason,
        now: Instant,
    ) {
        let mut until = now;
        if let Some(entry) = self.connections.get_mut(&connection) {
            entry.outbound.remove(child.spi_in);
            if entry.outbound.has_usable() {
                until = now + self.config.timers.inbound_overlap;
            }
        }
        self.choose_outbound(connection);
        let (spi_in, spi_out) = (child.spi_in, child.spi_out);
        self.retired.push_back(Retired { until, connection, spi_in, spi_out, reason });
        self.reap_retired(now);
    }

    pub(crate) fn reap_retired(&mut self, now: Instant) {
        let mut index = 0;
        while let Some(retired) = self.retired.get(index) {
            if retired.until > now {
                index += 1;
                continue;
            }
            let &Retired { connection, spi_in, spi_out, reason, .. } = retired;
            self.retired.remove(index);
            self.release_inbound_spi(spi_in);
            self.events.push_back(Event::ChildDown { connection, spi_in, spi_out, reason });
        }
    }

    /// Tells the driver if another CHILD SA is the one to send on now.
    pub(crate) fn choose_outbound(&mut self, connection: ConnectionId) {
        let Some(entry) = self.connections.get_mut(&connection) else { return };
        if let Some(spi_out) = entry.outbound.choose() {
            self.events.push_back(Event::UseOutbound { connection, spi_out });
        }
    }
}
