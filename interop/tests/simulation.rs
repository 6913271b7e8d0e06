//! Meshes of real nodes in virtual time: what they must do, and how fast.
#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

#[path = "simulation/endurance.rs"]
mod endurance;
#[path = "simulation/introduction.rs"]
mod introduction;
#[path = "simulation/mesh_of_ten.rs"]
mod mesh_of_ten;
#[path = "simulation/paths.rs"]
mod paths;
#[path = "simulation/relay.rs"]
mod relay;
#[path = "simulation/start.rs"]
mod start;
#[path = "simulation/waypoints.rs"]
mod waypoints;

use interop::simulation::{
    Blueprint, Kind, Nat, NodeId, Packet, Simulation, StreamReport, candidate, policy,
};
use lab::{LinkSettings, Random};
use std::collections::BTreeSet;
use std::time::Duration;
use viamesh::config::settings::{Family, IfUnreachable};
use viamesh::forwarding::DropReason;
use viamesh::node::NodeEvent;

/// What a security association must never have to discard between two honest nodes.
const CRYPTOGRAPHIC: [DropReason; 5] = [
    DropReason::UnknownSpi,
    DropReason::Replayed,
    DropReason::OutsideWindow,
    DropReason::IntegrityFailure,
    DropReason::SequenceExhausted,
];

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn rtt(millis: u64) -> LinkSettings {
    LinkSettings::with_rtt_ms(millis)
}

/// Nodes `a`, `b`, `c`, … that run, every pair at this distance.
fn full_mesh(seed: u64, count: usize, link: LinkSettings) -> (Simulation, Vec<NodeId>) {
    let mut mesh = Simulation::new(seed);
    let nodes = ('a'..).take(count).map(|name| mesh.add(Blueprint::new(name))).collect();
    mesh.set_all_links(link);
    mesh.start_all();
    (mesh, nodes)
}

/// Runs until everybody reaches everybody, and a little longer, so that round-trip times are known.
fn converge(mesh: &mut Simulation) -> Duration {
    let time = mesh.run_until(seconds(30), Simulation::is_connected);
    let time = time.unwrap_or_else(|| panic!("no mesh after 30 s:\n{}", mesh.log().join("\n")));
    mesh.run_for(seconds(20));
    time
}

fn assert_only_ciphertext_on_the_underlay(mesh: &Simulation) {
    let strange: Vec<_> = mesh.capture().iter().filter(|datagram| datagram.kind == Kind::Other).collect();
    assert!(strange.is_empty(), "neither IKE nor ESP nor a keepalive: {strange:?}");
    assert_eq!(mesh.leaks(), 0, "plain text on the underlay");
}

/// Packets that security associations of running nodes had to discard.
fn cryptographic_drops(mesh: &Simulation) -> u64 {
    let of_node = |node| CRYPTOGRAPHIC.map(|reason| mesh.dropped(node, reason)).iter().sum::<u64>();
    mesh.nodes().map(of_node).sum()
}

fn count_events(mesh: &Simulation, node: NodeId, matches: impl Fn(&NodeEvent) -> bool) -> usize {
    mesh.events().iter().filter(|(_, at, event)| *at == node && matches(event)).count()
}
