//! One router and hand-written neighbours: how requests are answered and forwarded.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

use std::{
    net::Ipv6Addr,
    time::{Duration, Instant},
};

use babel::{
    Config, InterfaceConfig, InterfaceId, MULTICAST_GROUP, Prefix, Router, RouterId, Seqno,
    wire::{
        hello::Hello,
        ihu::Ihu,
        packet::Packet,
        parser::Parser,
        seqno_request::SeqnoRequest,
        tlv::Tlv,
        update::{Announcement, Update},
        writer::PacketWriter,
    },
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

const US: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);
const ORIGIN: RouterId = RouterId([7; 8]);

/// A router with one neighbour on each of three interfaces.
struct Bench {
    router: Router,
    now: Instant,
}

fn peer(interface: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 10 + u16::try_from(interface).unwrap())
}

fn lan() -> Prefix {
    Prefix::to("10.9.0.0/16".parse().unwrap())
}

impl Bench {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "virtual time needs some origin")]
        let now = Instant::now();
        let config = Config::new(RouterId([1; 8]));
        let mut router = Router::new(config, ChaCha20Rng::seed_from_u64(1), now).unwrap();
        for id in 0..3 {
            let interface = InterfaceConfig { timestamps: false, ..InterfaceConfig::new(US) };
            router.add_interface(InterfaceId(id), interface, now);
        }
        let mut bench = Self { router, now };
        for id in 0..3 {
            bench.hello(id);
        }
        bench.pass(Duration::from_secs(2));
        bench
    }

    /// The neighbour on an interface says that it is there, for long.
    fn hello(&mut self, id: u32) {
        let hello = Hello { unicast: false, seqno: Seqno(1), interval: 60_000, timestamp: None };
        let ihu = Ihu { address: None, rxcost: 10, interval: 60_000, echo: None, fast_hello: None };
        self.receive(id, &[Tlv::Hello(hello), Tlv::Ihu(ihu)]);
    }

    fn receive(&mut self, id: u32, tlvs: &[Tlv]) {
        let mut packet = Vec::new();
        let mut writer = PacketWriter::new(&mut packet, 1200, false);
        assert!(tlvs.iter().all(|tlv| writer.push(tlv)));
        writer.finish();
        self.router.handle_packet(InterfaceId(id), peer(id), true, &packet, self.now, self.now).unwrap();
    }

    /// The neighbour on an interface announces the LAN.
    fn announce(&mut self, id: u32, seqno: u16, metric: u16, interval: u16) {
        let announcement = Announcement {
            prefix: lan(),
            next_hop: peer(id).into(),
            router_id: ORIGIN,
            seqno: Seqno(seqno),
            metric,
            interval,
        };
        self.receive(id, &[Tlv::Update(Update::Announce(announcement))]);
    }

    /// What is sent within a time, by interface and whether to everyone.
    fn pass(&mut self, time: Duration) -> Vec<(u32, bool, Tlv)> {
        let end = self.now + time;
        let mut sent = self.drain();
        while let Some((at, _)) = self.router.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            self.router.handle_timeout(self.now);
            sent.extend(self.drain());
        }
        self.now = end;
        sent
    }

    fn drain(&mut self) -> Vec<(u32, bool, Tlv)> {
        let (mut packet, mut sent) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.router.poll_transmit(&mut packet, self.now) {
            let body = Packet::parse(&packet).unwrap().body;
            let everyone = transmit.destination == MULTICAST_GROUP;
            sent.extend(Parser::new(body, US).map(|tlv| (transmit.interface.0, everyone, tlv.unwrap())));
        }
        sent
    }
}

fn updates(sent: &[(u32, bool, Tlv)], id: u32) -> Vec<Update> {
    let on_interface = sent.iter().filter(|(interface, ..)| *interface == id);
    let update = |(_, _, tlv): &(u32, bool, Tlv)| match tlv {
        Tlv::Update(update) => Some(*update),
        _ => None,
    };
    on_interface.filter_map(update).collect()
}

fn seqno_requests(sent: &[(u32, bool, Tlv)]) -> Vec<(u32, SeqnoRequest)> {
    let request = |(id, _, tlv): &(u32, bool, Tlv)| match tlv {
        Tlv::SeqnoRequest(request) => Some((*id, *request)),
        _ => None,
    };
    sent.iter().filter_map(request).collect()
}

fn request(seqno: u16, hop_count: u8) -> Tlv {
    Tlv::SeqnoRequest(SeqnoRequest { prefix: lan(), router_id: ORIGIN, seqno: Seqno(seqno), hop_count })
}

#[test]
fn an_exact_request_is_answered_whatever_split_horizon_says() {
    let mut bench = Bench::new();
    bench.announce(0, 1, 50, 6000);
    bench.pass(Duration::from_secs(1));
    bench.receive(0, &[Tlv::RouteRequest { prefix: Some(lan()) }]);
    let sent = bench.pass(Duration::from_millis(10));
    assert!(
        matches!(updates(&sent, 0)[..], [Update::Announce(a)] if a.metric == 60 && a.router_id == ORIGIN)
    );
    let unknown = Prefix::to("10.77.0.0/16".parse().unwrap());
    bench.receive(0, &[Tlv::RouteRequest { prefix: Some(unknown) }]);
    let sent = bench.pass(Duration::from_millis(10));
    assert_eq!(updates(&sent, 0), vec![Update::Retract { prefix: unknown }]);
}

