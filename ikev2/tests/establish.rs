//! A tunnel comes up, stays up, and goes down.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::{Ed25519Signer, Signer};
use support::pair::{LINK, Pair, Side, calm, connection, node_config};

#[test]
fn two_round_trips_make_a_tunnel_with_traffic_keys_on_both_sides() {
    let mut pair = Pair::configured(1, calm());
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    assert!(pair.drive_until(Duration::from_secs(1), |pair| pair.a.outbound.is_some()));
    assert_eq!(pair.elapsed(), 4 * pair.network.latency, "IKE_SA_INIT and IKE_AUTH, nothing else");
    pair.assert_one_tunnel();
    assert!(pair.a.children.values().all(|child| child.esn && child.key_in.len() == 36));
    assert_eq!(pair.log.len(), 4);
}

#[test]
fn both_know_each_other_as_ours_only_after_authentication() {
    let pair = Pair::established(2, calm());
    assert!(pair.a.established()[0].ours && pair.b.established()[0].ours);
    // The Vendor ID is not visible in the clear.
    assert!(pair.log.iter().all(|(_, octets)| !octets.windows(7).any(|window| window == b"viamesh")));
}

#[test]
fn the_same_seed_gives_the_same_octets() {
    let (one, two) = (Pair::established(3, calm()), Pair::established(3, calm()));
    assert!(one.log.iter().map(|(_, octets)| octets).eq(two.log.iter().map(|(_, octets)| octets)));
    let other = Pair::established(4, calm());
    assert_ne!(one.log[0].1, other.log[0].1);
}

#[test]
fn an_idle_tunnel_is_checked_and_stays() {
    let mut pair = Pair::established(5, calm());
    let before = pair.log.len();
    pair.drive_for(Duration::from_secs(60));
    pair.assert_one_tunnel();
    assert!(pair.log.len() >= before + 8, "liveness checks every ten seconds of silence");
}

#[test]
fn authenticated_traffic_makes_liveness_checks_superfluous() {
    let mut pair = Pair::established(6, calm());
    let before = pair.log.len();
    for _ in 0..60 {
        pair.drive_for(Duration::from_secs(1));
        let now = pair.now;
        pair.a.endpoint.authenticated_inbound(LINK, now);
        pair.b.endpoint.authenticated_inbound(LINK, now);
    }
    assert_eq!(pair.log.len(), before);
}

#[test]
fn shutdown_deletes_at_the_peer_at_once() {
    let mut pair = Pair::established(7, calm());
    let now = pair.now;
    pair.a.endpoint.shutdown(now);
    pair.drive_for(Duration::from_millis(100));
    assert!(pair.a.established().is_empty() && pair.b.established().is_empty());
    assert!(pair.a.children.is_empty() && pair.b.children.is_empty());
    assert_eq!(pair.b.saw("DeletedByPeer"), 2, "{:?}", pair.b.events);
    pair.drive_for(Duration::from_secs(60));
    assert_eq!(pair.a.endpoint.poll_timeout(), None);
    assert!(pair.a.endpoint.associations().is_empty());
}

#[test]
fn a_removed_connection_cuts_the_peer_and_the_peer_does_not_come_back() {
    let mut pair = Pair::established(8, calm());
    let now = pair.now;
    pair.a.endpoint.remove_connection(LINK, now);
    pair.drive_for(Duration::from_millis(100));
    assert!(pair.b.established().is_empty());
    let now = pair.now;
    pair.b.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(1));
    assert_eq!(pair.b.saw("Refused(24)"), 1, "AUTHENTICATION_FAILED: {:?}", pair.b.events);
    assert_eq!(pair.a.saw("UnknownPeer"), 1);
    assert!(pair.a.children.is_empty());
}

