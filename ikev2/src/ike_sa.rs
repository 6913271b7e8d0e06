//! One IKE SA: its keys, its request window, its CHILD SAs, and what it wants to do next.
//!
//! Everything that concerns one IKE SA goes through here in one order: a datagram is processed to its end
//! before the next is looked at.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::child_sa::{Child, ChildPhase};
use crate::config::{ConnectionId, Path};
use crate::event::{ChildDownReason, Event, IkeDownReason, IkeSaReport, IkeSpis, KeyLogTable};
use crate::exchange::{self, Following, Pending};
use crate::fragmentation::{Reassembly, seal_message};
use crate::identity::Identity;
use crate::key_schedule::IkeKeys;
use crate::nat_detection::NatStatus;
use crate::proposal::IkeSuite;
use crate::request_window::RequestWindow;
use crate::sealed_payload::PayloadCipher;
use crate::shared::{Action, Shared};
use crate::signature::HashSet;
use crate::wire::{ExchangeType, Header, Payload};

pub(crate) struct IkeSa {
    pub(crate) local_spi: u64,
    /// Zero until the peer chose it.
    pub(crate) remote_spi: u64,
    /// Whether we are the original initiator of this very SA.
    pub(crate) initiator: bool,
    pub(crate) path: Path,
    /// Where the request that is being answered came from.
    pub(crate) arrived_on: Path,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) phase: Phase,
    pub(crate) secured: Option<Secured>,
    pub(crate) window: RequestWindow,
    /// What the outstanding request is about.
    pub(crate) pending: Option<Pending>,
    pub(crate) tasks: VecDeque<Task>,
    pub(crate) children: Vec<Child>,
    pub(crate) peer: PeerFacts,
    pub(crate) began: Instant,
    pub(crate) established: Option<Instant>,
    /// What the peer authenticated itself with; handed on to successors.
    pub(crate) proven: Option<exchange::proof::Proven>,
    pub(crate) rekey_at: Option<Instant>,
    /// When it is deleted although nothing replaced it.
    pub(crate) expire_at: Option<Instant>,
    pub(crate) last_inbound: Instant,
    pub(crate) round_trip: Option<Duration>,
    /// Something authentic came on this very SA, so the peer has had it.
    pub(crate) proved: bool,
    /// Datagrams that wait for the key exchange.
    pub(crate) waiting: Vec<(Path, Vec<u8>)>,
    /// When somebody last said that the peer has lost its state.
    pub(crate) hinted: Option<Instant>,
    /// IKE SAs to close once this one is known to work at both ends.
    pub(crate) supersedes: Vec<u64>,
    /// Refusals in a row, for back-off.
    pub(crate) refusals: u32,
    /// No requests of our own before then: a responder of an IKE rekey waits for the peer to switch.
    pub(crate) hold_until: Option<Instant>,
    /// Fragments of a request and of a response that are not complete yet.
    pub(crate) fragments: (Option<Reassembly>, Option<Reassembly>),
    /// Keys that count once the response on its way has left (IKE_INTERMEDIATE).
    pub(crate) next_secured: Option<Secured>,
    /// A CREATE_CHILD_SA of the peer's that waits for its IKE_FOLLOWUP_KE.
    pub(crate) following: Option<Following>,
    /// The driver knows of it.
    pub(crate) announced: bool,
    /// The response that is about to leave ends the SA.
    pub(crate) ending: Option<IkeDownReason>,
    /// The first IKE_SA_INIT of a stranger is still counted as half-open.
    pub(crate) admission: Option<crate::admission::Ticket>,
}

/// Lifecycle of an IKE SA.
pub(crate) enum Phase {
    /// We sent IKE_SA_INIT and what follows it.
    Initiating,
    /// A stranger's IKE_SA_INIT was answered.
    HalfOpen(Box<exchange::ike_sa_init::Responded>),
    /// Usable.
    Established,
    /// Rekeyed at the peer's request, who will delete it.
    Replaced {
        until: Instant,
        /// Local SPI of the SA that took its place.
        by: u64,
    },
    /// Our DELETE is waiting or outstanding.
    Closing,
    /// Gone; answers repeated requests until then.
    Closed { until: Instant },
}

