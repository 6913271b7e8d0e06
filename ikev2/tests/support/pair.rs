//! Two endpoints, a virtual clock, and a network between them that delays, loses, reorders and duplicates.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ikev2::{
    ChildDownReason, Config, ConnectionConfig, ConnectionId, Ed25519Signer, Endpoint, Event, Identity,
    IkeSaReport, Path, Signer, Timers,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

pub const LINK: ConnectionId = ConnectionId(7);

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    A,
    B,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A CHILD SA as its owner's driver knows it.
pub struct Installed {
    pub spi_out: u32,
    pub key_in: Vec<u8>,
    pub key_out: Vec<u8>,
    pub esn: bool,
    pub initiator: bool,
    pub replaces: Option<u32>,
}

/// One endpoint and what its driver learned.
pub struct Node {
    pub endpoint: Endpoint,
    pub address: SocketAddr,
    pub events: Vec<String>,
    /// By inbound SPI.
    pub children: BTreeMap<u32, Installed>,
    /// Outbound SPI in use.
    pub outbound: Option<u32>,
    pub downs: Vec<ChildDownReason>,
    pub key_log: Vec<String>,
    pub ups: usize,
    pub sent: usize,
}

/// A datagram on its way.
pub struct Flight {
    pub arrives: Instant,
    pub order: u64,
    pub to: Side,
    pub path: Path,
    pub octets: Vec<u8>,
}

/// Properties of the network.
#[derive(Clone, Copy)]
pub struct Network {
    pub latency: Duration,
    pub jitter: Duration,
    pub loss_percent: u32,
    pub duplicate_percent: u32,
}

pub struct Pair {
    pub a: Node,
    pub b: Node,
    pub now: Instant,
    pub start: Instant,
    pub network: Network,
    pub flights: Vec<Flight>,
    /// Number of datagrams handed to the network so far; `lose` names some of them.
    pub counter: u64,
    pub lose: Vec<u64>,
    /// All datagrams, for inspection: sender and octets.
    pub log: Vec<(Side, Vec<u8>)>,
    rng: ChaCha20Rng,
    order: u64,
    /// Whether inbound ESP of the peer is checked to be deliverable at each step.
    pub check_outbound: bool,
    pub outbound_violations: Vec<String>,
}

pub fn identity(name: &str) -> Identity {
    Identity::ranet("mesh", name, "0").unwrap()
}

/// Timers for tests: nothing is rekeyed by itself.
pub fn calm() -> Timers {
    let never = Duration::from_secs(1_000_000);
    Timers { child_rekey: never, ike_rekey: never, rekey_jitter_percent: 0, ..Timers::default() }
}

pub fn seed(side: Side) -> [u8; 32] {
    match side {
        Side::A => [0xA; 32],
        Side::B => [0xB; 32],
    }
}

pub fn address(side: Side) -> SocketAddr {
    match side {
        Side::A => "192.0.2.1:4500".parse().unwrap(),
        Side::B => "198.51.100.2:4500".parse().unwrap(),
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::A => "alice",
        Side::B => "bob",
    }
}

pub fn connection(side: Side) -> ConnectionConfig {
    let key = Ed25519Signer::from_seed(&seed(side.other())).public_key();
    let mut config = ConnectionConfig::new(identity(name(side)), identity(name(side.other())), vec![key]);
    config.remote_address = Some(address(side.other()));
    config.local_address = Some(address(side).ip());
    config.local_port = address(side).port();
    config
}

pub fn node_config(side: Side, timers: Timers) -> Config {
    let mut config = Config::new(Box::new(Ed25519Signer::from_seed(&seed(side))));
    config.timers = timers;
    config
}

impl Node {
    pub fn new(side: Side, config: Config, rng_seed: u64) -> Self {
        let mut octets = [side as u8; 32];
        octets[..8].copy_from_slice(&rng_seed.to_be_bytes());
        Self {
            endpoint: Endpoint::new(config, ChaCha20Rng::from_seed(octets)),
            address: address(side),
            events: Vec::new(),
            children: BTreeMap::new(),
            outbound: None,
            downs: Vec::new(),
            key_log: Vec::new(),
            ups: 0,
            sent: 0,
        }
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push(format!("{event:?}"));
            match event {
                Event::ChildUp { child, .. } => {
                    let installed = Installed {
                        spi_out: child.spi_out,
                        key_in: child.key_in.expose().to_vec(),
                        key_out: child.key_out.expose().to_vec(),
                        esn: child.esn,
                        initiator: child.initiator,
                        replaces: child.replaces,
                    };
                    assert!(self.children.insert(child.spi_in, installed).is_none(), "an SPI is used twice");
                }
                Event::ChildDown { spi_in, reason, .. } => {
                    let gone = self.children.remove(&spi_in).expect("a CHILD SA that was never up went down");
                    if self.outbound == Some(gone.spi_out) {
                        self.outbound = None;
                    }
                    self.downs.push(reason);
                }
                Event::UseOutbound { spi_out, .. } => {
                    let known = self.children.values().any(|child| child.spi_out == spi_out);
                    assert!(known, "told to send on an unknown SA");
                    self.outbound = Some(spi_out);
                }
                Event::KeyLog { line, .. } => self.key_log.push(line),
                Event::IkeUp { .. } => self.ups += 1,
                _ => {}
            }
        }
    }

    pub fn saw(&self, text: &str) -> usize {
        self.events.iter().filter(|event| event.contains(text)).count()
    }

    pub fn established(&self) -> Vec<IkeSaReport> {
        self.endpoint.associations().into_iter().filter(|report| report.state == "established").collect()
    }
}

