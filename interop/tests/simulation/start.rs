//! From nothing to the first packet.

use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Two nodes that have nothing to do but to reach each other.
fn pair(seed: u64, unpublished: bool) -> (Simulation, NodeId, NodeId) {
    let mut mesh = Simulation::new(seed);
    let a = mesh.add(Blueprint::new("a"));
    let b = mesh.add(if unpublished { Blueprint::new("b").unpublished() } else { Blueprint::new("b") });
    mesh.set_link(a, b, LinkSettings::with_rtt(ROUND_TRIP));
    (mesh, a, b)
}

/// Both ends send a packet every millisecond from the beginning on. Returns when the first dial was, and what
/// became of the packets.
fn first_packets(unpublished: bool) -> (Duration, [StreamReport; 2]) {
    let (mut mesh, a, b) = pair(1, unpublished);
    mesh.start_all();
    let there = mesh.stream(a, mesh.packet(a, b), millis(1));
    let back = mesh.stream(b, mesh.packet(b, a), millis(1));
    mesh.run_for(seconds(2));
    let dial = mesh.capture().iter().find(|datagram| matches!(datagram.kind, Kind::Ike { exchange: 34, .. }));
    let dial = dial.expect("somebody dials").at;
    (dial, [mesh.report(there), mesh.report(back)])
}

fn assert_fast(dial: Duration, reports: &[StreamReport; 2]) {
    let limit = dial + 3 * ROUND_TRIP + millis(50);
    for report in reports {
        let (sent, _) = report.first.expect("packets arrive");
        assert!(sent <= limit, "packets pass from {sent:?} on, {limit:?} at the latest was promised");
        let late = report.missing.iter().find(|missing| **missing > sent && **missing < millis(1900));
        assert_eq!(late, None, "once packets pass, none is lost");
    }
    let arrived = reports.iter().filter_map(|report| report.first).map(|(_, arrived)| arrived).min();
    assert!(arrived.is_some_and(|at| at <= limit), "the first arrives at {arrived:?}, not by {limit:?}");
}

#[test]
fn first_packet_passes_within_three_round_trips_when_one_dials() {
    let (dial, reports) = first_packets(true);
    assert_fast(dial, &reports);
}

#[test]
fn first_packet_passes_within_three_round_trips_when_both_dial() {
    let (dial, reports) = first_packets(false);
    assert_fast(dial, &reports);
}

#[test]
fn simultaneous_dials_end_with_one_association() {
    for (seed, offset) in [0, 1, 20, 49, 50, 51, 99, 100, 101, 149, 150, 151, 200].into_iter().enumerate() {
        for loss in [0.0, 0.2] {
            let (mut mesh, a, b) = pair(seed as u64, false);
            mesh.set_link(a, b, LinkSettings { loss, ..LinkSettings::with_rtt(ROUND_TRIP) });
            mesh.start(a);
            mesh.run_for(millis(offset));
            mesh.start(b);
            mesh.run_for(seconds(20));
            mesh.set_link(a, b, LinkSettings::with_rtt(ROUND_TRIP));
            mesh.run_for(seconds(20));
            let case = format!("b starts after {offset} ms, {loss} lost");
            assert_one_association(&mut mesh, a, b, &case);
        }
    }
}

fn assert_one_association(mesh: &mut Simulation, a: NodeId, b: NodeId, case: &str) {
    let mut spis = BTreeSet::new();
    for node in [a, b] {
        let report = mesh.associations(node).expect("it runs");
        let [only] = report.associations.as_slice() else {
            panic!("{case}: {:#?}\n{}", report.associations, mesh.trace().join("\n"));
        };
        spis.insert((only.initiator_spi.clone(), only.responder_spi.clone()));
        assert_eq!(only.children.len(), 1, "{case}: {:?}", only.children);
    }
    assert_eq!(spis.len(), 1, "{case}: both speak of the same one");
    assert_eq!(mesh.latency(a, b), Some(ROUND_TRIP / 2), "{case}");
    assert_eq!(mesh.latency(b, a), Some(ROUND_TRIP / 2), "{case}");
}

#[test]
fn a_node_that_cannot_be_dialled_dials() {
    let (mut mesh, a, b) = pair(3, true);
    mesh.start_all();
    converge(&mut mesh);
    assert_eq!(mesh.latency(a, b), Some(ROUND_TRIP / 2));
}

#[test]
fn endpoints_of_both_families_make_a_link_each() {
    let mut mesh = Simulation::new(4);
    let both = [Family::Ip4, Family::Ip6];
    let a = mesh.add(Blueprint::new("a").over(&both));
    let b = mesh.add(Blueprint::new("b").over(&both));
    let c = mesh.add(Blueprint::new("c").over(&[Family::Ip6]));
    mesh.set_all_links(rtt(30));
    mesh.start_all();
    converge(&mut mesh);
    let links = |mesh: &mut Simulation, node| mesh.neighbours(node).expect("it runs").neighbours.len();
    assert_eq!([a, b, c].map(|node| links(&mut mesh, node)), [3, 3, 2]);
    assert_only_ciphertext_on_the_underlay(&mesh);
}
