//! The router: one state machine for all interfaces. Its parts, one file each:
//!
//! * [`receive`](crate::receive): packets, Hello, IHU; what a link costs;
//! * [`acquisition`](crate::acquisition): Updates; the route table;
//! * [`decision`](crate::decision): which route is used, and what follows from a change;
//! * [`requests`](crate::requests): route and seqno requests;
//! * [`update_schedule`](crate::update_schedule): what is announced when;
//! * [`transmit`](crate::transmit): packets are written;
//! * [`timers`](crate::timers): what happens because time passes;
//! * [`inspect`](crate::inspect): reports.

use std::{
    collections::{BTreeMap, VecDeque},
    net::Ipv6Addr,
    time::{Duration, Instant},
};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use crate::{
    Config, Event, ImportPolicy, ImportRefusal, InterfaceConfig, InterfaceId, MacKey, Misuse, NeighbourLoss,
    Prefix, Seqno,
    interface::Interface,
    neighbour::{Neighbour, NeighbourKey},
    request_table::RequestTable,
    route_table::RouteTable,
    source_table::SourceTable,
    wire::tlv::Tlv,
};

/// The least time between two multicast Hellos.
const HELLO_SPACING: Duration = Duration::from_millis(20);
/// Removed interfaces that are remembered.
const RETIRED_INTERFACES: usize = 4096;

/// Where a packet written by [`Router::poll_transmit`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The interface to send on.
    pub interface: InterfaceId,
    /// [`crate::MULTICAST_GROUP`] or a neighbour's link-local address.
    pub destination: Ipv6Addr,
}

/// A Babel router.
///
/// Feed it with [`handle_packet`](Self::handle_packet), wake it at [`poll_timeout`](Self::poll_timeout) with
/// [`handle_timeout`](Self::handle_timeout), and after each of these send what
/// [`poll_transmit`](Self::poll_transmit) writes and act on what [`poll_event`](Self::poll_event) says.
pub struct Router {
    pub(crate) config: Config,
    pub(crate) rng: ChaCha20Rng,
    /// Our sequence number as a source of routes.
    pub(crate) seqno: Seqno,
    pub(crate) started: Instant,
    /// Where the clock of our timestamps starts, microseconds.
    pub(crate) clock_offset: u32,
    pub(crate) interfaces: BTreeMap<InterfaceId, Interface>,
    /// Interfaces that were removed, and the number of the next Hello there.
    retired: BTreeMap<InterfaceId, Seqno>,
    pub(crate) neighbours: BTreeMap<NeighbourKey, Neighbour>,
    /// What we originate, with its metric.
    pub(crate) own: BTreeMap<Prefix, u16>,
    /// What we stopped to originate, and when: echoes may still come.
    pub(crate) withdrawn: BTreeMap<Prefix, Instant>,
    pub(crate) routes: RouteTable,
    pub(crate) sources: SourceTable,
    pub(crate) requests: RequestTable,
    pub(crate) policy: ImportPolicy,
    /// What was reported as refused, and when.
    pub(crate) refused: BTreeMap<(Prefix, Option<ImportRefusal>), Instant>,
    pub(crate) limits_reported: BTreeMap<&'static str, Instant>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) sweep_at: Instant,
    pub(crate) shutting_down: bool,
}

impl Router {
    /// A router without interfaces. The same configuration, RNG seed and input give the same output.
    ///
    /// # Errors
    /// [`Misuse::ReservedRouterId`].
    pub fn new(config: Config, mut rng: ChaCha20Rng, now: Instant) -> Result<Self, Misuse> {
        if !config.router_id.is_valid() {
            return Err(Misuse::ReservedRouterId);
        }
        Ok(Self {
            seqno: config.seqno.unwrap_or_default(),
            started: now,
            clock_offset: rng.next_u32(),
            config,
            rng,
            interfaces: BTreeMap::new(),
            retired: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            own: BTreeMap::new(),
            withdrawn: BTreeMap::new(),
            routes: BTreeMap::new(),
            sources: SourceTable::default(),
            requests: RequestTable::default(),
            policy: ImportPolicy::default(),
            refused: BTreeMap::new(),
            limits_reported: BTreeMap::new(),
            events: VecDeque::new(),
            sweep_at: now + crate::timers::SWEEP_INTERVAL,
            shutting_down: false,
        })
    }

