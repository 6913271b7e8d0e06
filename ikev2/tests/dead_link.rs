//! Links that are dead for a while, in the middle of rekeys: afterwards there is one pair of keys, not two or none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::{ChildDownReason, Timers};
use support::pair::{LINK, Pair, Side, calm};

/// Rekeys every few seconds, and keys that do not outlive a dead link for long.
fn hurried() -> Timers {
    let mut timers = calm();
    timers.child_rekey = Duration::from_secs(5);
    timers.ike_rekey = Duration::from_secs(23);
    timers.rekey_jitter_percent = 30;
    timers.expiry_grace = Duration::from_secs(6);
    timers
}

#[test]
fn one_pair_of_keys_is_left_whenever_and_for_however_long_the_link_is_dead() {
    let mut replaced = 0;
    for seed in 0..12 {
        let mut pair = Pair::new(seed, hurried());
        pair.keep_dialling();
        pair.drive_for(Duration::from_millis(20_000 + seed * 137));
        for round in 0..4 {
            pair.network.loss_percent = 100;
            pair.drive_for(Duration::from_millis(2_000 + (seed * 7 + round * 13) % 22 * 1_000));
            pair.network.loss_percent = 0;
            pair.drive_for(Duration::from_millis(9_000 + seed * 91));
        }
        // What the dead times left is sorted out before the next rekeys are due.
        let one = |pair: &mut Pair| {
            let ends = [&pair.a, &pair.b].map(|node| node.endpoint.associations());
            ends.iter().all(|end| end.len() == 1 && end[0].children.len() == 1)
        };
        assert!(
            pair.drive_until(Duration::from_secs(120), one),
            "seed {seed}: {:#?} {:#?}",
            pair.a.established(),
            pair.b.established()
        );
        pair.settle(Duration::from_secs(30));
        pair.assert_children_match();
        replaced += pair.a.saw("Expired") + pair.b.saw("Expired");
    }
    assert!(replaced > 4, "keys must have run out in dead times, but did so only {replaced} times");
}

/// Both ends lost their only pair of keys and ask for a new one, at once or with the first request lost.
#[test]
fn two_requests_for_the_only_child_leave_one() {
    let mut crossed = 0;
    for seed in 0..8 {
        for lost in [None, Some(0), Some(1), Some(2), Some(3), Some(4)] {
            let mut pair = Pair::new(seed, calm());
            pair.keep_dialling();
            pair.drive_for(Duration::from_secs(30));
            pair.assert_one_tunnel();
            let now = pair.now;
            for side in [Side::A, Side::B] {
                let spi_in = *pair.node(side).children.keys().next().unwrap();
                pair.node(side).endpoint.delete_child(spi_in, now);
            }
            pair.drive_until(Duration::from_secs(5), |pair| {
                pair.a.children.is_empty() && pair.b.children.is_empty()
            });
            assert!(pair.a.children.is_empty() && pair.b.children.is_empty(), "seed {seed}");
            let downs = pair.a.saw("IkeDown") + pair.b.saw("IkeDown");
            pair.lose.extend(lost.map(|number| pair.counter + number));
            pair.drive_for(Duration::from_secs(60));
            assert_eq!(pair.a.saw("IkeDown") + pair.b.saw("IkeDown"), downs);
            pair.assert_one_tunnel();
            let redundant = |node: &support::pair::Node| {
                node.downs.iter().filter(|reason| **reason == ChildDownReason::Redundant).count()
            };
            crossed += redundant(&pair.a) + redundant(&pair.b);
            // Further ones that are wanted stay.
            let now = pair.now;
            pair.a.endpoint.create_child(LINK, now);
            pair.b.endpoint.create_child(LINK, now);
            pair.drive_for(Duration::from_secs(10));
            assert_eq!((pair.a.children.len(), pair.b.children.len()), (3, 3));
        }
    }
    assert!(crossed > 4, "requests must have crossed, but did so only {crossed} times");
}
