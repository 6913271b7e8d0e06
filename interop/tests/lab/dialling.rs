//! Who dials whom, how many tunnels that makes, and how long the first packet takes.

use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use lab::{Pinger, ProbeFilter};
use std::time::{Duration, Instant};
use viamesh::control::report::{AssociationsReport, Dialled, PathStatus};

/// The SPIs of the only IKE SA of a node; `None` if it has none, or several, or one that is not ready.
fn only_association(report: &AssociationsReport) -> Option<(String, String)> {
    match report.associations.as_slice() {
        [only] if only.state == "established" && only.children.len() == 1 => {
            Some((only.initiator_spi.clone(), only.responder_spi.clone()))
        }
        _ => None,
    }
}

fn share_one_tunnel(scene: &Scene) -> bool {
    let alpha = only_association(&scene.associations("alpha"));
    alpha.is_some() && alpha == only_association(&scene.associations("bravo"))
}

#[test]
fn two_nodes_that_dial_each_other_at_once_share_one_tunnel() {
    // The messages of both dials cross: each takes far longer than both daemons need to start.
    let internet = Internet::new(&["alpha", "bravo"], 1000);
    let scene = internet.start(|site| site.node().with(QUICK));
    scene.wait("one IKE SA with one CHILD SA on both sides", || share_one_tunnel(&scene));
    let target = scene.address("bravo");
    let report = Pinger { patience: PATIENCE, ..Pinger::new(target) }.run(scene.host("alpha")).unwrap();
    assert_eq!((report.received, report.duplicates), (report.sent, 0), "{report:?}");
    assert!(share_one_tunnel(&scene), "{:?}", scene.associations("alpha"));
}

#[test]
fn a_node_without_an_address_dials_and_is_reached_both_ways() {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    let scene = internet.start(|site| {
        let mut spec = site.node().with(QUICK);
        if spec.name == "bravo" {
            spec.addresses.clear();
        }
        spec
    });
    let dialled = |from: &str, to: &str| match scene.mesh.path(from, to) {
        Some(PathStatus::Direct { dialled, .. }) => dialled,
        other => panic!("{from} to {to}: {other:?}"),
    };
    assert_eq!(dialled("bravo", "alpha"), Dialled::Us);
    assert_eq!(dialled("alpha", "bravo"), Dialled::Them);
    scene.ping("alpha", scene.address("bravo"));
    scene.ping("bravo", scene.address("alpha"));
    assert!(share_one_tunnel(&scene), "{:?}", scene.associations("alpha"));
}

#[test]
fn the_first_packet_leaves_within_three_round_trips_of_the_dial() {
    let round_trip = Duration::from_secs(2);
    let internet = Internet::new(&["alpha", "bravo"], 2000);
    // Only alpha dials, and bravo listens before it does.
    let mut scene = internet.prepare(|site| {
        let mut spec = site.node().with("timers: { retransmit: 10s }");
        if spec.name == "alpha" {
            spec.addresses.clear();
        }
        spec
    });
    scene.mesh.start_node("bravo").unwrap();
    scene.wait("bravo to listen", || scene.mesh.status("bravo").is_ok());
    let target = scene.address("bravo");
    let log = scene.internet.world.probe_log().clone();
    log.start(ProbeFilter::UdpPayload(0..=usize::MAX));
    // The kernel refuses the probes until there is a route; the first one after that is the first packet.
    let started = Instant::now();
    let pinger = Pinger { count: None, patience: PATIENCE, ..Pinger::new(target) };
    let pinger = pinger.start(scene.host("alpha")).unwrap();
    scene.mesh.start_node("alpha").unwrap();
    scene.wait("the first answer", || pinger.received() > 0);
    log.stop();
    let report = pinger.stop().unwrap();
    let dial = log.sightings().first().unwrap().at;
    let (left, _) = report.probes.iter().find(|(_, answer)| answer.is_some()).unwrap();
    let took = (started + *left).saturating_duration_since(dial);
    // The promise is 50 ms on top of three; half a round trip is for a machine that is busy.
    assert!(took <= round_trip * 7 / 2, "{took:?} for round trips of {round_trip:?}");
}
