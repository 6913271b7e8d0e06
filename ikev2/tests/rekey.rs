//! Rekeying without losing a packet, in both roles.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use support::pair::{LINK, Pair, Side, calm, connection, node_config};

fn short() -> ikev2::Timers {
    let mut timers = calm();
    timers.child_rekey = Duration::from_secs(3);
    timers.ike_rekey = Duration::from_secs(7);
    timers.rekey_jitter_percent = 20;
    timers
}

#[test]
fn either_side_rekeys_the_child_and_sending_never_meets_an_unknown_association() {
    for side in [Side::A, Side::B] {
        let mut pair = Pair::established(1, calm());
        pair.check_outbound = true;
        let old = *pair.node(side).children.keys().next().unwrap();
        let now = pair.now;
        pair.node(side).endpoint.rekey_child(old, now);
        pair.drive_for(Duration::from_secs(1));
        let replaced = pair.node(side).children.values().filter(|child| child.replaces == Some(old)).count();
        assert_eq!(replaced, 1);
        assert!(pair.node(side).children.contains_key(&old), "stragglers are still received");
        pair.drive_for(Duration::from_secs(20));
        assert!(!pair.node(side).children.contains_key(&old));
        pair.assert_one_tunnel();
        assert_eq!(pair.outbound_violations, [""; 0]);
    }
}

#[test]
fn the_responder_of_a_rekey_switches_only_when_the_initiator_surely_has_the_new_one() {
    let mut pair = Pair::established(2, calm());
    let (old, old_out) = (*pair.a.children.keys().next().unwrap(), pair.b.outbound);
    let now = pair.now;
    pair.a.endpoint.rekey_child(old, now);
    assert!(pair.drive_until(Duration::from_secs(1), |pair| pair.b.children.len() == 2));
    assert_eq!(pair.b.outbound, old_out, "the response is only on its way");
    assert!(pair.drive_until(Duration::from_secs(1), |pair| pair.b.outbound != old_out));
    assert_eq!(pair.elapsed().as_millis() % 20, 0);
}

#[test]
fn the_responder_of_a_rekey_does_not_tire_of_waiting_for_a_peer_that_lacks_the_response() {
    let mut pair = Pair::established(12, calm());
    let old = *pair.a.children.keys().next().unwrap();
    let (old_out, now) = (pair.b.outbound, pair.now);
    pair.check_outbound = true;
    // Request and response take turns: the first five responses are lost.
    pair.lose.extend((0..5).map(|round| pair.counter + 2 * round + 1));
    pair.a.endpoint.rekey_child(old, now);
    pair.drive_for(Duration::from_secs(10));
    assert_eq!(pair.b.outbound, old_out);
    pair.drive_for(Duration::from_secs(30));
    assert_ne!(pair.b.outbound, old_out);
    assert_eq!(pair.outbound_violations, [""; 0]);
    pair.assert_one_tunnel();
}

#[test]
fn a_child_that_the_peer_does_not_know_yet_is_not_rekeyed() {
    let mut timers = calm();
    timers.child_rekey = Duration::from_secs(4);
    let mut pair = Pair::established(13, timers);
    pair.check_outbound = true;
    let old = *pair.a.children.keys().next().unwrap();
    let now = pair.now;
    // B's response is lost until its new CHILD SA would be due for a rekey itself.
    pair.lose.extend((0..5).map(|round| pair.counter + 2 * round + 1));
    pair.a.endpoint.rekey_child(old, now);
    pair.drive_for(Duration::from_secs(40));
    let unexpected = |reason: &&ikev2::ChildDownReason| **reason != ikev2::ChildDownReason::Rekeyed;
    assert_eq!(pair.b.downs.iter().find(unexpected), None);
    assert_eq!(pair.outbound_violations, [""; 0]);
    pair.assert_children_match();
}

