//! Both ends dial at once: one IKE SA survives, and traffic never stops (RFC 7296 §2.4).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use support::pair::{LINK, Pair, Side, calm, connection, node_config};

fn dial_both(seed: u64, skew: Duration, lost: Option<u64>, foreign: bool) -> Pair {
    let [mut a, b] = [Side::A, Side::B].map(|side| node_config(side, calm()));
    if foreign {
        a.vendor_id = b"somebody else".to_vec();
    }
    let mut pair = Pair::with_configs(seed, a, b);
    pair.lose.extend(lost);
    let now = pair.now;
    for side in [Side::A, Side::B] {
        pair.node(side).endpoint.set_connection(LINK, connection(side), now);
    }
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(skew);
    let now = pair.now;
    pair.b.endpoint.dial(LINK, now).unwrap();
    pair.keep_dialling();
    pair
}

#[test]
fn exactly_one_association_survives_at_any_skew() {
    for seed in 0..10 {
        for skew in [0, 1, 5, 10, 19, 20, 21, 39, 40, 41, 60, 79, 80, 81] {
            let mut pair = dial_both(seed, Duration::from_millis(skew), None, false);
            pair.drive_for(Duration::from_secs(20));
            pair.assert_one_tunnel();
            assert_eq!(
                pair.a.saw("DialFailed") + pair.b.saw("DialFailed"),
                0,
                "{:#?} {:#?}",
                pair.a.events,
                pair.b.events
            );
        }
    }
}

#[test]
fn traffic_goes_on_while_the_duplicate_is_removed() {
    for seed in 0..10 {
        let mut pair = dial_both(seed, Duration::ZERO, None, false);
        let up = |pair: &mut Pair| pair.a.outbound.is_some() && pair.b.outbound.is_some();
        assert!(pair.drive_until(Duration::from_secs(1), up));
        pair.drive_for(Duration::from_millis(40));
        pair.check_outbound = true;
        pair.drive_for(Duration::from_secs(20));
        assert_eq!(pair.outbound_violations, [""; 0], "seed {seed}");
        pair.assert_one_tunnel();
    }
}

#[test]
fn the_loss_of_any_message_changes_nothing_in_the_end() {
    for seed in 0..4 {
        for lost in 0..14 {
            let mut pair = dial_both(seed, Duration::from_millis(3), Some(lost), false);
            pair.drive_for(Duration::from_secs(120));
            pair.assert_one_tunnel();
        }
    }
}

#[test]
fn with_a_foreign_peer_all_are_accepted_and_nobody_redials() {
    let mut pair = dial_both(1, Duration::ZERO, None, true);
    pair.drive_for(Duration::from_secs(60));
    let (a, b) = (pair.a.established(), pair.b.established());
    assert_eq!((a.len(), b.len()), (2, 2), "the duplicate stays: only one of our kind may decide");
    assert!(a.iter().chain(&b).all(|report| !report.ours));
    assert_eq!((pair.a.ups, pair.b.ups), (2, 2));
    pair.assert_children_match();
}
