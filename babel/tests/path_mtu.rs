//! Path MTU probing finds what the link carries.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod support;

use babel::{Event, InterfaceId};
use support::topology::{Network, millis, seconds};

fn probe(carried: usize, ceiling: u16, loss: f64) -> Vec<Option<u16>> {
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
    assert_eq!(probe(1500, 1438, 0.0), vec![Some(1438)]);
    for carried in [1280, 1281, 1287, 1288, 1289, 1300, 1400, 1499] {
        let found = probe(carried, 9000, 0.0);
        let [Some(mtu)] = found[..] else { panic!("{carried}: {found:?}") };
        assert!(usize::from(mtu) <= carried && usize::from(mtu) + 8 > carried, "{carried}: {mtu}");
    }
    assert_eq!(probe(1500, 1000, 0.0), vec![Some(1280)]);
}

#[test]
fn a_link_that_carries_no_ipv6_is_found() {
    assert_eq!(probe(1279, 1438, 0.0), vec![None]);
    assert_eq!(probe(1000, 1280, 0.0), vec![None]);
}

#[test]
fn some_loss_is_not_a_limit() {
    assert_eq!(probe(1500, 1500, 0.1), vec![Some(1500)]);
}