#[test]
fn traffic_on_the_new_association_is_proof_enough() {
    let mut pair = Pair::established(3, calm());
    let (old, old_out) = (*pair.a.children.keys().next().unwrap(), pair.b.outbound);
    let now = pair.now;
    pair.a.endpoint.rekey_child(old, now);
    assert!(pair.drive_until(Duration::from_secs(1), |pair| pair.b.children.len() == 2));
    let new = *pair.b.children.iter().find(|(_, child)| child.replaces.is_some()).unwrap().0;
    let now = pair.now;
    pair.b.endpoint.child_confirmed(new, now);
    pair.collect();
    assert_ne!(pair.b.outbound, old_out);
}

#[test]
fn rekeys_without_a_key_exchange_of_their_own_work_in_any_mixture() {
    for (a_pfs, b_pfs) in [(false, false), (true, false), (false, true)] {
        let mut pair = Pair::new(4, calm());
        let now = pair.now;
        for (side, secrecy) in [(Side::A, a_pfs), (Side::B, b_pfs)] {
            let mut config = connection(side);
            config.perfect_forward_secrecy = secrecy;
            pair.node(side).endpoint.set_connection(LINK, config, now);
        }
        pair.a.endpoint.dial(LINK, now).unwrap();
        pair.drive_for(Duration::from_secs(1));
        let old = *pair.a.children.keys().next().unwrap();
        let now = pair.now;
        pair.a.endpoint.rekey_child(old, now);
        pair.drive_for(Duration::from_secs(10));
        assert!(!pair.a.children.contains_key(&old));
        pair.assert_one_tunnel();
    }
}

#[test]
fn either_side_rekeys_the_ike_sa_and_children_move_untouched() {
    for side in [Side::A, Side::B] {
        let mut pair = Pair::established(5, calm());
        let children: Vec<u32> = pair.a.children.keys().copied().collect();
        let before = pair.a.established()[0].spis;
        let now = pair.now;
        pair.node(side).endpoint.rekey_ike(LINK, now);
        pair.drive_for(Duration::from_secs(1));
        let after = pair.a.established()[0].spis;
        assert_ne!(before, after);
        assert_eq!(pair.a.children.keys().copied().collect::<Vec<u32>>(), children);
        pair.assert_one_tunnel();
        assert_eq!((pair.a.saw("IkeRekeyed"), pair.b.saw("IkeRekeyed")), (1, 1));
        assert_eq!((pair.a.saw("IkeDown"), pair.b.saw("IkeDown")), (0, 0));
        // The new SA works in both directions, with its own roles.
        for next in [side.other(), side] {
            let old = *pair.node(next).children.keys().next().unwrap();
            let now = pair.now;
            pair.node(next).endpoint.rekey_child(old, now);
            pair.drive_for(Duration::from_secs(10));
            pair.assert_one_tunnel();
        }
        let now = pair.now;
        pair.node(side.other()).endpoint.rekey_ike(LINK, now);
        pair.drive_for(Duration::from_secs(2));
        pair.assert_one_tunnel();
        assert_ne!(pair.a.established()[0].spis, after);
    }
}

#[test]
fn a_child_rekey_right_after_an_ike_rekey_uses_the_new_ike_sa() {
    let mut pair = Pair::established(6, calm());
    let now = pair.now;
    let old = *pair.b.children.keys().next().unwrap();
    pair.b.endpoint.rekey_ike(LINK, now);
    assert!(pair.drive_until(Duration::from_secs(1), |pair| pair.b.saw("IkeRekeyed") == 1));
    let now = pair.now;
    pair.b.endpoint.rekey_child(old, now);
    pair.drive_for(Duration::from_secs(8));
    assert!(!pair.b.children.contains_key(&old));
    pair.assert_one_tunnel();
}

#[test]
fn rekeys_by_time_go_on_for_long_with_jitter_and_no_gap() {
    for seed in 0..8 {
        let mut pair = Pair::established(seed, short());
        pair.check_outbound = true;
        pair.drive_for(Duration::from_secs(120));
        assert!(pair.a.saw("ChildUp") > 30, "{}", pair.a.saw("ChildUp"));
        assert!(pair.a.saw("IkeRekeyed") > 10);
        assert_eq!((pair.a.saw("IkeDown"), pair.b.saw("IkeDown")), (0, 0), "{:#?}", pair.a.events);
        assert_eq!(pair.outbound_violations, [""; 0]);
        pair.assert_children_match();
    }
}

