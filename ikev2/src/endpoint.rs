//! One per node: finds the IKE SA of a datagram, admits strangers, dials, and keeps the deadlines.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use rand_chacha::ChaCha20Rng;

use crate::admission::{Admission, Verdict, stateless_response};
use crate::config::{Config, ConnectionConfig, ConnectionId, Path, Timers};
use crate::connection::{Connection, Dial};
use crate::deadlines::Deadlines;
use crate::error::{Misuse, Unsupported};
use crate::event::{ChildDownReason, Event, IkeDownReason, IkeSaReport, Rejection};
use crate::exchange::{Pending, ike_sa_init};
use crate::ike_sa::{IkeSa, Phase, Want};
use crate::inbound;
use crate::lost_state::Budgets;
use crate::request_window::Arrival;
use crate::shared::{Action, Shared};
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Header, Notify};

/// All IKE SAs of a node. See the crate documentation for how to drive it.
pub struct Endpoint {
    pub(crate) shared: Shared,
    /// By local SPI.
    pub(crate) sas: BTreeMap<u64, IkeSa>,
    admission: Admission,
    /// Source and initiator SPI of strangers' first messages, to recognise repeated ones.
    first_messages: BTreeMap<(SocketAddr, u64), u64>,
    deadlines: Deadlines,
    pub(crate) budgets: Budgets,
    stopped: bool,
}

impl Endpoint {
    /// An endpoint without connections. All randomness comes from `rng`.
    pub fn new(config: Config, rng: ChaCha20Rng) -> Self {
        let mut shared = Shared::new(config, rng);
        let admission = Admission::new(&mut shared);
        Self {
            shared,
            sas: BTreeMap::new(),
            admission,
            first_messages: BTreeMap::new(),
            deadlines: Deadlines::default(),
            budgets: Budgets::default(),
            stopped: false,
        }
    }

    /// Adds a connection, or changes it. SAs stay unless identities changed, or what the peer authenticated itself
    /// with is no longer trusted; then they are deleted. Dials if so configured.
    pub fn set_connection(&mut self, id: ConnectionId, config: ConnectionConfig, now: Instant) {
        let key = (config.remote_id.clone(), config.local_id.clone());
        let fits = self.shared.connections.get(&id).is_some_and(|entry| {
            entry.config.local_id == config.local_id
                && entry.config.remote_id == config.remote_id
                && entry.config.pre_shared_key == config.pre_shared_key
        });
        if fits {
            if let Some(entry) = self.shared.connections.get_mut(&id) {
                entry.config = config;
            }
            self.cut_untrusted(id, now);
        } else {
            self.remove_connection(id, now);
            self.shared.connections.insert(id, Connection::new(config));
            self.shared.by_identities.entry(key).or_default().insert(id);
        }
        self.dial_if_idle(id, now);
        self.settle(now);
    }

    /// Changes the intervals. What waits already goes on with those that it began with.
    pub fn set_timers(&mut self, timers: Timers) {
        self.shared.config.timers = timers;
    }

    /// The intervals in force.
    pub fn timers(&self) -> &Timers {
        &self.shared.config.timers
    }

