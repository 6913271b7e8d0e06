//! Loss, reordering and duplication: it takes longer, it still works.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::Timers;
use support::pair::{LINK, Pair, calm};

fn restless() -> Timers {
    let mut timers = calm();
    timers.child_rekey = Duration::from_secs(5);
    timers.ike_rekey = Duration::from_secs(17);
    timers.rekey_jitter_percent = 30;
    timers
}

fn rough(seed: u64, loss_percent: u32) -> Pair {
    let mut pair = Pair::new(seed, restless());
    pair.network.jitter = Duration::from_millis(60);
    pair.network.duplicate_percent = 20;
    pair.network.loss_percent = loss_percent;
    pair.keep_dialling();
    pair
}

#[test]
fn a_tunnel_comes_up_and_lives_through_a_third_of_loss() {
    for seed in 0..30 {
        let mut pair = rough(seed, 33);
        assert!(
            pair.drive_until(Duration::from_secs(120), |pair| pair.a.outbound.is_some()
                && pair.b.outbound.is_some()),
            "seed {seed}: {:#?}",
            pair.a.events
        );
        pair.drive_for(Duration::from_secs(120));
        // Calm again: whatever is left must be one working tunnel.
        pair.network.loss_percent = 0;
        pair.network.duplicate_percent = 0;
        pair.network.jitter = Duration::ZERO;
        pair.drive_for(Duration::from_secs(180));
        let (a, b) = (pair.a.established(), pair.b.established());
        assert_eq!((a.len(), b.len()), (1, 1), "seed {seed}");
        assert_eq!(a[0].spis, b[0].spis);
        pair.settle(Duration::from_secs(30));
        pair.assert_children_match();
        assert!(pair.a.outbound.is_some() && pair.b.outbound.is_some());
    }
}

#[test]
fn reordering_and_duplication_alone_cost_nothing() {
    for seed in 0..20 {
        let mut pair = rough(seed, 0);
        pair.drive_for(Duration::from_secs(2));
        pair.check_outbound = true;
        pair.drive_for(Duration::from_secs(100));
        assert_eq!(pair.a.saw("PeerSilent") + pair.b.saw("PeerSilent"), 0);
        assert_eq!(
            pair.a.saw("ProtocolError") + pair.b.saw("ProtocolError"),
            0,
            "{:#?} {:#?}",
            pair.a.events,
            pair.b.events
        );
        assert_eq!(pair.outbound_violations, [""; 0], "seed {seed}");
        pair.settle(Duration::from_secs(30));
        pair.assert_children_match();
    }
}

#[test]
fn any_message_of_the_handshake_may_be_lost() {
    for lost in 0..4 {
        let mut pair = Pair::configured(lost, calm());
        pair.lose.push(lost);
        let now = pair.now;
        pair.a.endpoint.dial(LINK, now).unwrap();
        pair.drive_for(Duration::from_secs(10));
        pair.assert_one_tunnel();
        assert_eq!(pair.b.ups, 1, "a repeated request makes no second association");
    }
}

#[test]
fn each_message_sent_twice_is_processed_once() {
    let mut pair = Pair::configured(3, calm());
    pair.network.duplicate_percent = 100;
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(60));
    pair.assert_one_tunnel();
    assert_eq!((pair.a.ups, pair.b.ups), (1, 1));
}