    /// Starts to speak on an interface: a Hello and a request for everything go out at once. If it existed with
    /// the same local address, neighbours and routes are kept; with another one they are forgotten.
    pub fn add_interface(&mut self, id: InterfaceId, config: InterfaceConfig, now: Instant) {
        if self.interfaces.get(&id).is_some_and(|interface| interface.config.local != config.local) {
            self.remove_interface(id, now);
        }
        if let Some(interface) = self.interfaces.get_mut(&id) {
            interface.config = config;
        } else {
            // Hellos that go on where they ended say that we did not restart.
            let hello_seqno = self.retired.remove(&id).unwrap_or(Seqno(self.random_u16()));
            let interface = Interface::new(config, hello_seqno, self.random(), now);
            self.interfaces.insert(id, interface);
        }
        self.hello_soon(id, now);
        if let Some(interface) = self.interfaces.get_mut(&id) {
            interface.outbox.push(Tlv::RouteRequest { prefix: None }, now);
        }
    }

    /// Stops to speak on an interface and forgets its neighbours and their routes.
    pub fn remove_interface(&mut self, id: InterfaceId, now: Instant) {
        let Some(interface) = self.interfaces.remove(&id) else { return };
        if self.retired.len() < RETIRED_INTERFACES {
            self.retired.insert(id, interface.hello_seqno);
        }
        let gone: Vec<_> = self.neighbours.keys().filter(|key| key.interface == id).copied().collect();
        for key in gone {
            self.forget_neighbour(key, NeighbourLoss::InterfaceRemoved, now);
        }
    }

    /// Sets the interval of fast unicast Hellos (see [`InterfaceConfig::fast_hello`]).
    pub fn set_fast_hello(&mut self, id: InterfaceId, interval: Option<Duration>, now: Instant) {
        if let Some(interface) = self.interfaces.get_mut(&id)
            && interface.config.fast_hello != interval
        {
            interface.config.fast_hello = interval;
            if interval.is_none() {
                self.neighbours_on_mut(id).for_each(|(_, neighbour)| neighbour.expects_fast = false);
            }
            self.hello_soon(id, now);
        }
    }

    /// Sets the MAC keys of an interface (see [`InterfaceConfig::mac_keys`]).
    pub fn set_mac_keys(&mut self, id: InterfaceId, keys: Vec<MacKey>, _now: Instant) {
        if let Some(interface) = self.interfaces.get_mut(&id) {
            interface.config.mac_keys = keys;
        }
    }

    /// Sets the import policy. Routes that it no longer admits are dropped; those that it newly admits are asked
    /// for.
    pub fn set_import_policy(&mut self, policy: ImportPolicy, now: Instant) {
        if self.policy == policy {
            return;
        }
        self.policy = policy;
        self.refused.clear();
        let mut changed = Vec::new();
        for (prefix, destination) in &mut self.routes {
            let before = destination.routes.len();
            destination.routes.retain(|key, route| {
                let admitted = self.policy.judge(prefix, route.router_id).is_ok();
                if !admitted && let Some(neighbour) = self.neighbours.get_mut(key) {
                    neighbour.routes = neighbour.routes.saturating_sub(1);
                }
                admitted
            });
            if destination.routes.len() != before {
                changed.push(*prefix);
            }
        }
        for prefix in changed {
            self.reselect(prefix, now);
        }
        for interface in self.interfaces.values_mut() {
            interface.outbox.push(Tlv::RouteRequest { prefix: None }, now);
        }
    }

    /// Changes how cost follows from quality. Links are priced anew and routes over them judged again.
    pub fn set_cost(&mut self, cost: crate::CostMap, now: Instant) {
        self.config.cost = cost;
        let neighbours: Vec<NeighbourKey> = self.neighbours.keys().copied().collect();
        for key in neighbours {
            self.price_link(key, NeighbourLoss::Unheard, now);
        }
    }

    /// Originates a prefix with metric 0.
    pub fn announce(&mut self, prefix: Prefix, now: Instant) {
        self.announce_with_metric(prefix, 0, now);
    }

    /// Originates a prefix. A metric of 65535 is lowered to 65534.
    pub fn announce_with_metric(&mut self, prefix: Prefix, metric: u16, now: Instant) {
        let metric = metric.min(crate::INFINITY - 1);
        if self.own.insert(prefix, metric) == Some(metric) {
            return;
        }
        self.withdrawn.remove(&prefix);
        self.reselect(prefix, now);
        self.trigger(prefix, true, now);
    }

