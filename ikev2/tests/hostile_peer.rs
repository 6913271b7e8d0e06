//! Nonsense, forgeries and replays: counted, never acted upon.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::Path;
use ikev2::wire::{ExchangeType, Header, Message, Notify, Payload};
use proptest::prelude::*;
use support::pair::{LINK, Pair, Side, address, calm};

fn from_a() -> Path {
    Path { local: address(Side::B), remote: address(Side::A) }
}

fn from_b() -> Path {
    Path { local: address(Side::A), remote: address(Side::B) }
}

fn clear(spis: (u64, u64), exchange: ExchangeType, response: bool, id: u32, kind: u16) -> Vec<u8> {
    let header = Header::new(spis, exchange, false, response, id);
    Message { header, payloads: vec![Payload::Notify(Notify::new(kind, vec![]))] }.encode()
}

#[test]
fn spoofed_errors_in_the_clear_do_not_abort_an_attempt() {
    let mut pair = Pair::configured(1, calm());
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.collect();
    let spi_i = Message::decode(&pair.log[0].1).unwrap().header.spi_i;
    for kind in [14, 24, 7, 4, 17, 5, 1] {
        let spoof = clear((spi_i, 0), ExchangeType::IkeSaInit, true, 0, kind);
        pair.a.endpoint.handle_datagram(from_b(), &spoof, now);
    }
    pair.drive_for(Duration::from_secs(2));
    pair.assert_one_tunnel();
    assert_eq!(pair.a.saw("DialFailed"), 0);
}

#[test]
fn an_error_that_nothing_else_follows_is_the_reason_given_in_the_end() {
    let mut pair = Pair::configured(2, calm());
    pair.network.loss_percent = 100;
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.collect();
    let spi_i = Message::decode(&pair.log[0].1).unwrap().header.spi_i;
    pair.a.endpoint.handle_datagram(from_b(), &clear((spi_i, 0), ExchangeType::IkeSaInit, true, 0, 14), now);
    pair.drive_for(Duration::from_secs(120));
    assert_eq!(pair.a.saw("Refused(14)"), 1);
}

#[test]
fn messages_in_the_clear_with_the_spis_of_a_live_association_change_nothing() {
    let mut pair = Pair::established(3, calm());
    let spis = pair.a.established()[0].spis;
    let now = pair.now;
    for exchange in [
        ExchangeType::IkeSaInit,
        ExchangeType::IkeAuth,
        ExchangeType::CreateChildSa,
        ExchangeType::Informational,
    ] {
        for (response, initiator) in [(false, false), (false, true), (true, false), (true, true)] {
            for id in [0, 1, 2, u32::MAX] {
                for kind in [4, 7, 24, 11, 9] {
                    let mut header =
                        Header::new((spis.initiator, spis.responder), exchange, initiator, response, id);
                    header.initiator = initiator;
                    let payloads = vec![Payload::Notify(Notify::new(kind, vec![]))];
                    let octets = Message { header, payloads }.encode();
                    pair.a.endpoint.handle_datagram(from_b(), &octets, now);
                    pair.b.endpoint.handle_datagram(from_a(), &octets, now);
                }
            }
        }
    }
    pair.drive_for(Duration::from_secs(30));
    pair.assert_one_tunnel();
    assert_eq!(pair.a.saw("IkeDown") + pair.b.saw("IkeDown"), 0);
}

#[test]
fn replays_of_everything_ever_sent_change_nothing_and_move_nobody() {
    let mut pair = Pair::established(4, calm());
    let old = *pair.a.children.keys().next().unwrap();
    let now = pair.now;
    pair.a.endpoint.rekey_child(old, now);
    pair.drive_for(Duration::from_secs(10));
    let now = pair.now;
    pair.b.endpoint.rekey_ike(LINK, now);
    pair.drive_for(Duration::from_secs(10));
    let elsewhere = "203.0.113.66:666".parse().unwrap();
    let recorded = pair.log.clone();
    let now = pair.now;
    for (from, octets) in &recorded {
        let to = from.other();
        let path = Path { local: address(to), remote: elsewhere };
        pair.node(to).endpoint.handle_datagram(path, octets, now);
    }
    pair.drive_for(Duration::from_secs(60));
    pair.assert_one_tunnel();
    assert_eq!(pair.a.saw("PathChanged") + pair.b.saw("PathChanged"), 0);
    assert_eq!(pair.a.established()[0].path.remote, address(Side::B));
}

