//! Peers that lost their state, and those who only say so in their name (RFC 7296 §2.4, §2.21.4).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::Path;
use ikev2::wire::{ExchangeType, Header, Message, Notify, Payload};
use support::pair::{LINK, Node, Pair, Side, address, calm, connection, node_config};

/// A keeps the link; B restarts without a word and cannot dial.
fn restart(seed: u64) -> Pair {
    let mut pair = Pair::new(seed, calm());
    pair.connect_and_keep();
    pair.assert_one_tunnel();
    let now = pair.now;
    pair.b = Node::new(Side::B, node_config(Side::B, calm()), 99);
    let mut waiting = connection(Side::B);
    waiting.remote_address = None;
    pair.b.endpoint.set_connection(LINK, waiting, now);
    pair
}

#[test]
fn a_restarted_peer_is_dialled_again_within_seconds_of_the_next_liveness_check() {
    let mut pair = restart(1);
    let restarted = pair.elapsed();
    assert!(pair.drive_until(Duration::from_secs(60), |pair| pair.b.outbound.is_some()));
    let waited = pair.elapsed() - restarted;
    assert!(waited < Duration::from_secs(16), "{waited:?}");
    pair.drive_for(Duration::from_secs(10));
    pair.assert_one_tunnel();
}

#[test]
fn traffic_that_the_restarted_peer_does_not_understand_makes_it_quicker() {
    let mut pair = restart(2);
    let (restarted, now) = (pair.elapsed(), pair.now);
    let path = Path { local: address(Side::B), remote: address(Side::A) };
    let spi = pair.a.outbound.unwrap();
    pair.b.endpoint.unknown_esp_spi(path, spi, now);
    assert!(pair.drive_until(Duration::from_secs(60), |pair| pair.b.outbound.is_some()));
    let waited = pair.elapsed() - restarted;
    assert!(waited < Duration::from_secs(7), "{waited:?}");
}

/// Somebody answers every request of A at once with "unknown SPI", and B answers too.
#[test]
fn hints_by_somebody_else_end_nothing() {
    for loss in [0, 30] {
        let mut pair = Pair::established(3, calm());
        pair.network.loss_percent = loss;
        let path = Path { local: address(Side::A), remote: address(Side::B) };
        let mut seen = pair.log.len();
        for _ in 0..600 {
            pair.drive_for(Duration::from_millis(100));
            let fresh: Vec<Vec<u8>> = pair.log[seen..]
                .iter()
                .filter(|(from, _)| *from == Side::A)
                .map(|(_, octets)| octets.clone())
                .collect();
            seen = pair.log.len();
            let now = pair.now;
            for octets in fresh {
                let header = Header::decode(&octets).unwrap();
                let header = Header { response: true, initiator: !header.initiator, ..header };
                let hint =
                    Message { header, payloads: vec![Payload::Notify(Notify::new(4, vec![]))] }.encode();
                for _ in 0..10 {
                    pair.a.endpoint.handle_datagram(path, &hint, now);
                }
            }
        }
        assert_eq!(pair.a.saw("IkeDown"), 0, "{loss} % lost: {:?}", pair.a.events);
    }
}

#[test]
fn hints_cost_a_check_now_and_then_and_answers_to_strangers_are_few() {
    let mut pair = Pair::established(4, calm());
    let path = Path { local: address(Side::A), remote: address(Side::B) };
    let spi = pair.a.outbound.unwrap();
    let header = Header::new((77, 0), ExchangeType::Informational, true, false, 0);
    let hint = Payload::Notify(Notify::new(11, spi.to_be_bytes().to_vec()));
    let hint = Message { header, payloads: vec![hint] }.encode();
    let stranger = Header::new((77, 88), ExchangeType::CreateChildSa, true, false, 3);
    let stranger = Message { header: stranger, payloads: vec![] }.encode();
    let before = pair.a.sent;
    for _ in 0..1000 {
        let now = pair.now;
        pair.a.endpoint.handle_datagram(path, &hint, now);
        pair.a.endpoint.handle_datagram(path, &stranger, now);
    }
    pair.drive_for(Duration::from_millis(500));
    let sent = pair.a.sent - before;
    assert!((2..=6).contains(&sent), "one check and five answers at most: {sent}");
    pair.assert_one_tunnel();
    // Responses are never answered: two nodes cannot talk to each other about nothing.
    let response = Header::new((77, 88), ExchangeType::Informational, true, true, 3);
    let response = Message { header: response, payloads: vec![] }.encode();
    let (before, now) = (pair.a.sent, pair.now);
    pair.a.endpoint.handle_datagram(path, &response, now);
    pair.collect();
    assert_eq!(pair.a.sent, before);
}