#[test]
fn a_peer_that_dies_is_noticed_and_dialled_again() {
    let mut pair = Pair::new(9, calm());
    pair.connect_and_keep();
    pair.assert_one_tunnel();
    // B restarts without a word.
    let now = pair.now;
    pair.b = support::pair::Node::new(Side::B, node_config(Side::B, calm()), 99);
    pair.b.endpoint.set_connection(LINK, connection(Side::B), now);
    assert!(pair.drive_until(Duration::from_secs(120), |pair| pair.a.saw("PeerSilent") > 0));
    assert!(
        pair.drive_until(Duration::from_secs(5), |pair| pair.b.outbound.is_some()
            && pair.a.outbound.is_some())
    );
    pair.drive_for(Duration::from_secs(10));
    pair.assert_one_tunnel();
}

#[test]
fn a_restarted_peer_that_dials_replaces_its_old_association() {
    let mut pair = Pair::established(10, calm());
    let now = pair.now;
    pair.b = support::pair::Node::new(Side::B, node_config(Side::B, calm()), 99);
    pair.b.endpoint.set_connection(LINK, connection(Side::B), now);
    pair.b.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(2));
    assert_eq!(pair.a.outbound.as_ref(), pair.b.children.keys().next(), "traffic uses the new one at once");
    pair.drive_for(Duration::from_secs(90));
    pair.assert_one_tunnel();
}

#[test]
fn dial_attempts_back_off_up_to_the_cap() {
    let mut pair = Pair::new(11, calm());
    let now = pair.now;
    let mut dialling = connection(Side::A);
    dialling.dial = true;
    pair.network.loss_percent = 100;
    pair.a.endpoint.set_connection(LINK, dialling, now);
    pair.drive_for(Duration::from_secs(3600));
    let failures = pair.a.saw("DialFailed");
    assert!((20..60).contains(&failures), "{failures} attempts in an hour");
    assert_eq!(pair.a.saw("NoAnswer"), failures);
}

#[test]
fn the_wrong_key_is_refused_by_either_side() {
    for wrong in [Side::A, Side::B] {
        let mut pair = Pair::new(12, calm());
        let now = pair.now;
        for side in [Side::A, Side::B] {
            let mut config = connection(side);
            if side == wrong {
                config.remote_keys = vec![Ed25519Signer::from_seed(&[0x77; 32]).public_key()];
            }
            pair.node(side).endpoint.set_connection(LINK, config, now);
        }
        pair.a.endpoint.dial(LINK, now).unwrap();
        pair.drive_for(Duration::from_secs(1));
        assert!(pair.a.established().is_empty() && pair.b.established().is_empty());
        assert!(pair.a.children.is_empty() && pair.b.children.is_empty());
        assert_eq!(pair.a.saw("DialFailed"), 1, "{:?}", pair.a.events);
    }
}

#[test]
fn an_old_and_a_new_key_overlap_during_rotation() {
    let mut pair = Pair::new(13, calm());
    let now = pair.now;
    for side in [Side::A, Side::B] {
        let mut config = connection(side);
        config.remote_keys.insert(0, Ed25519Signer::from_seed(&[0x77; 32]).public_key());
        pair.node(side).endpoint.set_connection(LINK, config, now);
    }
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(1));
    pair.assert_one_tunnel();
}

#[test]
fn a_presented_key_must_be_the_pinned_one() {
    let mut configs = [Side::A, Side::B].map(|side| node_config(side, calm()));
    configs.iter_mut().for_each(|config| config.send_certificate = true);
    let [a, b] = configs;
    let mut pair = Pair::with_configs(14, a, b);
    let now = pair.now;
    pair.a.endpoint.set_connection(LINK, connection(Side::A), now);
    pair.b.endpoint.set_connection(LINK, connection(Side::B), now);
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(1));
    pair.assert_one_tunnel();
}