#[test]
fn wildcard_requests_are_answered_at_a_bounded_rate() {
    let mut bench = Bench::new();
    bench.router.announce(lan(), bench.now);
    bench.pass(Duration::from_secs(2));
    let mut answers = 0;
    for _ in 0..100 {
        bench.receive(1, &[Tlv::RouteRequest { prefix: None }]);
        answers += updates(&bench.pass(Duration::from_millis(10)), 1).len();
    }
    assert!((4..=7).contains(&answers), "{answers} in a second");
}

#[test]
fn a_satisfied_seqno_request_is_answered() {
    let mut bench = Bench::new();
    bench.announce(0, 5, 50, 6000);
    bench.pass(Duration::from_secs(1));
    for (wanted, hops) in [(5, 1), (4, 64)] {
        bench.receive(1, &[request(wanted, hops)]);
        let sent = bench.pass(Duration::from_millis(10));
        assert!(matches!(updates(&sent, 1)[..], [Update::Announce(a)] if a.seqno == Seqno(5)));
        assert_eq!(seqno_requests(&sent), vec![]);
    }
    // Another originator is as good.
    let other = SeqnoRequest { prefix: lan(), router_id: RouterId([8; 8]), seqno: Seqno(9), hop_count: 64 };
    bench.receive(1, &[Tlv::SeqnoRequest(other)]);
    assert_eq!(updates(&bench.pass(Duration::from_millis(10)), 1).len(), 1);
}

#[test]
fn a_seqno_request_is_forwarded_once() {
    let mut bench = Bench::new();
    bench.announce(0, 5, 50, 6000);
    bench.pass(Duration::from_secs(1));
    bench.receive(1, &[request(6, 1)]);
    assert_eq!(seqno_requests(&bench.pass(Duration::from_millis(10))), vec![], "its last hop");
    bench.receive(1, &[request(6, 64)]);
    bench.receive(2, &[request(6, 64)]);
    let forwarded = seqno_requests(&bench.pass(Duration::from_secs(20)));
    assert_eq!(forwarded.len(), 1, "no duplicate, no repetition: {forwarded:?}");
    assert_eq!((forwarded[0].0, forwarded[0].1.hop_count, forwarded[0].1.seqno), (0, 63, Seqno(6)));
    bench.receive(1, &[request(7, 64)]);
    bench.receive(2, &[request(7, 64)]);
    bench.pass(Duration::from_millis(10));
    bench.announce(0, 7, 50, 6000);
    let sent = bench.pass(Duration::from_millis(10));
    for requester in [1, 2] {
        assert!(matches!(updates(&sent, requester)[..], [Update::Announce(a)] if a.seqno == Seqno(7)));
    }
}

#[test]
fn a_seqno_request_never_goes_back() {
    let mut bench = Bench::new();
    bench.announce(0, 5, 50, 6000);
    bench.pass(Duration::from_secs(1));
    bench.receive(0, &[request(6, 64)]);
    assert_eq!(seqno_requests(&bench.pass(Duration::from_secs(1))), vec![]);
}

#[test]
fn our_own_request_is_repeated_until_it_is_answered() {
    let mut bench = Bench::new();
    bench.announce(0, 5, 50, 6000);
    bench.announce(1, 5, 300, 6000);
    bench.pass(Duration::from_secs(1));
    bench.receive(0, &[Tlv::Update(Update::Retract { prefix: lan() })]);
    let asked = seqno_requests(&bench.pass(Duration::from_secs(3)));
    // To everyone: three interfaces, at 0, 0.5 and 1.5 s.
    assert_eq!(asked.len(), 9, "{asked:?}");
    assert!(asked.iter().all(|(_, request)| request.seqno == Seqno(6) && request.hop_count > 1));
    bench.announce(1, 6, 300, 6000);
    assert_eq!(seqno_requests(&bench.pass(Duration::from_secs(30))), vec![]);
    assert_eq!(bench.router.selected(bench.now)[0].via, Some((InterfaceId(1), peer(1))));
}

#[test]
fn while_all_routes_are_unfeasible_we_ask_again_and_again() {
    let mut bench = Bench::new();
    bench.announce(0, 5, 50, 60_000);
    bench.announce(1, 5, 300, 60_000);
    bench.pass(Duration::from_secs(1));
    bench.receive(0, &[Tlv::Update(Update::Retract { prefix: lan() })]);
    for _ in 0..6 {
        let asked = seqno_requests(&bench.pass(Duration::from_secs(20)));
        assert!((6..60).contains(&asked.len()), "{} requests in 20 s", asked.len());
    }
    // A periodic update that says nothing new does not end it, the answer does.
    bench.announce(1, 5, 300, 60_000);
    assert_ne!(seqno_requests(&bench.pass(Duration::from_secs(20))), vec![]);
    bench.announce(1, 6, 300, 60_000);
    assert_eq!(seqno_requests(&bench.pass(Duration::from_secs(60))), vec![]);
}

#[test]
fn a_route_about_to_expire_is_asked_for() {
    let mut bench = Bench::new();
    bench.announce(0, 5, 50, 400);
    bench.pass(Duration::from_secs(9));
    let sent = bench.pass(Duration::from_secs(4));
    let asked = sent.iter().filter(|(id, everyone, tlv)| {
        *id == 0 && !everyone && *tlv == Tlv::RouteRequest { prefix: Some(lan()) }
    });
    assert_eq!(asked.count(), 1);
    assert_eq!(bench.router.selected(bench.now).len(), 1);
    bench.pass(Duration::from_secs(3));
    assert_eq!(bench.router.selected(bench.now).len(), 0, "14 s are three and a half intervals");
    assert_eq!(bench.router.unreachable().collect::<Vec<_>>(), vec![lan()]);
    bench.pass(Duration::from_secs(20));
    assert_eq!(bench.router.unreachable().count(), 0, "forgotten");
}