    /// Forgets a connection and deletes its SAs at the peer.
    pub fn remove_connection(&mut self, id: ConnectionId, now: Instant) {
        let ours = self.sas.iter().filter(|(_, sa)| sa.connection == Some(id));
        let spis: Vec<u64> = ours.map(|(spi, _)| *spi).collect();
        for spi in spis {
            self.close_now(spi, IkeDownReason::ClosedByUs, now);
        }
        self.settle(now);
        let Some(entry) = self.shared.connections.remove(&id) else { return };
        let key = (entry.config.remote_id, entry.config.local_id);
        if let Some(ids) = self.shared.by_identities.get_mut(&key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.shared.by_identities.remove(&key);
            }
        }
    }

    /// Dials now, unless an SA lives or an attempt is under way.
    ///
    /// # Errors
    /// [`Misuse`] if there is no such connection or it has no remote address.
    pub fn dial(&mut self, id: ConnectionId, now: Instant) -> Result<(), Misuse> {
        let entry = self.shared.connections.get(&id).ok_or(Misuse::UnknownConnection)?;
        if entry.config.remote_address.is_none() {
            return Err(Misuse::NoRemoteAddress);
        }
        if entry.established.is_empty() && !matches!(entry.dial, Dial::Attempt(_)) {
            self.attempt(id, now);
        }
        self.settle(now);
        Ok(())
    }

    /// The peer's address changed by configuration or name resolution; used from the next dial on. A
    /// connection that waits to dial, or whose attempt is unanswered, is dialled there at once.
    pub fn readdress(&mut self, id: ConnectionId, remote: Option<SocketAddr>, now: Instant) {
        let Some(entry) = self.shared.connections.get_mut(&id) else { return };
        if entry.config.remote_address == remote {
            return;
        }
        entry.config.remote_address = remote;
        if let Dial::Attempt(spi) = entry.dial {
            self.drop_silently(spi);
        }
        if let Some(entry) = self.shared.connections.get_mut(&id) {
            entry.dial = Dial::Idle;
        }
        self.dial_if_idle(id, now);
        self.settle(now);
    }

    /// An IKE message arrived; the non-ESP marker is stripped already.
    pub fn handle_datagram(&mut self, path: Path, datagram: &[u8], now: Instant) {
        match Header::decode(datagram) {
            Ok(header) if header.major_version != 2 => self.refuse_version(path, &header, now),
            Ok(header) => self.dispatch(path, &header, datagram, now),
            Err(malformed) => self.shared.reject(path, Rejection::Malformed(malformed), now),
        }
        self.settle(now);
    }

    fn dispatch(&mut self, path: Path, header: &Header, datagram: &[u8], now: Instant) {
        if header.exchange() == Ok(ExchangeType::IkeSaInit) && !header.response {
            return self.handle_first_message(path, header, datagram, now);
        }
        //= RFC 7296 §2.6: the SPI that the receiver chose identifies the SA.
        let (local, remote) =
            if header.initiator { (header.spi_r, header.spi_i) } else { (header.spi_i, header.spi_r) };
        let first_response = header.exchange() == Ok(ExchangeType::IkeSaInit);
        match self.sas.get_mut(&local).filter(|sa| sa.remote_spi == remote || first_response) {
            Some(sa) => {
                inbound::handle(sa, &mut self.shared, path, header, datagram, now);
                self.deadlines.touch(local);
            }
            //= RFC 7296 §2.21.4: a message that no SA fits causes no change.
            None => {
                self.handle_stray(path, header, datagram, now);
                self.shared.reject(path, Rejection::UnknownSpi, now);
            }
        }
    }

    fn handle_first_message(&mut self, path: Path, header: &Header, datagram: &[u8], now: Instant) {
        if let Some(sa) =
            self.first_messages.get(&(path.remote, header.spi_i)).and_then(|spi| self.sas.get(spi))
        {
            //= RFC 7296 §2.1: the same request gets the same response, not another SA.
            if let Arrival::Repeat(datagrams) = sa.window.arrival(0, datagram) {
                self.shared.transmit(path, &datagrams);
            }
            return;
        }
        if self.stopped {
            return;
        }
        match self.admission.check(&mut self.shared, path, *header, datagram, now) {
            Verdict::Admit(admitted) => {
                let Some(mut sa) = ike_sa_init::respond(*admitted, &mut self.shared, now) else { return };
                sa.admission = Some(self.admission.enter(path.remote.ip()));
                self.first_messages.insert((path.remote, header.spi_i), sa.local_spi);
                self.insert(sa);
            }
            Verdict::Challenge(cookie) => {
                let response = stateless_response(header, Notify::new(notify::COOKIE, cookie));
                self.shared.transmit(path, &[response]);
            }
            Verdict::Refuse(notify, reason) => {
                self.shared.transmit(path, &[stateless_response(header, notify)]);
                self.shared.reject(path, reason, now);
            }
            Verdict::Drop(reason) => self.shared.reject(path, reason, now),
        }
    }

    //= RFC 7296 §2.5: a higher major version is answered with INVALID_MAJOR_VERSION, same exchange and ID.
    fn refuse_version(&mut self, path: Path, header: &Header, now: Instant) {
        let reason = Rejection::Unsupported(Unsupported::MajorVersion(header.major_version));
        if header.major_version > 2 && !header.response {
            let response = stateless_response(header, Notify::new(notify::INVALID_MAJOR_VERSION, vec![]));
            self.shared.transmit(path, &[response]);
        }
        self.shared.reject(path, reason, now);
    }

    /// A deadline of [`Self::poll_timeout`] passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        for spi in self.deadlines.due(now) {
            self.handle_sa_timeout(spi, now);
        }
        self.shared.reap_retired(now);
        let due = |entry: &Connection| matches!(entry.dial, Dial::Waiting(at) if at <= now);
        let waiting: Vec<ConnectionId> =
            self.shared.connections.iter().filter(|(_, entry)| due(entry)).map(|(id, _)| *id).collect();
        for id in waiting {
            self.attempt(id, now);
        }
        self.settle(now);
    }

    fn handle_sa_timeout(&mut self, spi: u64, now: Instant) {
        let Some(sa) = self.sas.get_mut(&spi) else { return };
        let half_open = self.shared.config.timers.half_open;
        let expired = match sa.phase {
            Phase::Closed { until } => until <= now,
            Phase::HalfOpen(_) => sa.began + half_open <= now,
            _ => false,
        };
        if expired {
            self.drop_silently(spi);
        } else {
            sa.handle_timeout(&mut self.shared, now);
            self.deadlines.touch(spi);
        }
    }

    /// Writes the next datagram (without non-ESP marker) into `buffer`, replacing what is there.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>) -> Option<Path> {
        let (path, datagram) = self.shared.transmits.pop_front()?;
        *buffer = datagram;
        Some(path)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.pop_front()
    }

    /// When [`Self::handle_timeout`] wants to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let retired = self.shared.retired.iter().map(|retired| (retired.until, "stragglers")).min();
        let dial = self.shared.connections.values().filter_map(|entry| match entry.dial {
            Dial::Waiting(at) => Some((at, "dial")),
            Dial::Idle | Dial::Attempt(_) => None,
        });
        [self.deadlines.next(), retired, dial.min()].into_iter().flatten().min()
    }

    /// Authenticated ESP arrived on this link: proof of liveness.
    pub fn authenticated_inbound(&mut self, id: ConnectionId, now: Instant) {
        let Some(entry) = self.shared.connections.get(&id) else { return };
        for spi in &entry.established {
            if let Some(sa) = self.sas.get_mut(spi) {
                sa.last_inbound = now;
                // The deadline is looked at again when it passes; nothing is re-sorted per packet.
            }
        }
    }

    /// Authenticated ESP arrived on this inbound SPI for the first time: the peer has the SA.
    pub fn child_confirmed(&mut self, spi_in: u32, now: Instant) {
        let sa = self.sas.values_mut().find(|sa| sa.has_child(spi_in));
        if let Some(sa) = sa {
            let spi = sa.local_spi;
            sa.confirm_child(&mut self.shared, spi_in);
            self.deadlines.touch(spi);
        }
        self.settle(now);
    }

    /// The newest authenticated ESP of this link came from another address.
    //= RFC 7296 §2.23, RFC 3948 §5
    pub fn peer_moved(&mut self, id: ConnectionId, path: Path, now: Instant) {
        let mut moved = false;
        for sa in self.sas.values_mut().filter(|sa| sa.connection == Some(id) && sa.is_established()) {
            if sa.peer.nat.remote && sa.path != path {
                sa.path = path;
                moved = true;
            }
        }
        if moved {
            self.shared.events.push_back(Event::PathChanged { connection: id, path });
        }
        self.settle(now);
    }

    /// A CHILD SA carried so many packets or octets that it must be rekeyed.
    pub fn rekey_child(&mut self, spi_in: u32, now: Instant) {
        let sa = self.sas.values_mut().find(|sa| sa.has_child(spi_in));
        if let Some(sa) = sa {
            sa.want(Want::RekeyChild { spi_in }, None);
            self.deadlines.touch(sa.local_spi);
        }
        self.settle(now);
    }

    /// Asks for another CHILD SA on the newest IKE SA of a connection (one per worker, RFC 9611).
    pub fn create_child(&mut self, id: ConnectionId, now: Instant) {
        let newest = self.shared.connections.get(&id).and_then(|entry| entry.established.last().copied());
        if let Some(sa) = newest.and_then(|spi| self.sas.get_mut(&spi)) {
            sa.want(Want::FurtherChild, None);
            self.deadlines.touch(sa.local_spi);
        }
        self.settle(now);
    }

    /// Deletes a CHILD SA at the peer. A link that is dialled gets a new one later.
    pub fn delete_child(&mut self, spi_in: u32, now: Instant) {
        if let Some(sa) = self.sas.values_mut().find(|sa| sa.has_child(spi_in)) {
            sa.delete_child(&mut self.shared, spi_in, ChildDownReason::DeletedByUs);
            self.deadlines.touch(sa.local_spi);
        }
        self.settle(now);
    }

    /// Rekeys the IKE SAs of a connection now.
    pub fn rekey_ike(&mut self, id: ConnectionId, now: Instant) {
        for sa in self.sas.values_mut().filter(|sa| sa.connection == Some(id) && sa.is_established()) {
            sa.want(Want::RekeyIke, None);
            self.deadlines.touch(sa.local_spi);
        }
        self.settle(now);
    }

    /// Deletes all SAs at the peers and dials no more.
    pub fn shutdown(&mut self, now: Instant) {
        self.stopped = true;
        for entry in self.shared.connections.values_mut() {
            entry.dial = Dial::Idle;
            entry.config.dial = false;
        }
        let spis: Vec<u64> = self.sas.keys().copied().collect();
        for spi in spis {
            self.close_now(spi, IkeDownReason::ClosedByUs, now);
        }
        self.settle(now);
    }

    /// All IKE SAs with their CHILD SAs.
    pub fn associations(&self) -> Vec<IkeSaReport> {
        let alive = self.sas.values().filter(|sa| !sa.is_closed());
        let remote_id = |sa: &IkeSa| {
            let entry = sa.connection.and_then(|id| self.shared.connections.get(&id));
            entry.map(|entry| entry.config.remote_id.clone())
        };
        alive.map(|sa| sa.report(remote_id(sa))).collect()
    }

    /// Starts a dial attempt.
    pub(crate) fn attempt(&mut self, id: ConnectionId, now: Instant) {
        let sa = if self.stopped { None } else { ike_sa_init::initiate(&mut self.shared, id, now) };
        if let Some(entry) = self.shared.connections.get_mut(&id) {
            entry.dial = sa.as_ref().map_or(Dial::Idle, |sa| Dial::Attempt(sa.local_spi));
        }
        if let Some(sa) = sa {
            self.insert(sa);
        }
    }

    fn dial_if_idle(&mut self, id: ConnectionId, now: Instant) {
        let idle = self.shared.connections.get(&id).is_some_and(|entry| {
            entry.config.dial && entry.established.is_empty() && entry.dial == Dial::Idle
        });
        if idle {
            self.attempt(id, now);
        }
    }

    pub(crate) fn insert(&mut self, sa: IkeSa) {
        self.deadlines.touch(sa.local_spi);
        self.sas.insert(sa.local_spi, sa);
    }

    /// Removes an IKE SA without a word to the peer. Its CHILD SAs must be gone already.
    pub(crate) fn drop_silently(&mut self, spi: u64) {
        self.deadlines.forget(spi);
        if let Some(mut sa) = self.sas.remove(&spi) {
            sa.release_pending(&mut self.shared);
            self.first_messages.retain(|_, local| *local != spi);
            if let Some(ticket) = &sa.admission {
                self.admission.leave(ticket);
            }
        }
    }

    /// Deletes an established IKE SA at the peer, even while a request is outstanding; forgets others.
    pub(crate) fn close_now(&mut self, spi: u64, reason: IkeDownReason, now: Instant) {
        let Some(sa) = self.sas.get_mut(&spi) else { return };
        match sa.phase {
            Phase::Established | Phase::Closing => {
                let deleting = matches!(sa.pending, Some(Pending::DeleteIke(_)));
                if !deleting {
                    sa.close_children(&mut self.shared, reason, now);
                    sa.force_delete(&mut self.shared, reason, now);
                }
                self.deadlines.touch(spi);
            }
            Phase::Closed { .. } => {}
            Phase::Initiating | Phase::HalfOpen(_) | Phase::Replaced { .. } => {
                sa.close(&mut self.shared, reason, now);
                self.drop_silently(spi);
            }
        }
    }

    /// Does what IKE SAs asked for, lets them start what they may, and updates the deadlines.
    pub(crate) fn settle(&mut self, now: Instant) {
        loop {
            while let Some(action) = self.shared.actions.pop_front() {
                self.perform(action, now);
            }
            let touched = self.deadlines.take_touched();
            if touched.is_empty() {
                break;
            }
            for spi in touched {
                self.refresh(spi, now);
            }
        }
    }

    fn refresh(&mut self, spi: u64, now: Instant) {
        let Some(sa) = self.sas.get_mut(&spi) else { return };
        sa.pump(&mut self.shared, now);
        if !sa.is_half_open()
            && let Some(ticket) = sa.admission.take()
        {
            self.admission.leave(&ticket);
        }
        let timers = &self.shared.config.timers;
        self.deadlines.set(spi, sa.deadline(timers.liveness, timers.half_open));
    }

    fn perform(&mut self, action: Action, now: Instant) {
        match action {
            Action::Insert(sa) => self.insert(*sa),
            Action::Adopt { connection, into, spis, children, tasks } => match self.sas.get_mut(&into) {
                Some(sa) if !sa.is_closed() => {
                    sa.inherit(children, tasks, now + self.shared.config.timers.ike_rekey);
                    self.deadlines.touch(into);
                }
                // The heir died before it inherited, so the link is down.
                _ => self.bury(connection, (into, spis), children, now),
            },
            Action::Established { spi, connection, initial_contact } => {
                self.established(spi, connection, initial_contact, now);
            }
            Action::Replaced { connection, old, new } => {
                if let Some(entry) = self.shared.connections.get_mut(&connection) {
                    entry.established.iter_mut().filter(|spi| **spi == old).for_each(|spi| *spi = new);
                }
            }
            Action::Confirm { spi } => {
                if let Some(sa) = self.sas.get_mut(&spi) {
                    sa.confirm(&mut self.shared);
                    self.deadlines.touch(spi);
                }
            }
            Action::Gone { connection, spi, reason } => self.gone(connection, spi, reason, now),
            Action::CloseRedundant { spi } => self.close_redundant(spi),
            Action::AttemptFailed { connection, spi } => {
                let Shared { connections, config, rng, .. } = &mut self.shared;
                if let Some(entry) = connections.get_mut(&connection)
                    && entry.dial == Dial::Attempt(spi)
                {
                    entry.schedule_dial(&config.timers, rng, now);
                }
            }
        }
    }

    pub(crate) fn touch(&mut self, spi: u64) {
        self.deadlines.touch(spi);
    }
}
