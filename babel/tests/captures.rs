//! What BIRD and babeld say to each other is understood, and a router believes it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod support;

use std::net::Ipv6Addr;

use babel::{
    Config, InterfaceConfig, InterfaceId, Prefix, Router, RouterId,
    wire::{packet::Packet, parser::Parser, tlv::Tlv, update::Update},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use support::captures::{Captured, parse};

const SHA256: &str = include_str!("captures/bird-babeld-hmacsha256.hex");
const BLAKE2S: &str = include_str!("captures/bird-babeld-blake2s128.hex");

fn tlvs(captured: &Captured) -> Vec<Tlv> {
    let packet = Packet::parse(&captured.payload).expect("a Babel packet");
    Parser::new(packet.body, captured.source).map(|tlv| tlv.expect("a well-formed TLV")).collect()
}

fn prefix(text: &str) -> Prefix {
    Prefix::to(text.parse().unwrap())
}

#[test]
fn every_tlv_is_well_formed() {
    let captured: Vec<_> = [SHA256, BLAKE2S].into_iter().flat_map(parse).collect();
    assert_eq!(captured.len(), 53 + 30);
    let all: Vec<_> = captured.iter().flat_map(tlvs).collect();
    let hellos = all.iter().filter(|tlv| matches!(tlv, Tlv::Hello(hello) if hello.timestamp.is_some()));
    let ihus = all.iter().filter(|tlv| matches!(tlv, Tlv::Ihu(ihu) if ihu.echo.is_some()));
    assert!(hellos.count() >= 60);
    assert!(ihus.count() >= 15);
    assert!(all.iter().any(|tlv| matches!(tlv, Tlv::RouteRequest { prefix: None })));
}

#[test]
fn first_announcement_of_bird() {
    let captured = parse(BLAKE2S);
    let announced: Vec<_> = tlvs(&captured[0])
        .into_iter()
        .filter_map(|tlv| match tlv {
            Tlv::Update(Update::Announce(a)) => Some((a.prefix, a.next_hop, a.metric, a.seqno.0, a.interval)),
            _ => None,
        })
        .collect();
    let next_hop = captured[0].source.into();
    let expected = vec![
        (prefix("10.1.0.1/32"), next_hop, 0, 1, 400),
        (prefix("2001:db8:a::1/128"), next_hop, 0, 1, 400),
    ];
    assert_eq!(announced, expected, "IPv4 by AE 4");
}

#[test]
fn a_router_in_the_place_of_babeld_learns_the_routes_of_bird() {
    let bird: Ipv6Addr = "fe80::a".parse().unwrap();
    let babeld: Ipv6Addr = "fe80::b".parse().unwrap();
    #[expect(clippy::disallowed_methods, reason = "virtual time needs some origin")]
    let now = std::time::Instant::now();
    let config = Config::new(RouterId([9; 8]));
    let mut router = Router::new(config, ChaCha20Rng::seed_from_u64(1), now).unwrap();
    router.add_interface(InterfaceId(1), InterfaceConfig::new(babeld), now);
    for captured in parse(SHA256).iter().filter(|captured| captured.source == bird) {
        let multicast = captured.destination.is_multicast();
        router.handle_packet(InterfaceId(1), bird, multicast, &captured.payload, now, now).unwrap();
    }
    let neighbours = router.neighbours(now);
    assert_eq!((neighbours.len(), neighbours[0].txcost, neighbours[0].up), (1, 96, true));
    let selected: Vec<_> =
        router.selected(now).into_iter().map(|r| (r.prefix, r.advertised_metric)).collect();
    assert!(selected.contains(&(prefix("2001:db8:a::1/128"), 0)), "{selected:?}");
    assert!(selected.contains(&(prefix("10.1.0.1/32"), 0)), "{selected:?}");
}