#[test]
fn equal_timers_at_both_ends_collide_and_nothing_is_lost() {
    let mut timers = short();
    timers.rekey_jitter_percent = 0;
    for seed in 0..8 {
        let mut pair = Pair::established(seed, timers);
        pair.check_outbound = true;
        pair.drive_for(Duration::from_secs(120));
        assert_eq!((pair.a.saw("IkeDown"), pair.b.saw("IkeDown")), (0, 0));
        assert_eq!(pair.outbound_violations, [""; 0]);
        assert!(pair.a.outbound.is_some() && pair.b.outbound.is_some());
        pair.assert_children_match();
    }
}

#[test]
fn further_child_associations_can_be_made_and_deleted() {
    let mut pair = Pair::established(7, calm());
    let now = pair.now;
    pair.a.endpoint.create_child(LINK, now);
    pair.drive_for(Duration::from_secs(1));
    assert_eq!((pair.a.children.len(), pair.b.children.len()), (2, 2));
    pair.assert_children_match();
    let one = *pair.b.children.keys().next().unwrap();
    let now = pair.now;
    pair.b.endpoint.delete_child(one, now);
    pair.drive_for(Duration::from_secs(10));
    pair.assert_one_tunnel();
}

/// All requests stand in one line behind an answer that is slow or lost, and nobody overtakes.
#[test]
fn children_that_expire_together_are_all_replaced_over_a_slow_and_lossy_path() {
    for (seed, loss) in [(31, 0), (32, 20)] {
        let mut timers = calm();
        timers.child_rekey = Duration::from_secs(300);
        timers.expiry_grace = Duration::from_secs(300);
        timers.liveness = Duration::from_secs(60);
        let mut pair = Pair::established(seed, timers);
        let now = pair.now;
        for side in [Side::A, Side::B, Side::A, Side::B, Side::A] {
            pair.node(side).endpoint.create_child(LINK, now);
            pair.drive_for(Duration::from_secs(5));
        }
        assert_eq!((pair.a.children.len(), pair.b.children.len()), (6, 6));
        let first: Vec<u32> = pair.a.children.keys().copied().collect();
        pair.network.latency = Duration::from_millis(1200);
        pair.network.loss_percent = loss;
        pair.check_outbound = true;
        pair.drive_for(Duration::from_secs(480));
        pair.network.loss_percent = 0;
        pair.drive_for(Duration::from_secs(60));
        assert_eq!((pair.a.saw("IkeDown"), pair.b.saw("IkeDown")), (0, 0), "{:#?}", pair.a.events);
        assert!(first.iter().all(|spi_in| !pair.a.children.contains_key(spi_in)), "{:#?}", pair.a.events);
        assert_eq!((pair.a.established()[0].children.len(), pair.b.established()[0].children.len()), (6, 6));
        assert_eq!(pair.outbound_violations, [""; 0]);
        pair.assert_children_match();
    }
}

/// B has no room for the successor, whenever A asks.
#[test]
fn a_child_that_cannot_be_rekeyed_is_deleted_at_last_and_made_anew() {
    let mut timers = calm();
    timers.child_rekey = Duration::from_secs(20);
    timers.expiry_grace = Duration::from_secs(40);
    let mut of_b = node_config(Side::B, calm());
    of_b.limits.children = 1;
    let mut pair = Pair::with_configs(21, node_config(Side::A, timers), of_b);
    pair.connect_and_keep();
    let first = *pair.a.children.keys().next().unwrap();
    pair.drive_for(Duration::from_secs(55));
    assert!(pair.a.children.contains_key(&first), "refused rekeys leave it alone");
    assert!(pair.drive_until(Duration::from_secs(60), |pair| !pair.a.children.contains_key(&first)
        && pair.a.outbound.is_some()));
    assert_eq!(pair.a.saw("Expired"), 1, "{:?}", pair.a.events);
    pair.assert_one_tunnel();
}
