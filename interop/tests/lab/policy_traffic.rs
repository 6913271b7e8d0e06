//! Applications behind a policy: many short connections and a long one while a stop restarts, traceroute and path MTU
//! discovery through five stops.

use crate::scene::{PATIENCE, QUICK, Scene};
use crate::waypoints::{five_sites, wait_policy};
use ipnet::IpNet;
use lab::{EchoServer, Host, ProbeFilter, SegmentConfig, Sighting, TcpEcho, World};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use viamesh::control::report::PolicyState;

/// Octets of each block that the applications send: more than any message of the control plane has.
const BLOCK: usize = 1000;
/// Datagrams of at least this size on the underlay hold a block.
const LARGE: usize = 900;
/// Octets of UDP in a packet of the underlay's MTU, with which the search for a path MTU begins. No page fills one.
const FILLED: usize = 1472;

/// A computer in the network behind a site, which is its router.
fn computer(world: &World, router: &Host, name: &str, number: u8) -> Host {
    let host = world.host(name).unwrap();
    // Without addresses of the lab's own: the computer would speak from those.
    let cable = SegmentConfig { v4: None, v6: None, ..world.segment_config(&format!("{name}-cable")) };
    let cable = world.segment_with(cable).unwrap();
    let net = |text: &str| text.parse::<IpNet>().unwrap();
    for (host, last) in [(router, "254"), (&host, "2")] {
        let interface = cable.attach(host).unwrap();
        host.add_address(&interface.name, net(&format!("10.{number}.0.{last}/24"))).unwrap();
        host.add_address(&interface.name, net(&format!("fd00:0:0:{number}::{last}/64"))).unwrap();
    }
    host.add_route(net("0.0.0.0/0"), format!("10.{number}.0.254").parse().unwrap()).unwrap();
    host.add_route(net("::/0"), format!("fd00:0:0:{number}::254").parse().unwrap()).unwrap();
    host
}

/// One policy at alpha for what goes from its networks to delta's.
fn policy(name: &str, via: &str, if_unreachable: &str) -> String {
    format!(
        "- name: {name}\n  from: [10.1.0.0/24, \"fd00:0:0:1::/64\"]\n  to: [10.4.0.0/24, \"fd00:0:0:4::/64\"]\n  \
         via: [{via}]\n  exit: delta\n  if_unreachable: {if_unreachable}\n"
    )
}

/// Five sites, a computer behind alpha and a server behind delta.
struct Office {
    scene: Scene,
    computer: Host,
    server: Host,
}

impl Office {
    fn open(policies: &str) -> Self {
        let internet = five_sites();
        let computer = computer(&internet.world, &internet.site("alpha").host, "computer", 1);
        let server = self::computer(&internet.world, &internet.site("delta").host, "server", 4);
        let policies = format!("policies:\n{policies}");
        let scene = internet.start(|site| {
            let spec = site.node().with(QUICK);
            if site.host.name() == "alpha" { spec.with(&policies) } else { spec }
        });
        wait_policy(&scene, PolicyState::Up);
        Self { scene, computer, server }
    }

    /// What alpha sent in large datagrams to other stations than the policies' first stop, and not in search of a path
    /// MTU; and whatever was large and bare on any link. Between the stops the mesh finds the way.
    fn leaks(sightings: &[Sighting]) -> Vec<&Sighting> {
        let leaks = |seen: &&Sighting| match seen.udp_payload {
            None => seen.frame_length >= LARGE,
            Some(FILLED) => false,
            Some(length) => length >= LARGE && &*seen.from == "alpha" && &*seen.to != "bravo",
        };
        sightings.iter().filter(|seen| &*seen.link == "internet").filter(leaks).collect()
    }
}

/// A browser: one connection after the other, and one that stays.
struct Browser {
    stop: Arc<AtomicBool>,
    finished: Arc<AtomicU64>,
    short: Option<JoinHandle<()>>,
    long: Option<TcpEcho>,
}