impl Phase {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Initiating => "initiating",
            Self::HalfOpen(_) => "half-open",
            Self::Established => "established",
            Self::Replaced { .. } => "replaced",
            Self::Closing => "closing",
            Self::Closed { .. } => "closed",
        }
    }
}

/// What the peer announced.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PeerFacts {
    /// Runs the same software (Vendor ID inside IKE_AUTH).
    pub(crate) ours: bool,
    pub(crate) nat: NatStatus,
    pub(crate) fragmentation: bool,
    /// SIGNATURE_HASH_ALGORITHMS.
    pub(crate) signature_hashes: HashSet,
    pub(crate) childless: bool,
    /// Both sides know MOBIKE.
    pub(crate) mobike: bool,
    /// We began the first IKE SA of this series; rekeying changes nothing about that.
    pub(crate) we_began: bool,
}

/// Keys and ciphers once they exist.
pub(crate) struct Secured {
    pub(crate) suite: IkeSuite,
    pub(crate) keys: IkeKeys,
    pub(crate) outbound: PayloadCipher,
    pub(crate) inbound: PayloadCipher,
}

impl Secured {
    pub(crate) fn new(suite: IkeSuite, keys: IkeKeys, initiator: bool) -> Self {
        let from_initiator = PayloadCipher::new(keys.cipher, &keys.sk_ei, &keys.sk_ai);
        let from_responder = PayloadCipher::new(keys.cipher, &keys.sk_er, &keys.sk_ar);
        let (outbound, inbound) =
            if initiator { (from_initiator, from_responder) } else { (from_responder, from_initiator) };
        Self { suite, outbound, inbound, keys }
    }
}

/// An exchange that is wanted.
pub(crate) struct Task {
    pub(crate) what: Want,
    /// Not before then.
    pub(crate) not_before: Option<Instant>,
}

/// Which exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// A CHILD SA because there is none.
    OnlyChild,
    /// One more, whatever there is.
    FurtherChild,
    RekeyChild {
        spi_in: u32,
    },
    DeleteChild {
        spi_in: u32,
        reason: ChildDownReason,
    },
    RekeyIke,
    DeleteIke(IkeDownReason),
    Liveness,
    UpdateAddresses,
    RoutabilityCheck,
}

impl IkeSa {
    pub(crate) fn new(local_spi: u64, initiator: bool, path: Path, now: Instant) -> Self {
        Self {
            local_spi,
            remote_spi: 0,
            initiator,
            path,
            arrived_on: path,
            connection: None,
            phase: Phase::Initiating,
            secured: None,
            window: RequestWindow::new(),
            pending: None,
            tasks: VecDeque::new(),
            children: Vec::new(),
            peer: PeerFacts::default(),
            began: now,
            established: None,
            proven: None,
            rekey_at: None,
            expire_at: None,
            last_inbound: now,
            round_trip: None,
            proved: false,
            waiting: Vec::new(),
            hinted: None,
            supersedes: Vec::new(),
            refusals: 0,
            hold_until: None,
            fragments: (None, None),
            next_secured: None,
            following: None,
            announced: false,
            ending: None,
            admission: None,
        }
    }

    /// SPIs in the order of the header.
    pub(crate) fn spis(&self) -> IkeSpis {
        let (initiator, responder) = if self.initiator {
            (self.local_spi, self.remote_spi)
        } else {
            (self.remote_spi, self.local_spi)
        };
        IkeSpis { initiator, responder }
    }

    pub(crate) fn header(&self, exchange: ExchangeType, response: bool, id: u32) -> Header {
        let spis = self.spis();
        Header::new((spis.initiator, spis.responder), exchange, self.initiator, response, id)
    }

    pub(crate) fn is_half_open(&self) -> bool {
        matches!(self.phase, Phase::HalfOpen(_))
    }

