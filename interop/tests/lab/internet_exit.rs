//! An exit to an internet that knows nothing of the mesh.

use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use ipnet::IpNet;
use lab::{Host, Interface, Responder, SegmentConfig, ask_responder};
use std::net::SocketAddr;

/// Charlie is connected to a web server, and a computer is behind alpha.
struct Outside {
    scene: Scene,
    computer: Host,
    /// Charlie's interface towards the web.
    uplink: Interface,
    web: SocketAddr,
    web_v6: SocketAddr,
    _servers: [Responder; 2],
}

fn build(policy: &str) -> Outside {
    let internet = Internet::new(&["alpha", "bravo", "charlie"], 20);
    let world = &internet.world;
    let computer = world.host("computer").unwrap();
    // Without addresses of the lab's own: the computer would speak from those.
    let cable = SegmentConfig { v4: None, v6: None, ..world.segment_config("cable") };
    let cable = world.segment_with(cable).unwrap();
    let net = |text: &str| text.parse::<IpNet>().unwrap();
    for (host, last) in [(&internet.site("alpha").host, "254"), (&computer, "2")] {
        let interface = cable.attach(host).unwrap();
        host.add_address(&interface.name, net(&format!("10.1.0.{last}/24"))).unwrap();
        host.add_address(&interface.name, net(&format!("fd00:0:0:1::{last}/64"))).unwrap();
    }
    computer.add_route(net("0.0.0.0/0"), "10.1.0.254".parse().unwrap()).unwrap();
    computer.add_route(net("::/0"), "fd00:0:0:1::254".parse().unwrap()).unwrap();

    let web = world.host("web").unwrap();
    let config = world.segment_config("uplink");
    let config = SegmentConfig {
        v4: Some("203.0.113.0/24".parse().unwrap()),
        v6: Some("2001:db8:ffff::/64".parse().unwrap()),
        ..config
    };
    let wire = world.segment_with(config).unwrap();
    let uplink = wire.attach(&internet.site("charlie").host).unwrap();
    let there = wire.attach(&web).unwrap();
    let at = |address: std::net::IpAddr| SocketAddr::new(address, 80);
    let (v4, v6) = (at(there.v4.unwrap().into()), at(there.v6.unwrap().into()));
    let servers = [Responder::start(&web, v4).unwrap(), Responder::start(&web, v6).unwrap()];

    let scene = internet.start(|site| {
        let spec = site.node().with(QUICK);
        match site.host.name() {
            "alpha" => spec.with(policy),
            "charlie" => spec.with("offer: [internet]"),
            _ => spec,
        }
    });
    Outside { scene, computer, uplink, web: v4, web_v6: v6, _servers: servers }
}

#[test]
fn a_policy_leaves_to_the_internet_under_the_address_of_its_exit() {
    let policy = "policies:\n- name: out\n  from: [10.1.0.0/24, \"fd00:0:0:1::/64\"]\n  \
                  to: [0.0.0.0/0, \"::/0\"]\n  via: [bravo]\n  exit: charlie\n  if_unreachable: drop\n";
    let outside = build(policy);
    crate::waypoints::wait_policy(&outside.scene, viamesh::control::report::PolicyState::Up);
    let seen_as = ask_responder(&outside.computer, outside.web, PATIENCE).unwrap();
    assert_eq!(Some(seen_as), outside.uplink.v4.map(Into::into));
    let seen_as = ask_responder(&outside.computer, outside.web_v6, PATIENCE).unwrap();
    assert_eq!(Some(seen_as), outside.uplink.v6.map(Into::into));
    // To the networks of the mesh it still goes without translation.
    let report = lab::Pinger::new(outside.scene.site("charlie").inside()).run(&outside.computer).unwrap();
    assert_eq!(report.received, report.sent);
}

#[test]
fn the_nearest_exit_is_found_by_name_of_what_it_offers() {
    let policy = "policies:\n- name: out\n  from: [10.1.0.0/24]\n  to: [0.0.0.0/0]\n  exit: nearest\n  \
                  if_unreachable: drop\n";
    let outside = build(policy);
    crate::waypoints::wait_policy(&outside.scene, viamesh::control::report::PolicyState::Up);
    let seen_as = ask_responder(&outside.computer, outside.web, PATIENCE).unwrap();
    assert_eq!(Some(seen_as), outside.uplink.v4.map(Into::into));
    let status = outside.scene.mesh.status("alpha").unwrap();
    assert_eq!(status.policies[0].path, ["alpha", "charlie"]);
}