impl Browser {
    fn start(host: &Host, server: SocketAddr) -> Self {
        let (stop, finished) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let long = TcpEcho::start(host, server, BLOCK, Duration::from_millis(5)).unwrap();
        let (host, stopped, count) = (host.clone(), Arc::clone(&stop), Arc::clone(&finished));
        let short = std::thread::spawn(move || {
            while !stopped.load(Relaxed) {
                count.fetch_add(u64::from(one_page(&host, server, &stopped)), Relaxed);
            }
        });
        Self { stop, finished, short: Some(short), long: Some(long) }
    }

    fn long(&self) -> &TcpEcho {
        self.long.as_ref().unwrap()
    }

    /// Waits until so many more pages have come, and the long connection has moved on.
    fn wait_progress(&self, scene: &Scene) {
        let (pages, blocks) = (self.finished.load(Relaxed), self.long().blocks());
        scene.wait("pages and a connection that goes on", || {
            self.finished.load(Relaxed) >= pages + 10 && self.long().blocks() >= blocks + 20
        });
    }

    /// Ends, and tells whether the long connection broke.
    fn finish(mut self) -> Option<String> {
        self.stop.store(true, Relaxed);
        let failure = self.long.take().unwrap().stop().unwrap().failure;
        self.short.take().unwrap().join().unwrap();
        failure
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

/// A short connection: three blocks there and back. False if it did not come to an end.
fn one_page(host: &Host, server: SocketAddr, stopped: &AtomicBool) -> bool {
    let Ok(connection) = TcpEcho::start(host, server, BLOCK, Duration::from_millis(1)) else { return false };
    let done = || connection.blocks() >= 3 || stopped.load(Relaxed);
    let in_time = lab::wait_until(PATIENCE, "a page", done).is_ok();
    in_time && connection.stop().is_ok_and(|report| report.blocks >= 3)
}

#[test]
fn connections_outlive_the_restart_of_a_stop_and_nothing_takes_another_way() {
    let mut office = Office::open(&policy("scenic", "bravo, charlie, bravo", "drop"));
    let target: SocketAddr = "10.4.0.2:7777".parse().unwrap();
    let _server = EchoServer::start(&office.server, target).unwrap();
    let log = office.scene.internet.world.probe_log().clone();
    log.start(ProbeFilter::All);
    let browser = Browser::start(&office.computer, target);
    browser.wait_progress(&office.scene);

    office.scene.mesh.kill("charlie");
    wait_policy(&office.scene, PolicyState::Down);
    office.scene.wait("packets that alpha drops", || {
        office.scene.mesh.status("alpha").unwrap().policies[0].dropped >= 5
    });
    office.scene.mesh.start_node("charlie").unwrap();
    wait_policy(&office.scene, PolicyState::Up);
    browser.wait_progress(&office.scene);

    assert_eq!(browser.finish(), None, "the long connection broke");
    log.stop();
    let sightings = log.sightings();
    let to_bravo = |seen: &&Sighting| &*seen.from == "alpha" && &*seen.to == "bravo";
    let steered = sightings.iter().filter(to_bravo).filter(|seen| seen.udp_payload >= Some(LARGE)).count();
    assert!(steered > 100, "the log does not show the traffic: {steered}");
    let leaks = Office::leaks(&sightings);
    assert!(leaks.is_empty(), "{} of {}: {:?}", leaks.len(), sightings.len(), leaks.first());
}

#[test]
fn the_next_policy_takes_over_while_a_stop_is_dead() {
    let first = policy("scenic", "bravo, charlie, bravo", "next");
    let second = policy("spare", "bravo, echo, bravo", "drop");
    let mut office = Office::open(&(first + &second));
    let target: SocketAddr = "10.4.0.2:7777".parse().unwrap();
    let _server = EchoServer::start(&office.server, target).unwrap();
    let log = office.scene.internet.world.probe_log().clone();
    log.start(ProbeFilter::All);
    let browser = Browser::start(&office.computer, target);
    browser.wait_progress(&office.scene);

    office.scene.mesh.kill("charlie");
    wait_policy(&office.scene, PolicyState::Degraded);
    browser.wait_progress(&office.scene);
    let packets = |place: usize| office.scene.mesh.status("alpha").unwrap().policies[place].packets;
    assert!(packets(1) > 0, "the second policy has taken nothing");
    let dead =
        office.scene.document("alpha", &["explain", "10.1.0.2", "10.4.0.2", "--tcp", "--port", "7777"]);
    assert_eq!(dead["path"], serde_json::json!(["alpha", "bravo", "echo", "bravo", "delta"]), "{dead:#}");

    office.scene.mesh.start_node("charlie").unwrap();
    wait_policy(&office.scene, PolicyState::Up);
    let before = office.scene.mesh.status("alpha").unwrap().policies[0].packets;
    office.scene.wait("the first policy to carry again", || {
        office.scene.mesh.status("alpha").unwrap().policies[0].packets > before + 20
    });
    browser.wait_progress(&office.scene);
    assert_eq!(browser.finish(), None, "the long connection broke");
    log.stop();
    let sightings = log.sightings();
    let leaks = Office::leaks(&sightings);
    assert!(leaks.is_empty(), "{} of {}: {:?}", leaks.len(), sightings.len(), leaks.first());
}

/// What `ping` prints with these arguments.
fn ping(host: &Host, arguments: &[&str]) -> String {
    let mut command = Command::new("ping");
    command.args(["-n", "-c", "1", "-W", "5"]).args(arguments).env("LC_ALL", "C");
    let output = host.run(command, PATIENCE).unwrap();
    output.stdout + &output.stderr
}

#[test]
fn traceroute_and_path_mtu_discovery_work_through_five_stops() {
    let office = Office::open(&policy("long", "bravo, charlie, bravo, echo", "drop"));
    let explained = office.scene.document("alpha", &["explain", "10.1.0.2", "10.4.0.2"]);
    let size = &explained["size"];
    assert_eq!(size["routing_header"], 40 + 8 + 4 * 16, "{explained:#}");
    let mtu = usize::try_from(size["mtu"].as_u64().unwrap()).unwrap();
    assert_eq!(mtu, 1438 - 112);

    // In IPv6 the stops have addresses to show.
    for (hop, stop) in [("2", "bravo"), ("3", "charlie"), ("4", "bravo"), ("5", "echo")] {
        let answer = ping(&office.computer, &["-t", hop, "fd00:0:0:4::2"]);
        let address = office.scene.address(stop).to_string();
        assert!(answer.contains(&format!("From {address}")), "hop {hop} is not {stop} {address}: {answer}");
    }
    for (server, headers) in [("10.4.0.2", 28), ("fd00:0:0:4::2", 48)] {
        // Each hop answers the one who asks: alpha, then delta behind all stops, then the server itself.
        // Each hop answers the one who asks: alpha's kernel, then the four stops. Behind the exit is the server itself.
        for hop in ["1", "2", "3", "4", "5"] {
            let answer = ping(&office.computer, &["-t", hop, server]);
            assert!(answer.contains("exceeded"), "hop {hop} to {server}: {answer}");
        }
        let answer = ping(&office.computer, &["-t", "6", server]);
        assert!(answer.contains("1 received"), "{server}: {answer}");

        // What does not fit is told to the sender with the number that does.
        let told = [format!("mtu = {mtu}"), format!("mtu={mtu}")];
        let (fits, too_long) = ((mtu - headers).to_string(), (mtu - headers + 1).to_string());
        let answer = ping(&office.computer, &["-M", "do", "-s", &too_long, server]);
        assert!(told.iter().any(|told| answer.contains(told)), "{server}: {answer}");
        let answer = ping(&office.computer, &["-M", "do", "-s", &fits, server]);
        assert!(answer.contains("1 received"), "{server}: {answer}");
    }
}
