//! Tunnels between two nodes and what passes through them.

use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use ipnet::IpNet;
use lab::{EchoServer, Host, LinkSettings, Pinger, TcpEcho, UdpStream};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use viamesh::demo::NodeSpec;

/// A computer in the network behind a node.
struct Computer {
    host: Host,
    v4: IpAddr,
    v6: IpAddr,
}

/// Two sites with a computer behind each, at .2 of their networks.
fn offices() -> (Internet, Computer, Computer) {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    let left = computer(&internet, "alpha", 1);
    let right = computer(&internet, "bravo", 2);
    (internet, left, right)
}

fn computer(internet: &Internet, site: &str, number: u8) -> Computer {
    let router = &internet.site(site).host;
    let host = internet.world.host(&format!("{site}-pc")).unwrap();
    let cable = internet.world.link(router, &host, LinkSettings::PERFECT).unwrap();
    let (v4, v6) = (format!("10.{number}.0"), format!("fd00:0:0:{number}:"));
    let net = |text: String| text.parse::<IpNet>().unwrap();
    // The router has .1 on its loopback device already; .254 is its address on the cable.
    for (interface, owner, last) in [(cable.a(), router, "254"), (cable.b(), &host, "2")] {
        owner.add_address(&interface.name, net(format!("{v4}.{last}/24"))).unwrap();
        owner.add_address(&interface.name, net(format!("{v6}:{last}/64"))).unwrap();
    }
    host.add_route(net("0.0.0.0/0".into()), format!("{v4}.254").parse().unwrap()).unwrap();
    host.add_route(net("::/0".into()), format!("{v6}:254").parse().unwrap()).unwrap();
    Computer { host, v4: format!("{v4}.2").parse().unwrap(), v6: format!("{v6}:2").parse().unwrap() }
}

fn echo_by_tcp(scene: &Scene, from: &Host, to: &Host, target: IpAddr) {
    let target = SocketAddr::new(target, 7001);
    let _server = EchoServer::start(to, target).unwrap();
    // Blocks of many packets each: they travel as super-packets where the kernel makes such.
    let echo = TcpEcho::start(from, target, 200_000, Duration::from_millis(5)).unwrap();
    scene.wait("ten blocks by TCP", || echo.blocks() >= 10);
    let report = echo.stop().unwrap();
    assert_eq!(report.failure, None, "{target}");
}

fn stream_by_udp(scene: &Scene, from: &Host, to: &Host, target: IpAddr) {
    let target = SocketAddr::new(target, 7002);
    let stream = UdpStream { target, source: None, packets_per_second: 500.0, payload: 1000 };
    let stream = stream.start(from, to).unwrap();
    scene.wait("datagrams", || stream.received() >= 200);
    let report = stream.stop(PATIENCE).unwrap();
    assert_eq!((report.lost(), report.duplicates, report.refused), (0, 0, 0), "{target}: {report:?}");
}

fn everything_passes(scene: &Scene, left: &Computer, right: &Computer) {
    let (alpha, bravo) = (scene.host("alpha").clone(), scene.host("bravo").clone());
    let far = scene.site("bravo");
    let between_nodes = [scene.address("bravo"), far.inside(), far.inside_v6()];
    for target in between_nodes {
        // IPv4 has no address of its own on a node: it speaks from the network behind it.
        let source = target.is_ipv4().then(|| scene.site("alpha").inside());
        let report = Pinger { source, ..Pinger::new(target) }.run(&alpha).unwrap();
        assert_eq!((report.received, report.duplicates), (report.sent, 0), "{target}: {report:?}");
    }
    echo_by_tcp(scene, &alpha, &bravo, scene.address("bravo"));
    stream_by_udp(scene, &alpha, &bravo, scene.address("bravo"));
    for target in [right.v4, right.v6] {
        let report = Pinger::new(target).run(&left.host).unwrap();
        assert_eq!((report.received, report.duplicates), (report.sent, 0), "{target}: {report:?}");
        echo_by_tcp(scene, &left.host, &right.host, target);
        stream_by_udp(scene, &left.host, &right.host, target);
    }
    // And the other way, with the largest packets that the path takes.
    echo_by_tcp(scene, &right.host, &left.host, left.v4);
    echo_by_tcp(scene, &right.host, &left.host, left.v6);
}

#[test]
fn everything_passes_a_tunnel_over_ipv4() {
    let (internet, left, right) = offices();
    let scene = internet.start(|site| site.node().with(QUICK));
    everything_passes(&scene, &left, &right);
}

#[test]
fn everything_passes_a_tunnel_over_ipv6() {
    let (internet, left, right) = offices();
    let scene = internet.start(|site| site.node_over_ipv6().with(QUICK));
    everything_passes(&scene, &left, &right);
}

#[test]
fn a_node_with_an_ipv4_address_of_its_own_speaks_from_it() {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    let own = |spec: NodeSpec| {
        let last = if spec.name == "alpha" { 1 } else { 2 };
        spec.with(&format!("addresses: [172.31.0.{last}]"))
    };
    let scene = internet.start(|site| own(site.node().with(QUICK)));
    scene.ping("alpha", "172.31.0.2".parse().unwrap());
    scene.ping("bravo", "172.31.0.1".parse().unwrap());
    // To a network behind the other node too: no source is given, the route brings it.
    scene.ping("alpha", scene.site("bravo").inside());
}