impl Pair {
    pub fn new(rng_seed: u64, timers: Timers) -> Self {
        let configure = |side| node_config(side, timers);
        Self::with_configs(rng_seed, configure(Side::A), configure(Side::B))
    }

    pub fn with_configs(rng_seed: u64, a: Config, b: Config) -> Self {
        let now = Instant::now();
        Self {
            a: Node::new(Side::A, a, rng_seed),
            b: Node::new(Side::B, b, rng_seed),
            now,
            start: now,
            network: Network {
                latency: Duration::from_millis(20),
                jitter: Duration::ZERO,
                loss_percent: 0,
                duplicate_percent: 0,
            },
            flights: Vec::new(),
            counter: 0,
            lose: Vec::new(),
            log: Vec::new(),
            rng: ChaCha20Rng::seed_from_u64(rng_seed ^ 0x5EED),
            order: 0,
            check_outbound: false,
            outbound_violations: Vec::new(),
        }
    }

    /// Both connections configured, nobody dials by itself.
    pub fn configured(rng_seed: u64, timers: Timers) -> Self {
        let mut pair = Self::new(rng_seed, timers);
        pair.configure();
        pair
    }

    fn configure(&mut self) {
        let now = self.now;
        for side in [Side::A, Side::B] {
            self.node(side).endpoint.set_connection(LINK, connection(side), now);
        }
    }

    /// Configures both connections; A dials, once.
    pub fn connect(&mut self) {
        self.configure();
        let now = self.now;
        self.a.endpoint.dial(LINK, now).unwrap();
        self.drive_for(Duration::from_millis(500));
    }

    /// Configures both connections; A keeps the link up by dialling, and has had time for it.
    pub fn connect_and_keep(&mut self) {
        let now = self.now;
        let mut dialling = connection(Side::A);
        dialling.dial = true;
        self.a.endpoint.set_connection(LINK, dialling, now);
        self.b.endpoint.set_connection(LINK, connection(Side::B), now);
        self.drive_for(Duration::from_secs(1));
    }

    /// From now on both ends keep the link up by dialling; one that is idle dials at once.
    pub fn keep_dialling(&mut self) {
        let now = self.now;
        for side in [Side::A, Side::B] {
            let mut config = connection(side);
            config.dial = true;
            self.node(side).endpoint.set_connection(LINK, config, now);
        }
    }

    /// A dialled and both are up.
    pub fn established(rng_seed: u64, timers: Timers) -> Self {
        let mut pair = Self::new(rng_seed, timers);
        pair.connect();
        assert_eq!(pair.a.ups + pair.b.ups, 2, "{:?} {:?}", pair.a.events, pair.b.events);
        pair
    }