#[test]
fn inbound_spis_name_the_worker() {
    let mut configs = [Side::A, Side::B].map(|side| node_config(side, calm()));
    configs.iter_mut().for_each(|config| config.spi_placement.workers = 5);
    let [a, b] = configs;
    let mut pair = Pair::with_configs(15, a, b);
    let now = pair.now;
    for (side, worker) in [(Side::A, 3), (Side::B, 4)] {
        let mut config = connection(side);
        config.worker = worker;
        pair.node(side).endpoint.set_connection(LINK, config, now);
    }
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(1));
    assert!(pair.a.children.keys().all(|spi| spi % 5 == 3));
    assert!(pair.b.children.keys().all(|spi| spi % 5 == 4));
}

#[test]
fn no_event_shows_key_octets_unless_the_key_log_is_on() {
    let pair = Pair::established(16, calm());
    let keys: Vec<String> = pair
        .a
        .children
        .values()
        .map(|child| child.key_in.iter().take(8).map(|octet| format!("{octet:02x}")).collect())
        .collect();
    assert!(pair.a.events.iter().all(|event| keys.iter().all(|key| !event.contains(key.as_str()))));
    assert!(pair.a.key_log.is_empty());

    let mut config = node_config(Side::A, calm());
    config.keylog = true;
    let mut logged = Pair::with_configs(16, config, node_config(Side::B, calm()));
    let now = logged.now;
    logged.a.endpoint.set_connection(LINK, connection(Side::A), now);
    logged.b.endpoint.set_connection(LINK, connection(Side::B), now);
    logged.a.endpoint.dial(LINK, now).unwrap();
    logged.drive_for(Duration::from_secs(1));
    assert_eq!(logged.a.key_log.len(), 3, "one line for IKE, two for ESP");
}

#[test]
fn the_peer_is_followed_to_a_new_address() {
    let mut pair = Pair::established(17, calm());
    pair.a.address = "203.0.113.9:1024".parse().unwrap();
    let now = pair.now;
    pair.a.endpoint.rekey_ike(LINK, now);
    pair.drive_for(Duration::from_secs(2));
    assert!(pair.b.saw("PathChanged") >= 1);
    assert_eq!(pair.b.established()[0].path.remote, pair.a.address);
}

#[test]
fn a_key_that_is_no_longer_trusted_cuts_the_peer_and_one_that_stays_does_not() {
    let mut pair = Pair::established(18, calm());
    let (old, new) = (connection(Side::B).remote_keys, Ed25519Signer::from_seed(&[0x77; 32]).public_key());
    for (keys, stays) in [(vec![new.clone(), old[0].clone()], true), (vec![new], false)] {
        let mut config = connection(Side::B);
        config.remote_keys = keys;
        let now = pair.now;
        pair.b.endpoint.set_connection(LINK, config, now);
        pair.drive_for(Duration::from_millis(200));
        assert_eq!(pair.a.established().len(), usize::from(stays));
        assert_eq!(pair.b.established().len(), usize::from(stays));
    }
    assert_eq!(pair.b.saw("KeyRemoved"), 1, "{:?}", pair.b.events);
    assert!(pair.a.children.is_empty() && pair.b.children.is_empty());
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(1));
    assert!(pair.a.established().is_empty(), "the old key opens nothing");
}

/// What A sends arrives, what B answers does not, as where a translator forgot the way back. A may send as much as it
/// likes: only what it hears is proof that B lives.
#[test]
fn a_path_that_carries_only_one_direction_is_noticed_by_the_end_that_hears_nothing() {
    for deaf in [Side::A, Side::B] {
        let mut pair = Pair::established(23, calm());
        let mut noticed = false;
        for _ in 0..8000 {
            pair.drive_for(Duration::from_millis(15));
            pair.flights.retain(|flight| flight.to != deaf);
            // The other end's traffic arrives here all the time.
            let now = pair.now;
            pair.node(deaf.other()).endpoint.authenticated_inbound(LINK, now);
            noticed |= pair.node(deaf).saw("PeerSilent") > 0;
        }
        assert!(noticed, "{:?}", pair.node(deaf).events);
        assert!(pair.node(deaf).outbound.is_none());
    }
}