    /// Stops to originate a prefix.
    pub fn withdraw(&mut self, prefix: Prefix, now: Instant) {
        if self.own.remove(&prefix).is_none() {
            return;
        }
        self.withdrawn.insert(prefix, now);
        self.reselect(prefix, now);
        self.trigger(prefix, true, now);
    }

    /// Authenticated traffic of any kind arrived on the interface at `received`: neighbours there live.
    pub fn traffic_seen(&mut self, interface: InterfaceId, received: Instant) {
        for (_, neighbour) in self.neighbours_on_mut(interface) {
            neighbour.last_traffic = neighbour.last_traffic.max(received);
        }
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes leave: neighbours are told that we have no route, do not hear them, and will say no more. Poll
    /// transmits until there is none, then drop the router; remove the routes only afterwards.
    pub fn shutdown(&mut self, now: Instant) {
        self.shutting_down = true;
        for interface in self.interfaces.values_mut() {
            interface.outbox = crate::outbox::Outbox::default();
            interface.hellos = 0;
            interface.next_hello = now;
        }
        for neighbour in self.neighbours.values_mut() {
            neighbour.outbox = crate::outbox::Outbox::default();
            neighbour.next_fast_hello = None;
        }
    }

    /// Our sequence number, to be persisted (see also [`Event::SeqnoChanged`]).
    #[must_use]
    pub const fn seqno(&self) -> Seqno {
        self.seqno
    }

    /// Sends a multicast Hello, with IHUs, as soon as spacing allows.
    pub(crate) fn hello_soon(&mut self, id: InterfaceId, now: Instant) {
        if let Some(interface) = self.interfaces.get_mut(&id) {
            let earliest = interface.last_hello.map_or(now, |last| (last + HELLO_SPACING).max(now));
            interface.next_hello = interface.next_hello.min(earliest);
        }
    }

    pub(crate) fn neighbours_on(&self, id: InterfaceId) -> impl Iterator<Item = (&NeighbourKey, &Neighbour)> {
        self.neighbours.range(first_on(id)..).take_while(move |(key, _)| key.interface == id)
    }

    pub(crate) fn neighbours_on_mut(
        &mut self,
        id: InterfaceId,
    ) -> impl Iterator<Item = (&NeighbourKey, &mut Neighbour)> {
        self.neighbours.range_mut(first_on(id)..).take_while(move |(key, _)| key.interface == id)
    }

    /// An instant on the clock of our timestamps: microseconds modulo 2^32.
    pub(crate) fn micros(&self, at: Instant) -> u32 {
        let micros = at.saturating_duration_since(self.started).as_micros();
        #[expect(clippy::cast_possible_truncation, reason = "timestamps are modular (RFC 9616 §3)")]
        let micros = micros as u32;
        micros.wrapping_add(self.clock_offset)
    }

    /// A random duration below `limit`.
    pub(crate) fn jitter(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(f64::from(self.rng.next_u32()) / f64::from(u32::MAX))
    }

    pub(crate) fn random_u16(&mut self) -> u16 {
        u16::from_be_bytes(self.random())
    }

    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        self.rng.fill_bytes(&mut octets);
        octets
    }

    /// Says once a minute that a table is full.
    pub(crate) fn limit_reached(&mut self, table: &'static str, now: Instant) {
        let reported = self.limits_reported.get(table).copied();
        if reported.is_none_or(|at| now.saturating_duration_since(at) >= Duration::from_secs(60)) {
            self.limits_reported.insert(table, now);
            self.events.push_back(Event::LimitReached { table });
        }
    }
}

const fn first_on(interface: InterfaceId) -> NeighbourKey {
    NeighbourKey { interface, address: Ipv6Addr::UNSPECIFIED }
}

/// Centiseconds as written on the wire; never 0.
pub(crate) fn to_centiseconds(duration: Duration) -> u16 {
    u16::try_from(duration.as_millis() / 10).unwrap_or(u16::MAX).max(1)
}

/// Centiseconds as read from the wire.
pub(crate) fn from_centiseconds(centiseconds: u16) -> Duration {
    Duration::from_millis(u64::from(centiseconds) * 10)
}
