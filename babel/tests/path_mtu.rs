//! Path MTU probing finds what the link carries.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod support;

use babel::{Event, InterfaceId};
use support::topology::{Network, millis, seconds};

fn probe(carried: usize, ceiling: u16, loss: f64) -> Vec<u16> {
    let mut network = Network::new(2, 1);
    let link = network.link(0, 1, millis(40));
    network.run(seconds(3));
    network.links[link].mtu = carried;
    network.links[link].loss = [loss; 2];
    network.with_router(0, |router, now| router.probe_path_mtu(InterfaceId(0), ceiling, now));
    network.run(seconds(30));
    let found = network.log.iter().filter_map(|(_, _, event)| match event {
        Event::PathMtu { mtu, .. } => Some(*mtu),
        _ => None,
    });
    found.collect()
}

#[test]
fn finds_the_limit() {
    assert_eq!(probe(1500, 1438, 0.0), vec![1438]);
    let found = probe(1400, 9000, 0.0);
    assert!(found.len() == 1 && (1393..=1400).contains(&found[0]), "{found:?}");
    assert_eq!(probe(1280, 1500, 0.0).len(), 1);
    assert!((1280..1288).contains(&probe(1280, 1500, 0.0)[0]));
    assert_eq!(probe(1500, 1000, 0.0), vec![1280]);
}

#[test]
fn some_loss_is_not_a_limit() {
    assert_eq!(probe(1500, 1500, 0.1), vec![1500]);
}
