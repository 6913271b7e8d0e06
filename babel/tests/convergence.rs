//! Routes appear, follow latency, loss and failures, and do not flap.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod support;

use std::time::Duration;

use support::topology::{Network, millis, prefix_of, seconds};

/// A–C directly, and by B. Returns the link A–C.
fn triangle(direct: Duration, seed: u64) -> (Network, usize) {
    let mut network = Network::new(3, seed);
    let link = network.link(0, 2, direct);
    network.link(0, 1, millis(40));
    network.link(1, 2, millis(40));
    (network, link)
}

/// The same with fast Hellos where routes are used.
fn fast_triangle(direct: Duration, seed: u64, hello: Duration) -> (Network, usize) {
    let mut network = Network::new(3, seed);
    network.interface_config.fast_hello = Some(millis(100));
    network.interface_config.hello_interval = hello;
    let link = network.link(0, 2, direct);
    network.link(0, 1, millis(40));
    network.link(1, 2, millis(40));
    (network, link)
}

#[test]
fn two_routers_route_within_three_round_trips() {
    let mut network = Network::new(2, 1);
    network.link(0, 1, millis(100));
    let took = network.run_until(seconds(5), |n| n.path(0, 1).is_some() && n.path(1, 0).is_some());
    assert!(took.unwrap() <= millis(300), "{took:?}");
}

#[test]
fn late_second_end_is_found_as_fast() {
    let mut network = Network::new(2, 2);
    network.interface_config.hello_interval = seconds(4);
    network.crash(1);
    network.link(0, 1, millis(100));
    network.run(seconds(30));
    network.boot(1, None);
    let took = network.run_until(seconds(5), |n| n.path(0, 1).is_some() && n.path(1, 0).is_some());
    assert!(took.unwrap() <= millis(300), "{took:?}");
}

#[test]
fn traffic_takes_the_relay_and_comes_back() {
    let (mut network, direct) = triangle(millis(265), 3);
    network.run(seconds(5));
    assert_eq!(network.path(0, 2), Some(vec![0, 1, 2]));
    assert_eq!(network.path(2, 0), Some(vec![2, 1, 0]));
    let metric = network.selected(0, prefix_of(2)).unwrap().metric;
    assert!((328..=340).contains(&metric), "8 + 156 for each link: {metric}");
    network.set_rtt(direct, millis(20));
    let took = network.run_until(seconds(30), |n| n.path(0, 2) == Some(vec![0, 2]));
    assert!(took.unwrap() <= seconds(5), "{took:?}");
    network.set_rtt(direct, millis(265));
    let took = network.run_until(seconds(30), |n| n.path(0, 2) == Some(vec![0, 1, 2]));
    assert!(took.unwrap() <= seconds(5), "{took:?}");
    let lost = network.log.iter().any(|(_, _, event)| matches!(event, babel::Event::RouteLost { .. }));
    assert!(!lost, "there was a route at every moment");
}

#[test]
fn a_real_change_moves_traffic_in_seconds() {
    let (mut network, direct) = triangle(millis(40), 4);
    network.run(seconds(60));
    assert_eq!(network.path(0, 2), Some(vec![0, 2]));
    network.set_rtt(direct, millis(120));
    let took = network.run_until(seconds(30), |n| n.path(0, 2) == Some(vec![0, 1, 2]));
    assert!(took.unwrap() <= seconds(6), "{took:?}");
}

#[test]
fn thirty_percent_loss_moves_traffic_and_keeps_it_away() {
    let mut times = Vec::new();
    for seed in 0..6 {
        let (mut network, direct) = fast_triangle(millis(40), 500 + seed, seconds(1 + 3 * (seed % 2)));
        network.run(seconds(30));
        assert_eq!(network.path(0, 2), Some(vec![0, 2]));
        network.links[direct].loss = [0.3; 2];
        let relayed =
            |n: &Network| n.path(0, 2) == Some(vec![0, 1, 2]) && n.path(2, 0) == Some(vec![2, 1, 0]);
        times.push(network.run_until(seconds(60), relayed).unwrap());
        // For a while the fast Hellos of the time before still count.
        network.run(seconds(20));
        let since = network.elapsed();
        network.run(seconds(600));
        let changes = network.changes(0, prefix_of(2), since) + network.changes(2, prefix_of(0), since);
        assert_eq!(changes, 0, "seed {seed}: traffic returned to the lossy link");
        assert!(relayed(&network));
        network.links[direct].loss = [0.0; 2];
        let back = network.run_until(seconds(400), |n| n.path(0, 2) == Some(vec![0, 2]));
        assert!(back.is_some(), "seed {seed}: a repaired link is used again");
    }
    times.sort();
    assert!(times[3] <= seconds(5) && times[5] <= seconds(8), "{times:?}");
}

#[test]
fn a_change_on_an_unused_link_is_seen_in_seconds_with_slow_hellos() {
    for seed in 0..4 {
        let (mut network, direct) = fast_triangle(millis(265), 520 + seed, seconds(4));
        network.run(seconds(60));
        assert_eq!(network.path(0, 2), Some(vec![0, 1, 2]));
        network.set_rtt(direct, millis(40));
        let took = network.run_until(seconds(30), |n| n.path(0, 2) == Some(vec![0, 2]));
        assert!(took.unwrap() <= seconds(7), "{took:?}");
    }
}

