//! Policies for the packets of one interface, or with one mark: what the packets themselves don't show.

use crate::cleanliness::system;
use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use crate::waypoints::{UNIQUE, datagram};
use ipnet::IpNet;
use lab::{Footprint, Host, Pinger, ProbeFilter, SegmentConfig, World};
use serde_json::json;
use std::net::IpAddr;
use std::time::Duration;
use viamesh::control::report::PolicyState;

/// Frame of a probe that leaves without a tunnel.
const NAKED: usize = 14 + 28 + UNIQUE;

/// A computer in a part of the network behind alpha, at an interface of its own.
struct Lan {
    computer: Host,
    /// Alpha's interface.
    interface: String,
}

impl Lan {
    fn new(world: &World, router: &Host, name: &str, number: u8) -> Self {
        let computer = world.host(name).unwrap();
        // Without addresses of the lab's own: the computer would speak from those.
        let cable = SegmentConfig { v4: None, v6: None, ..world.segment_config(&format!("{name}-cable")) };
        let cable = world.segment_with(cable).unwrap();
        let net = |text: String| text.parse::<IpNet>().unwrap();
        let mut names = Vec::new();
        for (host, last) in [(router, 1), (&computer, 2)] {
            let interface = cable.attach(host).unwrap();
            let v4 = format!("10.1.0.{}/26", 64 * number + last);
            host.add_address(&interface.name, net(v4)).unwrap();
            let v6 = format!("fd00:0:0:1:{number}::{last}/80");
            host.add_address(&interface.name, net(v6)).unwrap();
            names.push(interface.name);
        }
        let gateway = format!("10.1.0.{}", 64 * number + 1);
        computer.add_route(net("0.0.0.0/0".into()), gateway.parse().unwrap()).unwrap();
        let gateway = format!("fd00:0:0:1:{number}::1");
        computer.add_route(net("::/0".into()), gateway.parse().unwrap()).unwrap();
        Self { computer, interface: names.swap_remove(0) }
    }
}

/// A policy at alpha for what goes to charlie's networks and fulfils `match_line`.
fn policy(name: &str, match_line: &str, via: &str) -> String {
    format!(
        "- name: {name}\n  {match_line}\n  from: [10.1.0.0/24, \"fd00:0:0:1::/64\"]\n  \
         to: [10.3.0.0/24, \"fd00:0:0:3::/64\"]\n  via: [{via}]\n  exit: charlie\n  if_unreachable: drop\n"
    )
}

/// Waits until so many policies are up, and all sites reach each other directly.
fn wait_all_up(scene: &Scene, count: usize) {
    for (a, b) in [
        ("alpha", "bravo"),
        ("alpha", "charlie"),
        ("alpha", "delta"),
        ("bravo", "charlie"),
        ("delta", "charlie"),
    ] {
        scene.wait_path(a, b, None);
    }
    scene.wait("all policies", || {
        let policies = scene.mesh.status("alpha").unwrap().policies;
        policies.len() == count && policies.iter().all(|policy| policy.state == PolicyState::Up)
    });
}

/// The stations of a probe that takes so many stops, the answer's way aside where it has another size.
fn visited(scene: &Scene, from: &Host, target: IpAddr, stops: usize) -> Vec<String> {
    let headers = if target.is_ipv4() { 28 } else { 48 };
    let size = datagram(headers, stops);
    let log = scene.internet.world.probe_log();
    log.start(ProbeFilter::UdpPayload(size..=size));
    let source = (from.name() == "alpha").then(|| scene.site("alpha").inside());
    let probe = Pinger { source, count: Some(1), payload: UNIQUE, patience: PATIENCE, ..Pinger::new(target) };
    let report = probe.run(from).unwrap();
    log.stop();
    assert_eq!(report.received, 1, "{target} does not answer {}", from.name());
    log.journey()
}

/// The path that `explain` tells for a packet to charlie's network, and the policy that `trace` walks.
fn told(scene: &Scene, target: IpAddr, how: &[&str]) -> (serde_json::Value, serde_json::Value) {
    let target = target.to_string();
    let source = "10.1.0.1";
    let explained = scene.document("alpha", &[&["explain", source, &target], how].concat());
    let trace = scene.document("alpha", &[&["trace", &target, "--from", source], how].concat());
    (explained["path"].clone(), trace["policy"].clone())
}

