//! Policies: packets visit the stops in their order, in a world where the direct way is always the best.

use crate::scene::{Internet, PATIENCE, QUICK, Scene, Site};
use lab::{Pinger, ProbeFilter};
use srv6::Form;
use std::net::IpAddr;
use viamesh::control::report::PolicyState;
use viamesh::demo::NodeSpec;

/// The stops of the policy, its node first and its exit last.
pub(crate) const JOURNEY: [&str; 5] = ["alpha", "bravo", "charlie", "bravo", "delta"];

/// Bytes of ICMP data that nothing else in the world has.
pub(crate) const UNIQUE: usize = 777;

/// Five sites, all equally far from each other: whoever takes a relay loses time.
pub(crate) fn five_sites() -> Internet {
    Internet::new(&["alpha", "bravo", "charlie", "delta", "echo"], 20)
}

/// Alpha sends what goes from its network to delta's on the journey.
pub(crate) fn node(site: &Site) -> NodeSpec {
    let spec = site.node().with(QUICK);
    match site.host.name() {
        "alpha" => spec.with(&policy()),
        _ => spec,
    }
}

fn policy() -> String {
    "policies:\n- name: scenic\n  from: [10.1.0.0/24]\n  to: [10.4.0.0/24]\n  \
     via: [bravo, charlie, bravo]\n  exit: delta\n  if_unreachable: drop\n"
        .to_owned()
}

/// The UDP payload of a probe with [`UNIQUE`] bytes of data behind `headers` bytes, steered over so many stops.
pub(crate) fn datagram(headers: usize, stops: usize) -> usize {
    let outer = if stops == 0 { 0 } else { srv6::overhead::of_path(stops, Form::Reduced) };
    esp::sealed_len(outer + headers + UNIQUE)
}

/// Waits until alpha's policy is in that state.
pub(crate) fn wait_policy(scene: &Scene, state: PolicyState) {
    scene.wait("the policy's state", || {
        let status = scene.mesh.status("alpha").unwrap();
        status.policies.first().is_some_and(|policy| policy.state == state)
    });
}

/// Waits until the policy is up and the stops reach each other directly.
pub(crate) fn settle(scene: &Scene) {
    for pair in JOURNEY.windows(2) {
        scene.wait_path(pair[0], pair[1], None);
    }
    wait_policy(scene, PolicyState::Up);
}

/// The stations that one probe of unique size visits, by the emulator's log.
pub(crate) fn visited(scene: &Scene, source: IpAddr, target: IpAddr, datagram: usize) -> Vec<String> {
    let log = scene.internet.world.probe_log();
    log.start(ProbeFilter::UdpPayload(datagram..=datagram));
    let source = Some(source);
    let probe = Pinger { source, count: Some(1), payload: UNIQUE, patience: PATIENCE, ..Pinger::new(target) };
    let report = probe.run(scene.host("alpha")).unwrap();
    log.stop();
    assert_eq!(report.received, 1, "{target} does not answer");
    log.journey()
}

#[test]
fn a_probe_visits_the_stops_of_its_policy_in_their_order() {
    let scene = five_sites().start(node);
    settle(&scene);
    let (alpha, delta) = (scene.site("alpha").inside(), scene.site("delta").inside());
    // The answer comes back without the policy, so in another size: the log has the probe alone.
    assert_eq!(visited(&scene, alpha, delta, datagram(28, 4)), JOURNEY);

    // What no policy names goes the fastest way, there and back.
    let echo = scene.site("echo").inside();
    assert_eq!(visited(&scene, alpha, echo, datagram(28, 0)), ["alpha", "echo", "alpha"]);
    let (alpha, delta) = (scene.address("alpha"), scene.address("delta"));
    assert_eq!(visited(&scene, alpha, delta, datagram(48, 0)), ["alpha", "delta", "alpha"]);
}

#[test]
fn trace_and_explain_tell_the_journey_that_packets_take() {
    let scene = five_sites().start(node);
    settle(&scene);
    let (alpha, delta) = (scene.site("alpha").inside().to_string(), scene.site("delta").inside().to_string());
    let trace = scene.document("alpha", &["trace", &delta, "--from", &alpha]);
    let stops: Vec<_> = trace["hops"].as_array().unwrap().iter().map(|hop| &hop["node"]).collect();
    assert_eq!(stops, JOURNEY[1..], "{trace:#}");
    assert_eq!((&trace["policy"], &trace["complete"]), (&"scenic".into(), &true.into()));

    let explained = scene.document("alpha", &["explain", &alpha, &delta]);
    assert_eq!(explained["path"], serde_json::json!(JOURNEY), "{explained:#}");
    assert_eq!(explained["segments"].as_array().unwrap().len(), 4);

    let direct = scene.address("delta").to_string();
    let trace = scene.document("alpha", &["trace", &direct]);
    let stops: Vec<_> = trace["hops"].as_array().unwrap().iter().map(|hop| &hop["node"]).collect();
    assert_eq!(stops, ["delta"], "{trace:#}");
}