/// Only router 0 sends over the direct link, and only its direction fails: router 2 must notice.
#[test]
fn the_far_end_notices_when_nothing_arrives_any_more() {
    let (mut network, direct) = fast_triangle(millis(20), 530, seconds(4));
    network.with_router(0, |router, now| router.withdraw(prefix_of(0), now));
    network.run(seconds(60));
    assert_eq!(network.path(0, 2), Some(vec![0, 2]));
    let forth = usize::from(network.links[direct].ends[1] == 0);
    network.links[direct].up[forth] = false;
    let took = network.run_until(seconds(60), |n| n.path(0, 2) == Some(vec![0, 1, 2]));
    assert!(took.unwrap() < millis(600), "{took:?}");
}

#[test]
fn thirty_percent_loss_moves_traffic_with_slow_hellos_too() {
    let (mut network, direct) = triangle(millis(40), 6);
    network.run(seconds(30));
    network.links[direct].loss = [0.3; 2];
    let took = network.run_until(seconds(60), |n| n.path(0, 2) == Some(vec![0, 1, 2]));
    assert!(took.unwrap() <= seconds(25), "{took:?}");
}

#[test]
fn dead_link_moves_traffic_in_less_than_a_second_with_fast_hellos() {
    for seed in 0..10 {
        let mut network = Network::new(3, 70 + seed);
        network.interface_config.fast_hello = Some(millis(100));
        let direct = network.link(0, 2, millis(20));
        network.link(0, 1, millis(40));
        network.link(1, 2, millis(40));
        network.run(seconds(10) + millis(37 * seed));
        assert_eq!(network.path(0, 2), Some(vec![0, 2]));
        network.set_up(direct, false);
        let both = |n: &Network| n.path(0, 2) == Some(vec![0, 1, 2]) && n.path(2, 0) == Some(vec![2, 1, 0]);
        let took = network.run_until(seconds(30), both);
        assert!(took.unwrap() < millis(420), "{took:?}");
    }
}

#[test]
fn one_way_failure_moves_both_directions() {
    let mut network = Network::new(3, 8);
    network.interface_config.fast_hello = Some(millis(100));
    let direct = network.link(0, 2, millis(20));
    network.link(0, 1, millis(40));
    network.link(1, 2, millis(40));
    network.run(seconds(10));
    network.links[direct].up[0] = false;
    let both = |n: &Network| n.path(0, 2) == Some(vec![0, 1, 2]) && n.path(2, 0) == Some(vec![2, 1, 0]);
    let took = network.run_until(seconds(30), both);
    assert!(took.unwrap() < seconds(1), "{took:?}");
}

#[test]
fn traffic_keeps_a_neighbour_whose_hellos_are_late() {
    let mut network = Network::new(2, 9);
    network.interface_config.fast_hello = Some(millis(100));
    let link = network.link(0, 1, millis(20));
    network.run(seconds(10));
    network.links[link].loss = [1.0; 2];
    // Data goes on for two seconds although no Hello comes: standard timers have not run out yet.
    for _ in 0..20 {
        network.run(millis(100));
        for end in 0..2 {
            network.with_router(end, |router, now| router.traffic_seen(babel::InterfaceId(0), now));
        }
    }
    assert!(network.path(0, 1).is_some());
    let took = network.run_until(seconds(10), |n| n.path(0, 1).is_none());
    assert!(took.unwrap() < seconds(1), "{took:?}");
}

#[test]
fn late_wake_kills_nobody() {
    let mut network = Network::new(2, 10);
    network.interface_config.fast_hello = Some(millis(100));
    network.link(0, 1, millis(20));
    network.run(seconds(10));
    // The control loop of router 0 sleeps for a minute, then wakes before it reads its socket.
    let mut sleeper = network.routers[0].take().unwrap();
    let now = network.now + seconds(60);
    sleeper.handle_timeout(now);
    assert!(sleeper.neighbours(now)[0].up);
    let events: Vec<_> = std::iter::from_fn(|| sleeper.poll_event()).collect();
    assert_eq!(events, vec![]);
}

#[test]
fn equal_paths_with_jitter_do_not_flap() {
    for (seed, direct, hellos) in [(11, 78, 1), (12, 80, 1), (13, 83, 1), (14, 80, 4), (15, 76, 1)] {
        let mut network = Network::new(3, seed);
        network.interface_config.hello_interval = seconds(hellos);
        network.link(0, 2, millis(direct));
        network.link(0, 1, millis(40));
        network.link(1, 2, millis(40));
        network.links.iter_mut().for_each(|link| link.jitter = millis(10));
        network.run(seconds(60));
        let since = network.elapsed();
        network.run(seconds(300));
        let changes = network.changes(0, prefix_of(2), since);
        assert!(changes <= 2, "direct {direct} ms, Hellos each {hellos} s: {changes} changes");
    }
}

#[test]
fn equal_paths_with_jitter_and_fast_hellos_do_not_flap() {
    let mut network = Network::new(3, 16);
    network.interface_config.fast_hello = Some(millis(100));
    network.link(0, 2, millis(80));
    network.link(0, 1, millis(40));
    network.link(1, 2, millis(40));
    network.links.iter_mut().for_each(|link| link.jitter = millis(10));
    network.run(seconds(60));
    let since = network.elapsed();
    network.run(seconds(300));
    assert!(network.changes(0, prefix_of(2), since) <= 2);
    let lost = network.log.iter().any(|(_, _, event)| matches!(event, babel::Event::NeighbourDown { .. }));
    assert!(!lost, "jitter kills no neighbour");
}
