//! Traffic takes the way with the least latency, and another when that fails.

use super::*;

/// `a` and `c` are far from each other, `b` is in the middle.
fn triangle(seed: u64) -> (Simulation, [NodeId; 3]) {
    let (mut mesh, nodes) = full_mesh(seed, 3, rtt(40));
    let nodes = [nodes[0], nodes[1], nodes[2]];
    let [a, _, c] = nodes;
    mesh.set_link(a, c, rtt(265));
    (mesh, nodes)
}

fn goes(mesh: &Simulation, way: &[NodeId]) -> bool {
    mesh.way(way[0], way[way.len() - 1]).as_deref() == Some(way)
}

#[test]
fn traffic_takes_the_way_with_the_least_latency() {
    let (mut mesh, [a, b, c]) = triangle(20);
    converge(&mut mesh);
    assert!(goes(&mesh, &[a, b, c]) && goes(&mesh, &[c, b, a]));
    assert_eq!(mesh.latency(a, c), Some(millis(40)));
    assert_eq!(mesh.latency(c, a), Some(millis(40)));

    let there = mesh.stream(a, mesh.packet(a, c), millis(10));
    let back = mesh.stream(c, mesh.packet(c, a), millis(10));
    mesh.set_link(a, c, rtt(20));
    let direct = |mesh: &Simulation| goes(mesh, &[a, c]) && goes(mesh, &[c, a]);
    let time = mesh.run_until(seconds(60), direct).expect("direct again");
    assert!(time < seconds(45), "direct again after {time:?}");
    mesh.run_for(seconds(10));
    for stream in [there, back] {
        mesh.stop_stream(stream);
    }
    mesh.run_for(seconds(1));
    for stream in [there, back] {
        assert_eq!(mesh.report(stream).missing, [], "moving to another way loses nothing");
    }
    assert_eq!(mesh.latency(a, c), Some(millis(10)));
    assert_eq!(cryptographic_drops(&mesh), 0);
}

#[test]
fn loss_moves_traffic_away_and_its_end_brings_it_back() {
    let (mut mesh, [a, b, c]) = triangle(21);
    mesh.set_link(a, c, rtt(20));
    converge(&mut mesh);
    assert!(goes(&mesh, &[a, c]));
    mesh.set_link(a, c, LinkSettings { loss: 0.3, ..rtt(20) });
    let away = |mesh: &Simulation| goes(mesh, &[a, b, c]) && goes(mesh, &[c, b, a]);
    let time = mesh.run_until(seconds(60), away).expect("traffic leaves the lossy link");
    assert!(time < seconds(30), "it left after {time:?}");
    let stream = mesh.stream(a, mesh.packet(a, c), millis(10));
    mesh.run_for(seconds(60));
    mesh.stop_stream(stream);
    mesh.run_for(seconds(1));
    assert_eq!(mesh.report(stream).missing, [], "and stays away");
    mesh.set_link(a, c, rtt(20));
    let time = mesh.run_until(seconds(300), |mesh| goes(mesh, &[a, c])).expect("it comes back");
    assert!(time < seconds(180), "it came back after {time:?}");
}

#[test]
fn a_dead_link_moves_traffic_within_a_second() {
    let (mut mesh, [a, b, c]) = triangle(22);
    mesh.set_link(a, c, rtt(20));
    converge(&mut mesh);
    let there = mesh.stream(a, mesh.packet(a, c), millis(10));
    let back = mesh.stream(c, mesh.packet(c, a), millis(10));
    mesh.run_for(seconds(5));
    mesh.set_link(a, c, LinkSettings::DEAD);
    mesh.run_for(seconds(20));
    assert!(goes(&mesh, &[a, b, c]) && goes(&mesh, &[c, b, a]));
    for stream in [there, back] {
        let gap = mesh.report(stream).longest_gap;
        assert!(gap < seconds(1), "traffic stood still for {gap:?}");
    }
    mesh.set_link(a, c, rtt(20));
    let time = mesh.run_until(seconds(120), |mesh| goes(mesh, &[a, c]) && goes(mesh, &[c, a]));
    assert!(time.is_some(), "the link is used again:\n{}", mesh.log().join("\n"));
}

#[test]
fn a_relay_that_dies_is_replaced() {
    let (mut mesh, nodes) = full_mesh(23, 4, rtt(40));
    let [a, b, c, d] = [nodes[0], nodes[1], nodes[2], nodes[3]];
    mesh.set_link(a, c, rtt(265));
    mesh.set_link(a, d, rtt(60));
    converge(&mut mesh);
    assert!(goes(&mesh, &[a, b, c]));
    let stream = mesh.stream(a, mesh.packet(a, c), millis(10));
    mesh.run_for(seconds(5));
    mesh.kill(b);
    mesh.run_for(seconds(20));
    assert!(goes(&mesh, &[a, d, c]), "{:?}", mesh.way(a, c));
    let gap = mesh.report(stream).longest_gap;
    assert!(gap < seconds(1), "traffic stood still for {gap:?}");
}

#[test]
fn ways_of_nearly_the_same_length_do_not_take_turns() {
    for (seed, direct) in [(24, 78), (25, 82), (26, 86), (27, 90)] {
        let (mut mesh, [a, _, c]) = triangle(seed);
        let jittery = |rtt: u64| LinkSettings {
            delay: millis(rtt / 2 - 10),
            jitter: millis(20),
            ..LinkSettings::PERFECT
        };
        mesh.set_all_links(jittery(40));
        mesh.set_link(a, c, jittery(direct));
        converge(&mut mesh);
        mesh.forget();
        mesh.run_for(seconds(300));
        let changes = |node: NodeId, to: NodeId| {
            let wanted = format!("{}/128", mesh.address(to));
            let locator = wanted.replace("::1/128", "::/64");
            count_events(
                &mesh,
                node,
                |event| matches!(event, NodeEvent::RouteChanged { prefix, .. } if *prefix == locator),
            )
        };
        let (there, back) = (changes(a, c), changes(c, a));
        assert!(there <= 1 && back <= 1, "{direct} ms: {there} and {back} changes in five minutes");
    }
}
