//! Cookies and limits under load (RFC 7296 §2.6).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use ikev2::wire::{ExchangeType, Header, Message, Notify, Payload};
use ikev2::{Config, Path};
use support::pair::{LINK, Pair, Side, address, calm, connection, node_config};

const COOKIE: u16 = 16390;

fn with_thresholds(change: impl FnOnce(&mut Config)) -> Pair {
    let mut b = node_config(Side::B, calm());
    change(&mut b);
    let mut pair = Pair::with_configs(1, node_config(Side::A, calm()), b);
    let now = pair.now;
    pair.a.endpoint.set_connection(LINK, connection(Side::A), now);
    pair.b.endpoint.set_connection(LINK, connection(Side::B), now);
    pair
}

/// A's first request, as octets.
fn first_request(pair: &mut Pair) -> Vec<u8> {
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    let mut buffer = Vec::new();
    pair.a.endpoint.poll_transmit(&mut buffer).unwrap();
    buffer
}

fn path_from(remote: SocketAddr) -> Path {
    Path { local: address(Side::B), remote }
}

fn answer_to(pair: &mut Pair, path: Path, request: &[u8]) -> Option<Message> {
    let now = pair.now;
    pair.b.endpoint.handle_datagram(path, request, now);
    let mut buffer = Vec::new();
    let to = pair.b.endpoint.poll_transmit(&mut buffer)?;
    assert_eq!(to.remote, path.remote);
    Some(Message::decode(&buffer).unwrap())
}

fn cookie_of(message: &Message) -> Option<Vec<u8>> {
    message.payloads.iter().find_map(|payload| match payload {
        Payload::Notify(Notify { kind: COOKIE, data, .. }) => Some(data.clone()),
        _ => None,
    })
}

#[test]
fn a_cookie_costs_one_round_trip_and_no_state() {
    let mut pair = with_thresholds(|config| config.limits.cookie_threshold = 0);
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(1));
    pair.assert_one_tunnel();
    assert_eq!(pair.log.len(), 6);
    let retry = Message::decode(&pair.log[2].1).unwrap();
    assert!(matches!(&retry.payloads[0], Payload::Notify(Notify { kind: COOKIE, .. })), "it comes first");
    let first = Message::decode(&pair.log[0].1).unwrap();
    assert_eq!(first.header.spi_i, retry.header.spi_i);
    let nonce = |message: &Message| message.payloads.iter().find(|p| matches!(p, Payload::Nonce(_))).cloned();
    assert_eq!(nonce(&first), nonce(&retry));
}

#[test]
fn a_mangled_cookie_counts_as_none() {
    let mut pair = with_thresholds(|config| config.limits.cookie_threshold = 0);
    let request = first_request(&mut pair);
    let from = path_from(address(Side::A));
    let cookie = answer_to(&mut pair, from, &request).and_then(|answer| cookie_of(&answer)).unwrap();
    let with_cookie = |cookie: Vec<u8>| {
        let mut message = Message::decode(&request).unwrap();
        message.payloads.insert(0, Payload::Notify(Notify::new(COOKIE, cookie)));
        message.encode()
    };
    let mut wrong = cookie.clone();
    wrong[5] ^= 1;
    for bad in [wrong, vec![], cookie[1..].to_vec()] {
        let answer = answer_to(&mut pair, from, &with_cookie(bad)).unwrap();
        assert!(cookie_of(&answer).is_some());
    }
    let elsewhere = path_from("203.0.113.1:9".parse().unwrap());
    assert!(cookie_of(&answer_to(&mut pair, elsewhere, &with_cookie(cookie.clone())).unwrap()).is_some());
    let answer = answer_to(&mut pair, from, &with_cookie(cookie)).unwrap();
    assert!(cookie_of(&answer).is_none() && answer.header.spi_r != 0);
}

#[test]
fn a_flood_meets_cookies_then_limits_and_leaves_no_trace() {
    let mut pair = with_thresholds(|config| {
        config.limits.cookie_threshold_per_source = 3;
        config.limits.cookie_threshold = 20;
        config.limits.half_open = 30;
    });
    let template = Message::decode(&first_request(&mut pair)).unwrap();
    let request = |spi_i: u64| {
        let mut message = template.clone();
        message.header.spi_i = spi_i;
        message.encode()
    };
    let mut admitted = 0;
    for spi in 1..=100u64 {
        let source = format!("203.0.113.{}:500", spi % 10).parse().unwrap();
        if let Some(answer) = answer_to(&mut pair, path_from(source), &request(spi)) {
            admitted += usize::from(cookie_of(&answer).is_none());
        }
    }
    assert_eq!(admitted, 20, "after that everybody needs a cookie");
    // A real peer still gets in, with a cookie.
    let now = pair.now;
    pair.a.endpoint.handle_timeout(now + Duration::from_secs(1));
    pair.drive_for(Duration::from_secs(3));
    pair.assert_one_tunnel();
    // Half-open associations expire; their count returns to zero and cookies end.
    pair.drive_for(Duration::from_secs(40));
    assert_eq!(pair.b.endpoint.associations().len(), 1);
    let answer = answer_to(&mut pair, path_from("203.0.113.1:500".parse().unwrap()), &request(1000)).unwrap();
    assert!(cookie_of(&answer).is_none());
}

#[test]
fn beyond_the_hard_limit_strangers_are_dropped() {
    let mut pair = with_thresholds(|config| {
        config.limits.half_open_per_source = 2;
        config.limits.cookie_threshold_per_source = 100;
    });
    let template = Message::decode(&first_request(&mut pair)).unwrap();
    for spi in 1..=5u64 {
        let mut message = template.clone();
        message.header.spi_i = spi;
        let answer = answer_to(&mut pair, path_from("203.0.113.7:500".parse().unwrap()), &message.encode());
        assert_eq!(answer.is_some(), spi <= 2);
    }
    pair.collect();
    assert!(pair.b.saw("HalfOpenLimit") > 0);
}

#[test]
fn our_own_dials_do_not_count_as_load() {
    let mut pair = with_thresholds(|config| config.limits.cookie_threshold = 1);
    let now = pair.now;
    pair.b.endpoint.dial(LINK, now).unwrap();
    pair.b.endpoint.poll_transmit(&mut Vec::new()).unwrap();
    pair.a.endpoint.dial(LINK, now).unwrap();
    let mut request = Vec::new();
    pair.a.endpoint.poll_transmit(&mut request).unwrap();
    let answer = answer_to(&mut pair, path_from(address(Side::A)), &request).unwrap();
    assert!(cookie_of(&answer).is_none());
}

#[test]
fn a_peer_that_asks_for_cookies_for_ever_is_given_up() {
    let mut pair = with_thresholds(|_| {});
    let request = Message::decode(&first_request(&mut pair)).unwrap();
    let mut sent = 0;
    for round in 0..50u8 {
        let spis = (request.header.spi_i, 0);
        let header = Header::new(spis, ExchangeType::IkeSaInit, false, true, 0);
        let payloads = vec![Payload::Notify(Notify::new(COOKIE, vec![round; 8]))];
        let path = Path { local: address(Side::A), remote: address(Side::B) };
        let now = pair.now;
        pair.a.endpoint.handle_datagram(path, &Message { header, payloads }.encode(), now);
        sent += usize::from(pair.a.endpoint.poll_transmit(&mut Vec::new()).is_some());
    }
    assert!(sent < 10, "{sent}");
}
