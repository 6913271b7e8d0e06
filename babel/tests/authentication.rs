//! RFC 8967 between our routers, and with packets of BIRD and babeld.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod support;

use babel::{
    Event, InterfaceId, MacAlgorithm, MacKey, PacketError, Violation,
    wire::{mac::Freshness, packet::Packet},
};
use support::{
    captures::parse,
    topology::{Network, millis, seconds},
};

fn key(algorithm: MacAlgorithm, octet: u8) -> MacKey {
    MacKey::new(algorithm, &[octet; 32]).unwrap()
}

fn both(n: &Network) -> bool {
    n.path(0, 1).is_some() && n.path(1, 0).is_some()
}

fn with_keys(keys: [Vec<MacKey>; 2], seed: u64) -> Network {
    let mut network = Network::new(2, seed);
    network.refusals_allowed = true;
    network.link(0, 1, millis(100));
    for (index, keys) in keys.into_iter().enumerate() {
        network.with_router(index, |router, now| router.set_mac_keys(InterfaceId(0), keys, now));
    }
    network
}

#[test]
fn same_key_works_after_a_challenge() {
    for algorithm in [MacAlgorithm::HmacSha256, MacAlgorithm::Blake2s128] {
        let mut network = Network::new(2, 1);
        network.refusals_allowed = true;
        network.interface_config.mac_keys = vec![key(algorithm, 7)];
        network.link(0, 1, millis(100));
        let took = network.run_until(seconds(5), both);
        assert!(took.unwrap() < millis(450), "{took:?}");
        assert!(network.violations.iter().all(|violation| *violation == Violation::Challenged));
        network.violations.clear();
        network.run(seconds(120));
        assert_eq!(network.violations, vec![]);
    }
}

#[test]
fn other_keys_or_none_do_not() {
    let sha = |octet| vec![key(MacAlgorithm::HmacSha256, octet)];
    for keys in [[sha(1), sha(2)], [sha(1), vec![key(MacAlgorithm::Blake2s128, 1)]]] {
        let mut network = with_keys(keys, 2);
        network.run(seconds(20));
        assert!(!both(&network) && network.path(0, 1).is_none());
        assert!(network.violations.contains(&Violation::NotAuthenticated));
    }
    let mut network = with_keys([sha(1), vec![]], 3);
    network.run(seconds(20));
    assert!(network.path(0, 1).is_none(), "the one with a key refuses");
}

#[test]
fn keys_are_rotated_without_a_gap() {
    let old = key(MacAlgorithm::HmacSha256, 1);
    let new = key(MacAlgorithm::Blake2s128, 2);
    let mut network = with_keys([vec![old.clone()], vec![old.clone()]], 4);
    assert!(network.run_until(seconds(5), both).is_some());
    let steps = [vec![old, new.clone()], vec![new]];
    for keys in steps {
        for index in 0..2 {
            network.with_router(index, |router, now| router.set_mac_keys(InterfaceId(0), keys.clone(), now));
            network.run(seconds(5));
        }
    }
    let lost = network.log.iter().any(|(_, _, event)| matches!(event, Event::RouteLost { .. }));
    assert!(both(&network) && !lost);
}

#[test]
fn a_restarted_peer_is_challenged_again() {
    let mut network = Network::new(2, 5);
    network.refusals_allowed = true;
    network.interface_config.mac_keys = vec![key(MacAlgorithm::HmacSha256, 7)];
    network.link(0, 1, millis(100));
    network.run(seconds(10));
    network.boot(1, None);
    let took = network.run_until(seconds(5), |n| n.path(1, 0).is_some());
    assert!(took.unwrap() < millis(450), "{took:?}");
}

#[test]
fn macs_of_bird_and_babeld_are_right() {
    let secret: Vec<u8> = (0..32).collect();
    let cases = [
        (MacAlgorithm::HmacSha256, include_str!("captures/bird-babeld-hmacsha256.hex")),
        (MacAlgorithm::Blake2s128, include_str!("captures/bird-babeld-blake2s128.hex")),
    ];
    for (algorithm, capture) in cases {
        #[expect(clippy::disallowed_methods, reason = "virtual time needs some origin")]
        let now = std::time::Instant::now();
        for captured in parse(capture) {
            let config = babel::Config::new(babel::RouterId([9; 8]));
            let rng = rand_chacha::rand_core::SeedableRng::seed_from_u64(1);
            let mut router = babel::Router::new(config, rng, now).unwrap();
            let multicast = captured.destination.is_multicast();
            let local = if multicast { "fe80::99".parse().unwrap() } else { captured.destination };
            let mut interface = babel::InterfaceConfig::new(local);
            interface.mac_keys = vec![MacKey::new(algorithm, &secret).unwrap()];
            router.add_interface(InterfaceId(1), interface, now);
            let mut handle = |payload: &[u8]| {
                router.handle_packet(InterfaceId(1), captured.source, multicast, payload, now, now)
            };
            // The MAC is right, only we do not know yet whether the packet is fresh.
            assert_eq!(handle(&captured.payload), Err(PacketError::Violation(Violation::Challenged)));
            let mut damaged = captured.payload.clone();
            damaged[5] ^= 1;
            assert!(
                handle(&damaged).is_err_and(|error| error != PacketError::Violation(Violation::Challenged))
            );
            let packet = Packet::parse(&captured.payload).unwrap();
            assert!(Freshness::parse(packet.body).counter.is_some());
        }
    }
}
