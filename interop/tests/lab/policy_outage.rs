//! `if_unreachable: drop`: while a stop is missing, the policy's packets take no other way.

use crate::scene::PATIENCE;
use crate::waypoints::{UNIQUE, datagram, five_sites, node, settle, wait_policy};
use lab::{Pinger, ProbeFilter, Sighting};
use viamesh::control::report::PolicyState;

/// Ethernet and IPv4 headers of a probe that left without a tunnel.
const NAKED: usize = 14 + 28 + UNIQUE;

/// Whether a frame could hold a probe of the policy, in whatever wrapping.
fn could_be_a_probe(seen: &Sighting) -> bool {
    let by_size = seen.udp_payload.is_some_and(|size| (0..=4).any(|stops| size == datagram(28, stops)));
    by_size || seen.frame_length == NAKED
}

#[test]
fn a_killed_stop_blocks_the_policy_and_nothing_leaks() {
    let mut scene = five_sites().start(node);
    settle(&scene);
    let (alpha, delta) = (scene.site("alpha").inside(), scene.site("delta").inside());
    let pinger = Pinger {
        source: Some(alpha),
        payload: UNIQUE,
        count: None,
        patience: PATIENCE,
        ..Pinger::new(delta)
    };

    // All the time, from before the kill, probes are under way.
    let running = pinger.start(scene.host("alpha")).unwrap();
    scene.wait("answers by the policy", || running.received() >= 10);
    let log = scene.internet.world.probe_log().clone();
    log.start(ProbeFilter::All);
    scene.mesh.kill("charlie");
    wait_policy(&scene, PolicyState::Down);
    drop(running);
    log.stop();
    let sent_by_alpha = |seen: &Sighting| &*seen.from == "alpha" && could_be_a_probe(seen);
    let whole = datagram(28, 4);
    for seen in log.sightings().iter().filter(|seen| sent_by_alpha(seen)) {
        assert_eq!(seen.udp_payload, Some(whole), "it left alpha outside its policy: {seen:?}");
    }

    // From now on alpha lets none of them out.
    log.start(ProbeFilter::All);
    let report = Pinger { count: Some(50), patience: std::time::Duration::ZERO, ..pinger };
    let report = report.run(scene.host("alpha")).unwrap();
    log.stop();
    assert_eq!(report.received, 0, "{report:?}");
    let leaked: Vec<_> = log.sightings().into_iter().filter(sent_by_alpha).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    // The rest of alpha's traffic to the same node flows.
    scene.ping("alpha", scene.address("delta"));
    let status = scene.mesh.status("alpha").unwrap();
    assert!(status.policies[0].dropped > 0, "{:?}", status.policies);

    scene.mesh.start_node("charlie").unwrap();
    wait_policy(&scene, PolicyState::Up);
    let report = Pinger { count: Some(10), ..pinger };
    assert_eq!(report.run(scene.host("alpha")).unwrap().received, 10);
}