#[test]
fn a_higher_major_version_is_told_so_and_a_minor_one_is_ignored() {
    let mut pair = Pair::configured(5, calm());
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    let mut request = Vec::new();
    pair.a.endpoint.poll_transmit(&mut request).unwrap();
    let mut major = request.clone();
    major[17] = 0x30;
    pair.b.endpoint.handle_datagram(from_a(), &major, now);
    let mut answer = Vec::new();
    pair.b.endpoint.poll_transmit(&mut answer).unwrap();
    let answer = Message::decode(&answer).unwrap();
    assert_eq!(answer.payloads, [Payload::Notify(Notify::new(5, vec![]))]);
    assert!(answer.header.response);
    let mut minor = request;
    minor[17] = 0x2F;
    minor[19] |= 0xC7;
    pair.b.endpoint.handle_datagram(from_a(), &minor, now);
    let mut answer = Vec::new();
    pair.b.endpoint.poll_transmit(&mut answer).unwrap();
    assert_ne!(Message::decode(&answer).unwrap().header.spi_r, 0);
}

#[test]
fn an_unknown_critical_payload_is_named_and_an_uncritical_one_skipped() {
    let mut pair = Pair::configured(6, calm());
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    let mut request = Vec::new();
    pair.a.endpoint.poll_transmit(&mut request).unwrap();
    for (flags, refused) in [(0x80, true), (0x00, false)] {
        // Put an unknown payload of type 200 in front.
        let mut changed = request[..28].to_vec();
        let first = changed[16];
        changed[16] = 200;
        changed.extend_from_slice(&[first, flags, 0, 8, 1, 2, 3, 4]);
        changed.extend_from_slice(&request[28..]);
        let length = u32::try_from(changed.len()).unwrap().to_be_bytes();
        changed[24..28].copy_from_slice(&length);
        pair.b.endpoint.handle_datagram(from_a(), &changed, now);
        let mut answer = Vec::new();
        pair.b.endpoint.poll_transmit(&mut answer).unwrap();
        let answer = Message::decode(&answer).unwrap();
        let refusal = Payload::Notify(Notify::new(1, vec![200]));
        assert_eq!(answer.payloads.contains(&refusal), refused);
    }
}

#[test]
fn strange_first_messages_are_dropped() {
    let mut pair = Pair::configured(7, calm());
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    let mut request = Vec::new();
    pair.a.endpoint.poll_transmit(&mut request).unwrap();
    let with = |change: &dyn Fn(&mut Header)| {
        let mut message = Message::decode(&request).unwrap();
        change(&mut message.header);
        message.encode()
    };
    for strange in [
        with(&|header| header.spi_r = 9),
        with(&|header| header.message_id = 1),
        with(&|header| header.initiator = false),
        with(&|header| header.spi_i = 0),
    ] {
        pair.b.endpoint.handle_datagram(from_a(), &strange, now);
        assert!(pair.b.endpoint.poll_transmit(&mut Vec::new()).is_none());
    }
    assert!(pair.b.endpoint.associations().is_empty());
}

#[test]
fn rejections_are_reported_at_a_limited_rate() {
    let mut pair = Pair::established(8, calm());
    let now = pair.now;
    for number in 0..10_000u32 {
        pair.b.endpoint.handle_datagram(from_a(), &number.to_be_bytes(), now);
    }
    pair.collect();
    assert!(pair.b.saw("Rejected") <= 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any recorded datagram with any octets changed, at any moment: no panic, and the tunnel stays.
    #[test]
    fn changed_datagrams_never_harm_a_live_tunnel(
        changes in proptest::collection::vec((0usize..24, 0usize..1500, any::<u8>(), any::<bool>()), 1..40),
    ) {
        let mut pair = Pair::established(9, calm());
        let recorded = pair.log.clone();
        let now = pair.now;
        for (which, at, value, cut) in changes {
            let (from, octets) = &recorded[which % recorded.len()];
            let mut octets = octets.clone();
            let at = at % octets.len();
            octets[at] ^= value | 1;
            if cut {
                octets.truncate(at);
            }
            let to = from.other();
            let path = Path { local: address(to), remote: address(*from) };
            pair.node(to).endpoint.handle_datagram(path, &octets, now);
        }
        pair.drive_for(Duration::from_secs(50));
        prop_assert_eq!(pair.a.saw("IkeDown") + pair.b.saw("IkeDown"), 0);
        pair.assert_one_tunnel();
    }

    #[test]
    fn arbitrary_octets_are_dropped(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut pair = Pair::configured(10, calm());
        let now = pair.now;
        pair.b.endpoint.handle_datagram(from_a(), &octets, now);
        prop_assert!(pair.b.endpoint.associations().is_empty());
    }
}