    pub fn node(&mut self, side: Side) -> &mut Node {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// Moves everything that both endpoints have to say into the network.
    pub fn collect(&mut self) {
        for side in [Side::A, Side::B] {
            self.node(side).drain_events();
            let mut buffer = Vec::new();
            while let Some(path) = self.node(side).endpoint.poll_transmit(&mut buffer) {
                self.node(side).sent += 1;
                let octets = buffer.clone();
                self.send(side, path, octets);
            }
        }
        if self.check_outbound {
            self.verify_outbound();
        }
    }

    fn send(&mut self, from: Side, path: Path, octets: Vec<u8>) {
        self.log.push((from, octets.clone()));
        let number = self.counter;
        self.counter += 1;
        let lost = self.lose.contains(&number) || self.rng.next_u32() % 100 < self.network.loss_percent;
        if lost {
            return;
        }
        let copies = if self.rng.next_u32() % 100 < self.network.duplicate_percent { 2 } else { 1 };
        for _ in 0..copies {
            let jitter = self.network.jitter * (self.rng.next_u32() % 1000) / 1000;
            let arrives = self.now + self.network.latency + jitter;
            self.order += 1;
            let source = self.node(from).address;
            let to = from.other();
            let path = Path { local: path.remote, remote: source };
            self.flights.push(Flight { arrives, order: self.order, to, path, octets: octets.clone() });
        }
    }

    /// What each node would send now must be on an SA that the other node still receives on.
    fn verify_outbound(&mut self) {
        let elapsed = self.elapsed();
        for (from, to, label) in [(&self.a, &self.b, "A"), (&self.b, &self.a, "B")] {
            if let Some(spi) = from.outbound
                && !to.children.contains_key(&spi)
            {
                self.outbound_violations
                    .push(format!("{elapsed:?}: {label} sends on {spi:08x}, unknown to the peer"));
            }
        }
    }

    /// The next thing that happens; false if nothing does before `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        self.collect();
        let flight = self.flights.iter().map(|flight| (flight.arrives, flight.order)).min();
        let timeout = [&self.a, &self.b].into_iter().filter_map(|node| node.endpoint.poll_timeout()).min();
        let next = [flight.map(|(at, _)| at), timeout.map(|(at, _)| at)].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        if let Some((at, order)) = flight
            && at <= now
        {
            let index = self.flights.iter().position(|flight| flight.order == order).unwrap();
            let flight = self.flights.remove(index);
            self.node(flight.to).endpoint.handle_datagram(flight.path, &flight.octets, now);
        } else {
            for side in [Side::A, Side::B] {
                if self.node(side).endpoint.poll_timeout().is_some_and(|(at, _)| at <= now) {
                    self.node(side).endpoint.handle_timeout(now);
                }
            }
        }
        self.collect();
        true
    }

    /// Runs for a span of virtual time.
    ///
    /// # Panics
    /// If the endpoints exchange more than any sane protocol would (livelock).
    pub fn drive_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(
                steps < 200_000,
                "livelock at {:?}, {} datagrams sent: {:?} {:?} {:#?} {:#?}",
                self.elapsed(),
                self.log.len(),
                self.a.endpoint.poll_timeout().map(|(at, why)| (at.saturating_duration_since(self.now), why)),
                self.b.endpoint.poll_timeout().map(|(at, why)| (at.saturating_duration_since(self.now), why)),
                self.a.endpoint.associations(),
                self.b.endpoint.associations(),
            );
        }
    }

    /// Runs until `done` or until `span` has passed; says whether it was done.
    pub fn drive_until(&mut self, span: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + span;
        let mut steps = 0;
        self.collect();
        while !done(self) {
            if !self.step(end) {
                return done(self);
            }
            steps += 1;
            assert!(steps < 200_000, "livelock");
        }
        true
    }

    /// Each end has exactly one IKE SA and one CHILD SA, the same ones, with the same keys crosswise, and
    /// each sends on what the other receives.
    pub fn assert_one_tunnel(&mut self) {
        let (a, b) = (self.a.established(), self.b.established());
        assert_eq!((a.len(), b.len()), (1, 1), "{a:#?} {b:#?}");
        assert_eq!(a[0].spis, b[0].spis);
        assert_eq!((a[0].children.len(), b[0].children.len()), (1, 1), "{a:#?} {b:#?}");
        self.assert_children_match();
        assert_eq!((self.a.children.len(), self.b.children.len()), (1, 1));
        let (a, b) = (&self.a, &self.b);
        assert_eq!(a.outbound.as_ref(), b.children.keys().next());
        assert_eq!(b.outbound.as_ref(), a.children.keys().next());
    }

    /// Runs until no exchange is half done: each end has exactly the counterparts of the other's CHILD SAs.
    pub fn settle(&mut self, span: Duration) {
        let paired = |one: &Node, other: &Node| {
            one.children.values().all(|child| other.children.contains_key(&child.spi_out))
        };
        let settled = self.drive_until(span, |pair| paired(&pair.a, &pair.b) && paired(&pair.b, &pair.a));
        let shown = |node: &Node| {
            let mut pairs: Vec<_> =
                node.children.iter().map(|(spi_in, child)| (*spi_in, child.spi_out)).collect();
            pairs.sort_unstable();
            (pairs, node.endpoint.associations())
        };
        assert!(settled, "{:#x?} {:#x?}", shown(&self.a), shown(&self.b));
    }

    /// Every CHILD SA of one end has its counterpart at the other, with the same keys.
    pub fn assert_children_match(&self) {
        for (one, other) in [(&self.a, &self.b), (&self.b, &self.a)] {
            for (spi_in, child) in &one.children {
                let Some(counterpart) = other.children.get(&child.spi_out) else {
                    panic!("{spi_in:08x} has no counterpart")
                };
                assert_eq!(counterpart.spi_out, *spi_in);
                assert_eq!(counterpart.key_in, child.key_out);
                assert_eq!(counterpart.key_out, child.key_in);
                assert_eq!(counterpart.esn, child.esn);
            }
        }
    }
}
