//! A peer that authenticated itself and is hostile or broken all the same (RFC 7296 §2.5, §2.21.3, §2.25).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::wire::{Delete, ExchangeType, Notify, Payload, Proposal, Transform};
use proptest::prelude::*;
use support::impostor::Impostor;
use support::pair::{Pair, Side, calm, node_config};

use ExchangeType::{CreateChildSa, IkeAuth, IkeFollowupKe, IkeIntermediate, Informational};

/// A tunnel that A dialled, and somebody who has A's keys.
fn tunnel(seed: u64) -> (Pair, Impostor) {
    let [a, b] = [Side::A, Side::B].map(|side| {
        let mut config = node_config(side, calm());
        config.keylog = true;
        config
    });
    let mut pair = Pair::with_configs(seed, a, b);
    pair.connect();
    let impostor = Impostor::new(&mut pair, Side::A);
    (pair, impostor)
}

fn notify(kind: u16) -> Payload {
    Payload::Notify(Notify::new(kind, vec![]))
}

/// Kinds of the notifications in a response.
fn kinds(answer: Option<Vec<Payload>>) -> Vec<u16> {
    let payloads = answer.expect("an answer").into_iter();
    payloads
        .filter_map(|payload| if let Payload::Notify(notify) = payload { Some(notify.kind) } else { None })
        .collect()
}

const INVALID_SYNTAX: u16 = 7;

#[test]
fn what_does_not_parse_is_answered_with_invalid_syntax_and_ends_the_association() {
    let selectors = |body: &[u8]| {
        let length = u16::try_from(4 + body.len()).unwrap().to_be_bytes();
        [&[0, 0, length[0], length[1]], body].concat()
    };
    let address_range = |length: u8, octets: usize| {
        [&[1, 0, 0, 0, 7, 0, 0, length, 0, 0, 0xFF, 0xFF][..], &vec![0; octets]].concat()
    };
    for (first, octets) in [
        (41, vec![0, 0, 0, 3]),
        (41, vec![0, 0, 0, 200, 1, 2, 3]),
        (41, vec![0, 0]),
        (33, vec![0, 0, 0, 4]),
        // Traffic selectors: shorter than their header, IPv4 with a long body, more than there are.
        (44, selectors(&address_range(3, 8))),
        (44, selectors(&address_range(40, 32))),
        (44, selectors(&[9, 0, 0, 0])),
        (42, vec![0, 0, 0, 8, 3, 4, 0, 200]),
        (42, vec![0, 0, 0, 12, 3, 8, 0, 1, 1, 2, 3, 4]),
        (40, vec![0, 0, 0, 6, 1, 2]),
    ] {
        let (mut pair, mut impostor) = tunnel(1);
        let answer = impostor.ask_octets(&mut pair, Informational, first, &octets);
        assert_eq!(kinds(answer), [INVALID_SYNTAX], "{first} {octets:02x?}");
        assert!(pair.b.established().is_empty() && pair.b.children.is_empty());
        assert_eq!(pair.b.saw("ProtocolError"), 1);
        let sent = pair.b.sent;
        pair.drive_for(Duration::from_millis(100));
        assert_eq!(pair.b.sent, sent, "no DELETE follows");
    }
}

#[test]
fn an_unknown_critical_payload_inside_is_named_and_the_association_stays() {
    let (mut pair, mut impostor) = tunnel(2);
    for (flags, expected) in [(0x80, vec![1]), (0, vec![]), (0x80, vec![1])] {
        let answer = impostor.ask_octets(&mut pair, Informational, 200, &[0, flags, 0, 6, 1, 2]);
        if flags == 0x80 {
            assert_eq!(answer.as_deref(), Some(&[Payload::Notify(Notify::new(1, vec![200]))][..]));
        }
        assert_eq!(kinds(answer), expected);
    }
    // The flag means nothing on a payload that is known.
    let vendor = [0, 0x80, 0, 8, 1, 2, 3, 4];
    assert_eq!(kinds(impostor.ask_octets(&mut pair, Informational, 43, &vendor)), [0; 0]);
    assert_eq!(pair.b.established().len(), 1);
}

#[test]
fn exchanges_out_of_place_are_refused() {
    for exchange in [IkeAuth, IkeIntermediate] {
        let (mut pair, mut impostor) = tunnel(3);
        assert_eq!(kinds(impostor.ask(&mut pair, exchange, &[])), [INVALID_SYNTAX]);
        assert!(pair.b.established().is_empty());
    }
    let (mut pair, mut impostor) = tunnel(3);
    let payloads = [
        Payload::KeyExchange { method: 36, data: vec![0; 1184] },
        Payload::Notify(Notify::new(16441, vec![1, 2])),
    ];
    assert_eq!(kinds(impostor.ask(&mut pair, IkeFollowupKe, &payloads)), [47], "STATE_NOT_FOUND");
    assert_eq!(pair.b.established().len(), 1);
}

/// REDIRECT, windows, more addresses, and what an extension announces: nothing of it was agreed.
#[test]
fn notifications_that_nobody_asked_for_change_nothing() {
    let (mut pair, mut impostor) = tunnel(4);
    for kind in [16385, 16394, 16396, 16397, 16398, 16399, 16407, 16418, 16430, 16438, 16441, 40000, 65535] {
        let payload = Payload::Notify(Notify::new(kind, vec![1, 2, 3, 4]));
        assert_eq!(impostor.ask(&mut pair, Informational, &[payload]), Some(vec![]), "{kind}");
    }
    assert_eq!(pair.b.established().len(), 1);
    assert_eq!(pair.b.saw("IkeDown") + pair.b.saw("PathChanged") + pair.b.saw("ChildDown"), 0);
}