    pub(crate) fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Established)
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    pub(crate) fn has_child(&self, spi_in: u32) -> bool {
        self.children.iter().any(|child| child.spi_in == spi_in)
    }

    pub(crate) fn child_by_inbound(&mut self, spi_in: u32) -> Option<&mut Child> {
        self.children.iter_mut().find(|child| child.spi_in == spi_in)
    }

    pub(crate) fn child_by_outbound(&mut self, spi_out: u32) -> Option<&mut Child> {
        self.children.iter_mut().find(|child| child.spi_out == spi_out)
    }

    /// Queues an exchange unless the same one waits already.
    pub(crate) fn want(&mut self, what: Want, not_before: Option<Instant>) {
        if !self.tasks.iter().any(|task| task.what == what) {
            self.tasks.push_back(Task { what, not_before });
        }
    }

    /// Seals and sends a request; `pending` says what its response is for.
    pub(crate) fn send_request(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeType,
        payloads: &[Payload],
        pending: Pending,
        now: Instant,
    ) {
        let id = self.window.next_request();
        let header = self.header(exchange, false, id);
        let limit = self.fragment_limit(shared);
        let Some(secured) = &mut self.secured else { return };
        let datagrams = seal_message(&mut secured.outbound, header, payloads, limit);
        shared.transmit(self.path, &datagrams);
        self.window.sent(id, datagrams, &shared.config.timers, &mut shared.rng, now);
        self.pending = Some(pending);
    }

    //= RFC 7383 §2.3: only if both announced it
    fn fragment_limit(&self, shared: &Shared) -> Option<usize> {
        self.peer.fragmentation.then_some(shared.config.fragment_size)
    }

    /// Seals, sends and remembers the response to the request `datagram`.
    pub(crate) fn send_response(
        &mut self,
        shared: &mut Shared,
        request: &Header,
        datagram: &[u8],
        to: Path,
        payloads: &[Payload],
    ) {
        let header = Header { response: true, initiator: self.initiator, ..*request };
        let limit = self.fragment_limit(shared);
        let Some(secured) = &mut self.secured else { return };
        let datagrams = seal_message(&mut secured.outbound, header, payloads, limit);
        shared.transmit(to, &datagrams);
        self.window.answered(request.message_id, datagram, datagrams);
    }

    /// Starts the next exchange that is due, if none is outstanding.
    pub(crate) fn pump(&mut self, shared: &mut Shared, now: Instant) {
        while self.window.is_free() && self.pending.is_none() && self.may_request() {
            let due = |task: &Task| task.not_before.is_none_or(|at| at <= now);
            let Some(index) = self.tasks.iter().position(due) else { return };
            let Some(task) = self.tasks.remove(index) else { return };
            exchange::start(self, shared, task.what, now);
        }
    }

    pub(crate) fn may_request(&self) -> bool {
        matches!(self.phase, Phase::Established | Phase::Closing) && !self.is_held()
    }

    /// Whether our own requests wait: for the peer to use a rekeyed SA, or to complete its own exchange.
    pub(crate) fn is_held(&self) -> bool {
        self.hold_until.is_some() || self.following.is_some()
    }

    /// The peer sent a request that it sends only once it has our last response: the CHILD SAs in `known`,
    /// which that response or earlier ones told of, are there.
    pub(crate) fn confirm_by_request(&mut self, shared: &mut Shared, known: &[u32]) {
        known.iter().for_each(|spi_in| self.confirm_child(shared, *spi_in));
        self.confirm(shared);
    }

    /// The peer answered a request of ours, so it is established too and has what IKE_AUTH made. That it
    /// has our later responses does not follow.
    pub(crate) fn confirm_by_response(&mut self, shared: &mut Shared) {
        let first = self.children.iter().filter(|child| child.sure_at.is_some() && child.from_ike_auth);
        let first: Vec<u32> = first.map(|child| child.spi_in).collect();
        self.confirm_by_request(shared, &first);
    }

    /// The peer uses this SA: our own requests may go, and what it supersedes may end.
    pub(crate) fn confirm(&mut self, shared: &mut Shared) {
        self.hold_until = None;
        let superseded = std::mem::take(&mut self.supersedes);
        shared.actions.extend(superseded.into_iter().map(|spi| Action::CloseRedundant { spi }));
    }

    /// Takes over from the SA that it replaces.
    pub(crate) fn inherit(&mut self, children: Vec<Child>, tasks: VecDeque<Task>, rekey_at: Instant) {
        self.announced = true;
        self.children.extend(children);
        self.tasks.extend(tasks.into_iter().filter(|task| task.what != Want::RekeyIke));
        self.rekey_at = Some(rekey_at);
    }

    /// Ends the SA: its CHILD SAs go, the driver is told, repeated requests are still answered for a while.
    pub(crate) fn close(&mut self, shared: &mut Shared, reason: IkeDownReason, now: Instant) {
        if self.is_closed() {
            return;
        }
        let attempt = matches!(self.phase, Phase::Initiating);
        let replaced = matches!(self.phase, Phase::Replaced { .. }) || reason == IkeDownReason::Rekeyed;
        let was_usable = self.announced && !replaced;
        if let Phase::Replaced { by, .. } = self.phase {
            shared.actions.push_back(Action::Confirm { spi: by });
        }
        self.release_pending(shared);
        self.phase = Phase::Closed { until: now + shared.config.timers.closed_linger };
        self.window.abandon();
        self.tasks.clear();
        exchange::ike_followup_ke::expire(self, shared, now);
        self.close_children(shared, reason, now);
        let Some(connection) = self.connection else { return };
        if was_usable {
            shared.events.push_back(Event::IkeDown { connection, spis: self.spis(), reason });
            shared.actions.push_back(Action::Gone { connection, spi: self.local_spi, reason });
        } else if attempt {
            shared.actions.push_back(Action::AttemptFailed { connection, spi: self.local_spi });
        }
    }

    /// Forgets the outstanding exchange and gives back what was reserved for it.
    pub(crate) fn release_pending(&mut self, shared: &mut Shared) {
        match self.pending.take() {
            Some(Pending::IkeAuth(initiation)) => initiation.release(shared),
            Some(Pending::CreateChild(creation)) => shared.release_inbound_spi(creation.spi_in),
            Some(Pending::RekeyChild(rekey)) => rekey.release(shared),
            Some(
                Pending::IkeSaInit(_)
                | Pending::IkeIntermediate(_)
                | Pending::RekeyIke(_)
                | Pending::DeleteChild { .. }
                | Pending::DeleteIke(_)
                | Pending::Liveness
                | Pending::UpdateAddresses(_)
                | Pending::RoutabilityCheck(_),
            )
            | None => {}
        }
    }

    /// Removes a CHILD SA and tells the driver.
    pub(crate) fn drop_child(
        &mut self,
        shared: &mut Shared,
        spi_in: u32,
        reason: ChildDownReason,
        now: Instant,
    ) {
        let Some(index) = self.children.iter().position(|child| child.spi_in == spi_in) else { return };
        let child = self.children.remove(index);
        if let Some(connection) = self.connection {
            shared.retire_child(connection, &child, reason, now);
        }
    }

    /// Marks a CHILD SA for deletion by us and stops sending on it.
    pub(crate) fn delete_child(&mut self, shared: &mut Shared, spi_in: u32, reason: ChildDownReason) {
        let Some(child) = self.child_by_inbound(spi_in) else { return };
        child.phase = ChildPhase::Deleting;
        child.rekey_at = None;
        child.delete_at = None;
        self.want(Want::DeleteChild { spi_in, reason }, None);
        if let Some(connection) = self.connection {
            if let Some(entry) = shared.connections.get_mut(&connection) {
                entry.outbound.exclude(spi_in);
            }
            shared.choose_outbound(connection);
        }
    }

    /// The peer has this CHILD SA: traffic arrived on it.
    pub(crate) fn confirm_child(&mut self, shared: &mut Shared, spi_in: u32) {
        let Some(child) = self.child_by_inbound(spi_in) else { return };
        child.sure_at = None;
        if let Some(connection) = self.connection {
            if let Some(entry) = shared.connections.get_mut(&connection) {
                entry.outbound.confirm(spi_in);
            }
            shared.choose_outbound(connection);
        }
    }

    /// Takes all CHILD SAs out of use.
    pub(crate) fn close_children(&mut self, shared: &mut Shared, reason: IkeDownReason, now: Instant) {
        let Some(connection) = self.connection else { return };
        let reason = child_reason(reason);
        let children = std::mem::take(&mut self.children);
        if let Some(entry) = shared.connections.get_mut(&connection) {
            children.iter().for_each(|child| entry.outbound.exclude(child.spi_in));
        }
        for child in children {
            shared.retire_child(connection, &child, reason, now);
        }
    }

    /// Sends DELETE at once. An outstanding request is given up: it was probably received, and if not the
    /// peer's own liveness check ends the SA.
    pub(crate) fn force_delete(&mut self, shared: &mut Shared, reason: IkeDownReason, now: Instant) {
        self.release_pending(shared);
        self.window.abandon();
        self.tasks.clear();
        exchange::start(self, shared, Want::DeleteIke(reason), now);
    }

    pub(crate) fn report(&self, remote_id: Option<Identity>) -> IkeSaReport {
        let suite = self.secured.as_ref().map(|secured| secured.suite);
        IkeSaReport {
            connection: self.connection,
            spis: self.spis(),
            state: self.phase.name(),
            initiator: self.initiator,
            ours: self.peer.ours,
            remote_id: remote_id.filter(|_| self.established.is_some()),
            encryption: suite.map_or("none", |suite| suite.cipher.name()),
            prf: suite.map_or("none", |suite| suite.prf.name()),
            key_exchange: suite.map_or("none", IkeSuite::key_exchange_name),
            established: self.established,
            rekey_at: self.rekey_at,
            last_inbound: self.last_inbound,
            round_trip: self.round_trip,
            path: self.path,
            local_nat: self.peer.nat.local,
            remote_nat: self.peer.nat.remote,
            children: self.children.iter().map(Child::report).collect(),
        }
    }

    /// A line of Wireshark's `ikev2_decryption_table` with the current keys, if asked for.
    pub(crate) fn log_keys(&self, shared: &mut Shared) {
        let Some(secured) = self.secured.as_ref().filter(|_| shared.config.keylog) else { return };
        let (spis, keys) = (self.spis(), &secured.keys);
        let [sk_ei, sk_er, sk_ai, sk_ar] = [&keys.sk_ei, &keys.sk_er, &keys.sk_ai, &keys.sk_ar]
            .map(|key| crate::child_sa::hex(key.expose()));
        let (cipher, hash) = keys.cipher.wireshark_names();
        let line = format!(
            "{:016x},{:016x},{sk_ei},{sk_er},\"{cipher}\",{sk_ai},{sk_ar},\"{hash}\"",
            spis.initiator, spis.responder,
        );
        shared.events.push_back(Event::KeyLog { table: KeyLogTable::Ike, line });
    }
}

fn child_reason(reason: IkeDownReason) -> ChildDownReason {
    match reason {
        IkeDownReason::DeletedByPeer => ChildDownReason::DeletedByPeer,
        IkeDownReason::ClosedByUs => ChildDownReason::DeletedByUs,
        IkeDownReason::Redundant => ChildDownReason::Redundant,
        IkeDownReason::Expired => ChildDownReason::Expired,
        IkeDownReason::PeerSilent
        | IkeDownReason::PeerRestarted
        | IkeDownReason::Rekeyed
        | IkeDownReason::KeyRemoved
        | IkeDownReason::ProtocolError => ChildDownReason::IkeSaDown,
    }
}
