//! Key exchanges of strangers that are computed elsewhere (RFC 7296 §2.6).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::wire::{Message, Payload};
use ikev2::{Path, PendingKeyExchange};
use support::pair::{LINK, Pair, Side, address, calm, connection, node_config};

fn deferring(seed: u64, hybrid: bool) -> Pair {
    let [mut a, mut b] = [Side::A, Side::B].map(|side| node_config(side, calm()));
    a.offer_hybrid = hybrid;
    b.defer_key_exchange = true;
    let mut pair = Pair::with_configs(seed, a, b);
    let now = pair.now;
    for side in [Side::A, Side::B] {
        pair.node(side).endpoint.set_connection(LINK, connection(side), now);
    }
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair
}

/// Lets another thread do what B has to compute; how much it was.
fn work(pair: &mut Pair) -> usize {
    let mut done = 0;
    while let Some(pending) = pair.b.endpoint.poll_work() {
        let finished = std::thread::spawn(move || PendingKeyExchange::run(pending)).join().unwrap();
        let now = pair.now;
        pair.b.endpoint.finish_key_exchange(finished, now);
        done += 1;
    }
    done
}

#[test]
fn the_handshake_goes_on_when_another_thread_is_done() {
    for hybrid in [false, true] {
        let mut pair = deferring(1, hybrid);
        pair.drive_for(Duration::from_millis(300));
        assert!(pair.b.established().is_empty(), "nobody has computed anything");
        assert_eq!(work(&mut pair), 1);
        pair.drive_for(Duration::from_millis(300));
        pair.assert_one_tunnel();
        assert_eq!(work(&mut pair), 0);
    }
}

#[test]
fn repeated_requests_ask_for_the_work_once_and_wait_in_bounds() {
    let mut pair = deferring(2, false);
    pair.network.duplicate_percent = 100;
    // A repeats its IKE_AUTH for half a minute.
    pair.drive_for(Duration::from_secs(20));
    assert_eq!(work(&mut pair), 1);
    pair.drive_for(Duration::from_secs(15));
    pair.assert_one_tunnel();
    assert_eq!((pair.a.ups, pair.b.ups), (1, 1));
}

#[test]
fn work_for_a_handshake_that_is_over_is_thrown_away() {
    let mut pair = deferring(3, false);
    pair.drive_for(Duration::from_millis(100));
    let pending = pair.b.endpoint.poll_work().unwrap();
    pair.drive_for(Duration::from_secs(120));
    assert!(pair.b.endpoint.associations().is_empty());
    let now = pair.now;
    pair.b.endpoint.finish_key_exchange(pending.run(), now);
    pair.drive_for(Duration::from_secs(1));
    assert!(pair.b.endpoint.associations().is_empty() && pair.b.children.is_empty());
}

/// A value that is no point leads to no keys, and costs one computation however often it is tried.
#[test]
fn a_value_that_is_none_is_computed_once() {
    let mut pair = deferring(4, false);
    pair.collect();
    pair.flights.clear();
    let mut message = Message::decode(&pair.log[0].1).unwrap();
    for payload in &mut message.payloads {
        if let Payload::KeyExchange { data, .. } = payload {
            data.fill(0);
        }
    }
    let path = Path { local: address(Side::B), remote: address(Side::A) };
    let now = pair.now;
    pair.b.endpoint.handle_datagram(path, &message.encode(), now);
    pair.collect();
    let spi_r = Message::decode(&pair.log.last().unwrap().1).unwrap().header.spi_r;
    pair.flights.clear();
    // Anything that looks encrypted asks for the keys.
    let mut header = message.header;
    (header.spi_r, header.message_id, header.exchange_code) = (spi_r, 1, 35);
    let body = ikev2::wire::Encrypted { first_inner: 35, body: vec![0; 64] };
    let request = Message { header, payloads: vec![Payload::Encrypted(body)] }.encode();
    for _ in 0..100 {
        pair.b.endpoint.handle_datagram(path, &request, now);
    }
    assert_eq!(work(&mut pair), 1);
    pair.b.endpoint.handle_datagram(path, &request, now);
    assert_eq!(work(&mut pair), 0);
    assert!(pair.b.established().is_empty());
}