#[test]
fn a_cookie2_comes_back_and_a_nat_that_is_not_there_is_refused() {
    let (mut pair, mut impostor) = tunnel(5);
    let cookie = Payload::Notify(Notify::new(16401, vec![9; 40]));
    let answer = impostor.ask(&mut pair, Informational, std::slice::from_ref(&cookie));
    assert_eq!(answer, Some(vec![cookie.clone()]));
    let claimed = Payload::Notify(Notify::new(16402, vec![10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 1]));
    let answer = impostor.ask(&mut pair, Informational, &[notify(16400), claimed, cookie.clone()]);
    assert_eq!(answer, Some(vec![cookie, notify(41)]), "UNEXPECTED_NAT_DETECTED");
    assert_eq!(pair.b.saw("PathChanged"), 0);
}

/// Deletes and rekeys of SAs that are not there, with protocols and SPI sizes of all kinds.
#[test]
fn deletes_and_rekeys_of_nothing_are_answered_and_survived() {
    for protocol in 0..5 {
        for spi in [vec![], vec![0; 4], vec![1, 2, 3, 4], vec![7; 8], vec![9; 255]] {
            let (mut pair, mut impostor) = tunnel(6);
            let rekey = Notify { protocol, spi: spi.clone(), kind: 16393, data: vec![] };
            let answer = impostor.ask(&mut pair, CreateChildSa, &[Payload::Notify(rekey)]);
            //= the notification names protocol and SPI of the request
            let not_found = Notify { protocol, spi: spi.clone(), kind: 44, data: vec![] };
            assert_eq!(answer, Some(vec![Payload::Notify(not_found)]));
            let size = u8::try_from(spi.len()).unwrap();
            let body = [&[protocol, size, 0, u8::from(size > 0)][..], &spi].concat();
            let length = u16::try_from(4 + body.len()).unwrap().to_be_bytes();
            let octets = [&[0, 0, length[0], length[1]], &body[..]].concat();
            let answer = impostor.ask_octets(&mut pair, Informational, 42, &octets);
            assert!(answer.is_some(), "protocol {protocol}, {size} octets");
        }
    }
    let (mut pair, mut impostor) = tunnel(6);
    let unknown = Payload::Delete(Delete::Esp(vec![1, 2, 3]));
    assert_eq!(impostor.ask(&mut pair, Informational, &[unknown]), Some(vec![]));
    assert_eq!(pair.b.established()[0].children.len(), 1);
}

fn rekey_of(pair: &Pair, spi_in: u32) -> Vec<Payload> {
    // A's inbound SPI, which B sends on.
    let old = pair.b.children.values().next().unwrap().spi_out;
    let transforms = vec![Transform::with_key_length(1, 20, 256), Transform::new(5, 0)];
    let proposal = Proposal { number: 1, protocol: 3, spi: spi_in.to_be_bytes().to_vec(), transforms };
    let everything = ikev2::traffic_selectors::EVERYTHING.to_vec();
    vec![
        Payload::Notify(Notify::about_esp(16393, old)),
        Payload::SecurityAssociation(vec![proposal]),
        Payload::Nonce(vec![7; 32]),
        Payload::TrafficSelectorInitiator(everything.clone()),
        Payload::TrafficSelectorResponder(everything),
    ]
}

#[test]
fn a_child_that_is_rekeyed_twice_before_it_is_deleted_has_one_successor() {
    let (mut pair, mut impostor) = tunnel(7);
    let (first, second) = (rekey_of(&pair, 0x1000), rekey_of(&pair, 0x2000));
    assert_eq!(kinds(impostor.ask(&mut pair, CreateChildSa, &first)), [0; 0]);
    assert_eq!(kinds(impostor.ask(&mut pair, CreateChildSa, &second)), [43], "TEMPORARY_FAILURE");
    assert_eq!(pair.b.established()[0].children.len(), 2);
    let Payload::Notify(old) = &first[0] else { panic!() };
    let old = u32::from_be_bytes(old.spi.clone().try_into().unwrap());
    impostor.ask(&mut pair, Informational, &[Payload::Delete(Delete::Esp(vec![old]))]);
    assert_eq!(pair.b.established()[0].children.len(), 1);
    assert_eq!(pair.b.outbound, Some(0x1000));
}

#[test]
fn a_peer_cannot_make_children_without_bound() {
    let (mut pair, mut impostor) = tunnel(8);
    let mut refused = 0;
    for spi_in in 0x1000..0x1100 {
        let payloads = rekey_of(&pair, spi_in).split_off(1);
        refused += usize::from(kinds(impostor.ask(&mut pair, CreateChildSa, &payloads)) == [35]);
    }
    assert_eq!(pair.b.established()[0].children.len(), 64);
    assert_eq!(refused, 256 - 63, "NO_ADDITIONAL_SAS");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Any octets under the right keys, in any exchange: an answer or silence, never a panic, and bounded state.
    #[test]
    fn arbitrary_octets_under_the_right_keys_are_survived(
        requests in proptest::collection::vec(
            (0usize..5, any::<u8>(), proptest::collection::vec(any::<u8>(), 0..120)), 1..6),
    ) {
        let (mut pair, mut impostor) = tunnel(9);
        for (exchange, first, octets) in requests {
            let exchange = [Informational, CreateChildSa, IkeFollowupKe, IkeAuth, IkeIntermediate][exchange];
            impostor.ask_octets(&mut pair, exchange, first, &octets);
        }
        prop_assert!(pair.b.children.len() <= 1);
        pair.drive_for(Duration::from_secs(1));
    }
}
