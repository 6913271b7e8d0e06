//! What a path carries is found out by itself, whatever its MTU is.

use crate::scene::{Internet, QUICK, Scene};
use lab::{Pinger, TcpPump};
use std::net::SocketAddr;
use std::time::Duration;

/// IPv4, UDP and ESP around a packet in the tunnel.
const OVERHEAD: u16 = 62;
/// The search ends when it knows the result this exactly.
const PRECISION: u16 = 8;

/// Two sites; the path between them takes packets up to this size only.
fn scene(mtu: u16) -> Scene {
    Internet::behind_router(mtu.into()).start(|site| site.node().with(QUICK))
}

fn shrink(internet: &Internet, site: &str, mtu: u16) {
    let site = internet.site(site);
    site.host.set_mtu(&site.underlay.name, u32::from(mtu)).unwrap();
}

/// Waits until both ends believe that the tunnel carries what the path allows.
fn wait_mtu(scene: &Scene, path: u16) {
    let expected = (path - OVERHEAD).max(1280);
    for (from, to) in [("alpha", "bravo"), ("bravo", "alpha")] {
        let known = || {
            scene.mesh.status(from).unwrap().nodes.iter().find(|node| node.node == to).unwrap().links[0].mtu
        };
        let right = |mtu: u32| mtu <= u32::from(expected) && mtu + u32::from(PRECISION) > u32::from(expected);
        scene.wait(&format!("{from} to know that {expected} octets pass"), || known().is_some_and(right));
    }
}

/// Long packets arrive, by TCP and by ICMP in pieces.
fn carries_everything(scene: &Scene) {
    let target = SocketAddr::new(scene.address("bravo"), 7001);
    let pump = TcpPump { duration: Duration::from_millis(500), ..TcpPump::new(target) };
    assert!(pump.run(scene.host("alpha"), scene.host("bravo")).unwrap().bytes > 0);
    let long = Pinger { payload: 4000, count: Some(5), ..Pinger::new(scene.address("bravo")) };
    // The kernels learn first, from the nodes' errors, how long the pieces may be.
    scene.wait("all of five long probes to be answered", || {
        long.run(scene.host("alpha")).unwrap().received == 5
    });
}

#[test]
fn the_mtu_of_the_path_is_found_and_followed() {
    let scene = scene(1420);
    wait_mtu(&scene, 1420);
    carries_everything(&scene);
    // The kernel of alpha refuses what its interface does not take any more: the search begins anew.
    shrink(&scene.internet, "alpha", 1370);
    scene.wait("alpha to notice", || {
        let long = Pinger {
            payload: 1340,
            count: Some(1),
            patience: Duration::ZERO,
            ..Pinger::new(scene.address("bravo"))
        };
        let _ = long.run(scene.host("alpha")).unwrap();
        scene.mesh.status("alpha").unwrap().nodes.iter().any(|node| node.links[0].mtu <= Some(1370 - 62))
    });
    carries_everything(&scene);
}

#[test]
fn a_path_below_the_least_of_ipv6_gets_its_datagrams_in_pieces() {
    let scene = scene(1300);
    wait_mtu(&scene, 1300);
    carries_everything(&scene);
}
