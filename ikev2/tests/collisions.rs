//! Exchanges that cross, in every combination, with the loss of any single message (RFC 7296 §2.8, §2.25).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use support::pair::{LINK, Pair, Side, calm, node_config};

/// What one side does at the moment of the collision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Nothing,
    RekeyChild,
    RekeyIke,
    CreateChild,
    DeleteChild,
}

const MOVES: [Move; 5] =
    [Move::Nothing, Move::RekeyChild, Move::RekeyIke, Move::CreateChild, Move::DeleteChild];

fn perform(pair: &mut Pair, side: Side, action: Move) {
    let now = pair.now;
    let node = pair.node(side);
    let child = *node.children.keys().next().unwrap();
    match action {
        Move::Nothing => {}
        Move::RekeyChild => node.endpoint.rekey_child(child, now),
        Move::RekeyIke => node.endpoint.rekey_ike(LINK, now),
        Move::CreateChild => node.endpoint.create_child(LINK, now),
        Move::DeleteChild => node.endpoint.delete_child(child, now),
    }
}

/// CHILD SAs that must be left. One that is rekeyed at one side and deleted at the other may end either way.
fn acceptable(a: Move, b: Move, children: usize) -> bool {
    let created = [a, b].iter().filter(|action| **action == Move::CreateChild).count();
    let deletes = [a, b].contains(&Move::DeleteChild);
    let rekeys = [a, b].contains(&Move::RekeyChild);
    match (deletes, rekeys) {
        (false, _) => children == 1 + created,
        (true, false) => children == created,
        (true, true) => children <= 1,
    }
}

fn established(seed: u64, hybrid: bool) -> Pair {
    let [a, b] = [Side::A, Side::B].map(|side| {
        let mut config = node_config(side, calm());
        config.offer_hybrid = hybrid;
        config
    });
    let mut pair = Pair::with_configs(seed, a, b);
    pair.connect();
    pair
}

/// `lost` counts datagrams from the moment of the collision.
fn collide(a: Move, b: Move, skew: Duration, lost: Option<u64>, seed: u64, hybrid: bool) {
    let label = format!("A {a:?}, B {b:?} {skew:?} later, message {lost:?} lost, seed {seed}");
    let mut pair = established(seed, hybrid);
    pair.drive_for(Duration::from_secs(2));
    pair.check_outbound = true;
    pair.lose.extend(lost.map(|number| pair.counter + number));
    perform(&mut pair, Side::A, a);
    pair.drive_for(skew);
    if pair.b.children.is_empty() {
        return;
    }
    perform(&mut pair, Side::B, b);
    pair.drive_for(Duration::from_secs(100));
    let (at_a, at_b) = (pair.a.established(), pair.b.established());
    assert_eq!((at_a.len(), at_b.len()), (1, 1), "{label}: {:#?} {:#?}", pair.a.events, pair.b.events);
    assert_eq!(at_a[0].spis, at_b[0].spis, "{label}");
    let children = at_a[0].children.len();
    assert_eq!(children, at_b[0].children.len(), "{label}: {:#?} {:#?}", pair.a.events, pair.b.events);
    assert!(acceptable(a, b, children), "{label}: {children} left {:#?}", pair.a.events);
    assert_eq!(pair.a.children.len(), children, "{label}");
    pair.assert_children_match();
    assert_eq!(
        (pair.a.saw("IkeDown"), pair.b.saw("IkeDown")),
        (0, 0),
        "{label} {:#?} {:#?}",
        pair.a.events,
        pair.b.events
    );
    if ![a, b].contains(&Move::DeleteChild) {
        assert_eq!(pair.outbound_violations, [""; 0], "{label}");
    }
    // Whatever is left still works.
    if children == 1 {
        pair.assert_one_tunnel();
    }
    let now = pair.now;
    pair.b.endpoint.rekey_ike(LINK, now);
    pair.drive_for(Duration::from_secs(2));
    assert_eq!(pair.a.established().len(), 1, "{label}");
    assert_ne!(
        pair.a.established()[0].spis,
        at_a[0].spis,
        "{label} {:#?} {:#?}",
        pair.b.established(),
        pair.b.events
    );
}

