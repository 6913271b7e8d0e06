//! Runs the input as a programme: packets from a few neighbours on two interfaces, time, our own announcements.
//! Whatever happens, what the router sends is well-formed and bounded, and what it selects is usable.

use std::{
    net::Ipv6Addr,
    time::{Duration, Instant},
};

use babel::{
    Config, INFINITY, ImportPolicy, InterfaceConfig, InterfaceId, Prefix, Router, RouterId,
    wire::{packet::Packet, parser::Parser},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const LOCAL: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);
const MTU: u16 = 1280;
const ROUTES_PER_NEIGHBOUR: usize = 32;
const NEIGHBOURS: usize = 3;
/// Packets at one instant; more is a livelock.
const BURST: usize = 200;

struct Session {
    router: Router,
    now: Instant,
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut session = Session::new();
    let mut rest = input;
    // Enough for any story, and fast.
    for _ in 0..200 {
        let Some((operation, after)) = rest.split_first() else { break };
        rest = session.perform(*operation, after);
        session.drain();
    }
    session.check();
    session.advance(Duration::from_secs(40));
    session.check();
    session.router.shutdown(session.now);
    session.check();
    assert_eq!(session.router.poll_timeout(), None);
}

impl Session {
    fn new() -> Self {
        // The only use of the clock is as an origin of virtual time.
        #[expect(clippy::disallowed_methods, reason = "virtual time needs some origin")]
        let now = Instant::now();
        let mut config = Config::new(RouterId([1; 8]));
        config.limits.routes_per_neighbour = ROUTES_PER_NEIGHBOUR;
        config.limits.neighbours_per_interface = NEIGHBOURS;
        config.limits.sources = 64;
        config.limits.requests = 16;
        let mut router = Router::new(config, ChaCha20Rng::seed_from_u64(1), now).expect("a valid router-id");
        for id in 0..2 {
            let mut interface = InterfaceConfig::new(LOCAL);
            interface.fast_hello = (id == 0).then_some(Duration::from_millis(100));
            interface.split_horizon = id == 0;
            router.add_interface(InterfaceId(id), interface, now);
        }
        router.announce(own(0), now);
        Self { router, now }
    }

    /// Performs one operation and returns what is left of the programme.
    fn perform<'a>(&mut self, operation: u8, rest: &'a [u8]) -> &'a [u8] {
        let (argument, rest) = rest.split_first().map_or((0, rest), |(first, rest)| (*first, rest));
        match operation % 8 {
            0 => self.advance(Duration::from_millis(u64::from(argument) * 20)),
            1 => {
                self.now += Duration::from_millis(u64::from(argument) * 400);
                self.router.handle_timeout(self.now);
            }
            2 => self.router.announce_with_metric(own(argument), u16::from(argument) << 8, self.now),
            3 => self.router.withdraw(own(argument), self.now),
            4 => self.change(argument),
            wrapped => {
                let (length, rest) = rest.split_first().map_or((0, rest), |(first, rest)| (*first, rest));
                let (body, rest) = rest.split_at(usize::from(length).min(rest.len()));
                self.deliver(argument, body, wrapped != 5);
                return rest;
            }
        }
        rest
    }

    fn change(&mut self, argument: u8) {
        match argument % 4 {
            0 => self.router.traffic_seen(InterfaceId(0), self.now),
            1 => self.router.probe_path_mtu(InterfaceId(1), 1400, self.now),
            2 => {
                let accept_default_routes = argument > 127;
                let policy = ImportPolicy { accept_default_routes, ..ImportPolicy::default() };
                self.router.set_import_policy(policy, self.now);
            }
            _ => {
                self.router.remove_interface(InterfaceId(1), self.now);
                self.router.add_interface(InterfaceId(1), InterfaceConfig::new(LOCAL), self.now);
            }
        }
    }

    fn deliver(&mut self, from: u8, body: &[u8], with_header: bool) {
        let length = u16::try_from(body.len()).expect("at most 255").to_be_bytes();
        let header: &[u8] = if with_header { &[42, 2, length[0], length[1]] } else { &[] };
        let interface = InterfaceId(u32::from(from & 1));
        let source = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 2 + u16::from(from >> 1 & 3));
        let payload = [header, body].concat();
        // Refused or not: the router must go on.
        let _ = self.router.handle_packet(interface, source, from & 8 == 0, &payload, self.now, self.now);
    }

    /// Lets time pass, waking the router when it wants.
    fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((at, _)) = self.router.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            self.router.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        let mut buffer = Vec::new();
        let mut packets = 0;
        while self.router.poll_transmit(&mut buffer, self.now).is_some() {
            packets += 1;
            assert!(packets < BURST, "livelock");
            // Probes are longer than the MTU by design.
            assert!(buffer.len() + 48 <= usize::from(MTU).max(1400));
            let packet = Packet::parse(&buffer).expect("we write packets");
            assert!(Parser::new(packet.body, LOCAL).all(|tlv| tlv.is_ok()), "we write well-formed TLVs");
        }
        while self.router.poll_event().is_some() {}
    }

    fn check(&mut self) {
        self.drain();
        let selected = self.router.selected(self.now);
        for report in &selected {
            assert!(report.feasible && report.metric < INFINITY, "{report:?}");
        }
        let learned = self.router.routes(self.now).iter().filter(|report| report.via.is_some()).count();
        assert!(learned <= 2 * NEIGHBOURS * ROUTES_PER_NEIGHBOUR);
        let counted: usize =
            self.router.neighbours(self.now).iter().map(|neighbour| neighbour.selected).sum();
        assert_eq!(counted, selected.len());
    }
}

fn own(index: u8) -> Prefix {
    let address = Ipv6Addr::new(0xFD00, 0, 0, u16::from(index), 0, 0, 0, 0);
    Prefix::to(ipnet::Ipv6Net::new(address, 64).expect("64 is a length").into())
}
