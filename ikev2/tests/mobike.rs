//! Ends that move (RFC 4555, and RFC 7296 §2.23 where MOBIKE does not apply).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use ikev2::Path;
use support::pair::{LINK, Pair, Side, address, calm, connection, node_config};

fn elsewhere() -> SocketAddr {
    "203.0.113.9:4500".parse().unwrap()
}

/// The host of `side` got another address, and its driver says so.
fn relocate(pair: &mut Pair, side: Side, to: SocketAddr) {
    pair.node(side).address = to;
    let path = Path { local: to, remote: address(side.other()) };
    let now = pair.now;
    pair.node(side).endpoint.local_path_changed(LINK, path, now);
}

fn assert_moved(pair: &mut Pair, side: Side, to: SocketAddr) {
    let other = pair.node(side.other());
    assert_eq!(other.established()[0].path.remote, to, "{:?}", other.events);
    assert!(other.saw("PathChanged") >= 1);
    pair.assert_one_tunnel();
}

#[test]
fn either_end_may_move_and_move_again() {
    for side in [Side::A, Side::B] {
        let mut pair = Pair::established(1, calm());
        for port in [4500, 4501, 4502] {
            let to = SocketAddr::new(elsewhere().ip(), port);
            relocate(&mut pair, side, to);
            pair.drive_for(Duration::from_secs(1));
            assert_moved(&mut pair, side, to);
        }
        pair.drive_for(Duration::from_secs(60));
        pair.assert_one_tunnel();
    }
}

#[test]
fn the_loss_of_any_message_of_a_move_changes_nothing_in_the_end() {
    for side in [Side::A, Side::B] {
        for lost in 0..5 {
            let mut pair = Pair::established(2, calm());
            pair.lose.push(pair.counter + lost);
            relocate(&mut pair, side, elsewhere());
            pair.drive_for(Duration::from_secs(5));
            assert_moved(&mut pair, side, elsewhere());
        }
    }
}

#[test]
fn a_move_during_every_other_exchange_is_told_afterwards() {
    for rekey_ike in [true, false] {
        for delay in [0, 5, 25, 45, 65, 85] {
            let mut pair = Pair::established(3, calm());
            let (now, child) = (pair.now, *pair.a.children.keys().next().unwrap());
            if rekey_ike {
                // The other end becomes the initiator of the new IKE SA, but not of the series.
                pair.b.endpoint.rekey_ike(LINK, now);
            } else {
                pair.a.endpoint.rekey_child(child, now);
            }
            pair.drive_for(Duration::from_millis(delay));
            relocate(&mut pair, Side::A, elsewhere());
            pair.drive_for(Duration::from_secs(12));
            assert_moved(&mut pair, Side::A, elsewhere());
            let again = SocketAddr::new(elsewhere().ip(), 999);
            relocate(&mut pair, Side::A, again);
            pair.drive_for(Duration::from_secs(1));
            assert_moved(&mut pair, Side::A, again);
        }
    }
}

#[test]
fn without_mobike_at_one_end_the_peer_is_followed_all_the_same() {
    for without in [Side::A, Side::B] {
        let [a, b] = [Side::A, Side::B].map(|side| {
            let mut config = node_config(side, calm());
            config.mobike = side != without;
            config
        });
        let mut pair = Pair::with_configs(4, a, b);
        let now = pair.now;
        for side in [Side::A, Side::B] {
            pair.node(side).endpoint.set_connection(LINK, connection(side), now);
        }
        pair.a.endpoint.dial(LINK, now).unwrap();
        pair.drive_for(Duration::from_secs(1));
        relocate(&mut pair, Side::A, elsewhere());
        pair.drive_for(Duration::from_secs(1));
        assert_moved(&mut pair, Side::A, elsewhere());
    }
}

/// A peer that is not where it says to be does not answer there, and is given up.
#[test]
fn an_address_that_nobody_answers_at_costs_the_association() {
    let mut pair = Pair::established(5, calm());
    relocate(&mut pair, Side::A, elsewhere());
    // The update arrives, and nothing afterwards.
    pair.drive_until(Duration::from_secs(1), |pair| pair.b.saw("PathChanged") > 0);
    pair.network.loss_percent = 100;
    pair.flights.clear();
    assert!(pair.drive_until(Duration::from_secs(120), |pair| pair.b.saw("PeerSilent") > 0));
    assert!(pair.b.established().is_empty());
}
