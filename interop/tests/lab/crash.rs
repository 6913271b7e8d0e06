//! A daemon that is killed: what holds, and what the next start finds.

use crate::cleanliness::{busy_node, kernel_state, wait_busy};
use crate::scene::{Internet, PATIENCE};
use lab::{Pinger, ProbeFilter, wait_until};

#[test]
fn a_start_after_a_kill_adopts_what_was_left_and_doubles_nothing() {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    let alpha = internet.site("alpha").host.clone();
    let before = kernel_state(&alpha);
    let mut scene = internet.start(busy_node);
    wait_busy(&scene);
    let first_run = kernel_state(&alpha);
    scene.mesh.kill("alpha");
    scene.mesh.start_node("alpha").unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
    wait_busy(&scene);
    // The device is a new one, so the order in which its routes come back may differ for a moment.
    let differs = || {
        let (now, then) = (kernel_state(&alpha), &first_run);
        let new: Vec<_> = now.iter().filter(|line| !then.contains(line)).cloned().collect();
        let gone: Vec<_> = then.iter().filter(|line| !now.contains(line)).cloned().collect();
        (now != *then).then_some((now.len(), new, gone))
    };
    let settled = wait_until(PATIENCE, "the same state as before the crash", || differs().is_none());
    settled.unwrap_or_else(|error| panic!("{error}: {:?}, {} lines before", differs(), first_run.len()));
    scene.mesh.stop("alpha").unwrap();
    assert_eq!(kernel_state(&alpha), before);
}

#[test]
fn a_drop_policy_holds_while_the_daemon_is_dead() {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    // The host would have another way: a default route past the mesh.
    let alpha = internet.site("alpha").host.clone();
    let router = internet.site("bravo").underlay.v4.unwrap();
    alpha.add_route("0.0.0.0/0".parse().unwrap(), router.into()).unwrap();
    let mut scene = internet.start(busy_node);
    wait_busy(&scene);
    let outside = "203.0.113.9".parse().unwrap();
    let log = scene.internet.world.probe_log().clone();
    let source = Some(scene.site("alpha").inside());
    let probes = Pinger { source, payload: 777, patience: std::time::Duration::ZERO, ..Pinger::new(outside) };
    scene.mesh.kill("alpha");
    log.start(ProbeFilter::FrameLength(14 + 28 + 777..=14 + 28 + 777));
    let report = probes.run(&alpha).unwrap();
    log.stop();
    assert_eq!((report.received, log.sightings().len()), (0, 0), "{:?}", log.sightings());
    // Whoever is no source of the policy may go that way.
    log.start(ProbeFilter::FrameLength(14 + 28 + 777..=14 + 28 + 777));
    Pinger { source: None, ..probes }.run(&alpha).unwrap();
    log.stop();
    assert!(!log.sightings().is_empty());
}