#[test]
fn an_interface_and_a_mark_choose_policies_and_nothing_of_it_is_left_behind() {
    let internet = Internet::new(&["alpha", "bravo", "charlie", "delta"], 20);
    let alpha = internet.site("alpha").host.clone();
    let red = Lan::new(&internet.world, &alpha, "red", 1);
    let blue = Lan::new(&internet.world, &alpha, "blue", 2);
    // The host would have another way to everywhere: a default route past the mesh.
    let router = internet.site("bravo").underlay.v4.unwrap();
    alpha.add_route("0.0.0.0/0".parse().unwrap(), router.into()).unwrap();
    let before = Footprint::of(&alpha).unwrap();
    let policies = format!(
        "registry_watch: false\npolicies:\n{}{}",
        policy("red", &format!("ingress: {}", red.interface), "bravo"),
        policy("marked", "fwmark: \"0x20\"", "delta")
    );
    let mut scene = internet.start(|site| {
        let spec = site.node().with(QUICK);
        if site.host.name() == "alpha" { spec.with(&policies) } else { spec }
    });
    wait_all_up(&scene, 2);
    let (target, target_v6) = (scene.site("charlie").inside(), scene.site("charlie").inside_v6());

    // Both computers send the same; only red's interface is steered.
    let direct = ["alpha", "charlie", "alpha"];
    let by = |stop| ["alpha", stop, "charlie"];
    for target in [target, target_v6] {
        assert_eq!(visited(&scene, &red.computer, target, 2), by("bravo"));
        assert_eq!(visited(&scene, &blue.computer, target, 0), direct);
    }
    assert_eq!(visited(&scene, &alpha, target, 0), direct, "the host's own packets come by neither");
    let told = |how: &[&str]| told(&scene, target, how);
    assert_eq!(told(&["--ingress", &red.interface]), (json!(by("bravo")), json!("red")));
    assert_eq!(told(&["--ingress", &blue.interface]), (json!(["alpha", "charlie"]), json!(null)));

    // A mark that a firewall sets steers what comes by any interface; the first policy that matches wins.
    system(&alpha, "nft add table inet marks");
    let chain = "nft add chain inet marks in { type filter hook prerouting priority -150 ; }";
    system(&alpha, chain);
    for interface in [&red.interface, &blue.interface] {
        system(&alpha, &format!("nft add rule inet marks in iifname {interface} meta mark set 0x20"));
    }
    for target in [target, target_v6] {
        assert_eq!(visited(&scene, &red.computer, target, 2), by("bravo"));
        assert_eq!(visited(&scene, &blue.computer, target, 2), by("delta"));
    }
    let marked = |interface| told(&["--ingress", interface, "--fwmark", "0x20"]);
    assert_eq!(marked(&blue.interface), (json!(by("delta")), json!("marked")));
    assert_eq!(marked(&red.interface), (json!(by("bravo")), json!("red")));
    system(&alpha, "nft delete table inet marks");
    assert_eq!(visited(&scene, &blue.computer, target, 0), direct);

    another_interface_comes_and_goes(&scene, &blue, target);
    a_dead_daemon_holds_what_its_classes_held(&mut scene, &red, &blue, target);

    scene.mesh.start_node("alpha").unwrap();
    wait_all_up(&scene, 2);
    scene.wait("red's path", || {
        let probe = Pinger { count: Some(1), ..Pinger::new(target) };
        probe.run(&red.computer).unwrap().received == 1
    });
    assert_eq!(visited(&scene, &red.computer, target, 2), by("bravo"));
    scene.mesh.stop("alpha").unwrap();
    let after = Footprint::of(&alpha).unwrap();
    assert_eq!((after.beyond(&before), before.beyond(&after)), (vec![], vec![]), "left behind, taken away");
}

/// A class that a reload adds takes its packets at once; its TUN goes when it does.
fn another_interface_comes_and_goes(scene: &Scene, blue: &Lan, target: IpAddr) {
    let file = scene.mesh.node("alpha").config.clone();
    let text = std::fs::read_to_string(&file).unwrap();
    let more = policy("blue", &format!("ingress: {}", blue.interface), "delta");
    std::fs::write(&file, format!("{text}{more}")).unwrap();
    let said = scene.viamesh("alpha", &["reload"]).successful().unwrap().stdout;
    assert_eq!(said, "changed:\n  policies: changed\n");
    wait_all_up(scene, 3);
    assert_eq!(visited(scene, &blue.computer, target, 2), ["alpha", "delta", "charlie"]);
    let tuns = || {
        let footprint = Footprint::of(scene.host("alpha")).unwrap();
        footprint.lines().filter(|line| line.starts_with("link viamesh0-")).count()
    };
    // Red, blue, the mark, and each of the two with the mark.
    assert_eq!(tuns(), 5);
    std::fs::write(&file, text).unwrap();
    scene.viamesh("alpha", &["reload"]).successful().unwrap();
    scene.wait("the TUNs of the class to go", || tuns() == 3);
    assert_eq!(visited(scene, &blue.computer, target, 0), ["alpha", "charlie", "alpha"]);
}

/// What comes by red's interface goes nowhere while the daemon is dead; the rest takes the host's own way.
fn a_dead_daemon_holds_what_its_classes_held(scene: &mut Scene, red: &Lan, blue: &Lan, target: IpAddr) {
    scene.mesh.kill("alpha");
    let log = scene.internet.world.probe_log().clone();
    let probes = Pinger { payload: UNIQUE, patience: Duration::ZERO, ..Pinger::new(target) };
    log.start(ProbeFilter::FrameLength(NAKED..=NAKED));
    probes.run(&red.computer).unwrap();
    let of_red = log.sightings().into_iter().filter(|seen| &*seen.from == "alpha").count();
    probes.run(&blue.computer).unwrap();
    log.stop();
    let of_both =
        log.sightings().into_iter().filter(|seen| &*seen.from == "alpha" && &*seen.link == "internet");
    assert_eq!(of_red, 0, "red's packets leave outside their policy");
    assert!(of_both.count() > 0, "blue's packets are not held");
}