#[test]
fn every_pair_of_moves_crosses_without_harm() {
    for seed in 0..6 {
        for a in MOVES {
            for b in MOVES {
                for skew in [0, 10, 20, 30, 50] {
                    collide(a, b, Duration::from_millis(skew), None, seed, false);
                }
            }
        }
    }
}

#[test]
fn any_single_message_may_be_lost() {
    for seed in 0..4 {
        for a in MOVES {
            for b in MOVES {
                for lost in 0..10 {
                    collide(a, b, Duration::from_millis(5), Some(lost), seed, false);
                }
            }
        }
    }
}

/// The same with additional key exchanges: each rekey has two round trips, and its requests two fragments.
#[test]
fn hybrid_rekeys_cross_without_harm() {
    for a in MOVES {
        for b in MOVES {
            for skew in [0, 20, 45, 70, 90] {
                collide(a, b, Duration::from_millis(skew), None, 1, true);
            }
            for lost in 0..14 {
                collide(a, b, Duration::from_millis(5), Some(lost), 2, true);
            }
        }
    }
}

/// Both rekey at once, and B has no room for what A asks. Only what exists can lose the comparison of nonces: the
/// successor that B asked for is used by both, whatever the nonces are.
#[test]
fn a_rekey_that_was_refused_does_not_win_over_the_one_that_was_not() {
    let mut crossed = 0;
    for seed in 0..12 {
        for lost in [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)] {
            let mut of_b = node_config(Side::B, calm());
            of_b.limits.children = 1;
            let mut pair = Pair::with_configs(seed, node_config(Side::A, calm()), of_b);
            pair.connect();
            pair.drive_for(Duration::from_secs(2));
            pair.check_outbound = true;
            pair.lose.extend(lost.map(|number| pair.counter + number));
            perform(&mut pair, Side::A, Move::RekeyChild);
            perform(&mut pair, Side::B, Move::RekeyChild);
            pair.drive_for(Duration::from_secs(100));
            pair.assert_one_tunnel();
            assert_eq!((pair.a.saw("IkeDown"), pair.b.saw("IkeDown")), (0, 0), "{:#?}", pair.a.events);
            assert_eq!(pair.outbound_violations, [""; 0], "seed {seed}, {lost:?} lost");
            crossed += usize::from(pair.b.children.values().all(|child| child.initiator));
        }
    }
    assert!(crossed > 40, "{crossed}");
}

/// Deletes of the whole IKE SA against everything: both ends must end empty.
#[test]
fn a_delete_of_the_ike_sa_ends_everything_whatever_it_crosses() {
    for seed in 0..4 {
        for b in MOVES {
            for lost in [None, Some(0), Some(1), Some(2), Some(3)] {
                let mut pair = Pair::established(seed, calm());
                pair.lose.extend(lost.map(|number| pair.counter + number));
                perform(&mut pair, Side::B, b);
                let now = pair.now;
                pair.a.endpoint.remove_connection(LINK, now);
                pair.drive_for(Duration::from_secs(200));
                assert!(pair.a.established().is_empty() && pair.b.established().is_empty(), "{b:?} {lost:?}");
                assert!(pair.a.children.is_empty() && pair.b.children.is_empty(), "{b:?} {lost:?}");
            }
        }
    }
}

#[test]
fn both_ends_may_shut_down_at_once() {
    let mut pair = Pair::established(3, calm());
    let now = pair.now;
    pair.a.endpoint.shutdown(now);
    pair.b.endpoint.shutdown(now);
    pair.drive_for(Duration::from_secs(60));
    for node in [&pair.a, &pair.b] {
        assert!(node.endpoint.associations().is_empty() && node.children.is_empty());
        assert_eq!(node.endpoint.poll_timeout(), None);
    }
}
