//! The host before, during and after.

use crate::scene::{Internet, QUICK, Scene, Site};
use lab::{Footprint, Host};
use std::process::Command;
use std::time::Duration;
use viamesh::demo::NodeSpec;

/// What one node asks of its host when it does everything: policies, an exit, networks behind it.
pub(crate) fn busy_node(site: &Site) -> NodeSpec {
    let spec = site.node().with(QUICK);
    match site.host.name() {
        "alpha" => spec.with("offer: [internet]").with("addresses: [172.31.0.1]").with(
            "policies:\n- name: out\n  from: [10.1.0.0/24, \"fd00:0:0:1::/64\"]\n  to: [0.0.0.0/0, \"::/0\"]\n  \
             exit: bravo\n  if_unreachable: drop\n",
        ),
        "bravo" => spec.with("offer: [internet]"),
        _ => spec,
    }
}

/// Runs a system program that must succeed.
pub(crate) fn system(host: &Host, line: &str) -> String {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    host.run(command, Duration::from_secs(20)).unwrap().successful().unwrap().stdout
}

/// Waits until what a node asks of the kernel has been done, the last being what follows from routes.
pub(crate) fn wait_busy(scene: &Scene) {
    crate::waypoints::wait_policy(scene, viamesh::control::report::PolicyState::Up);
    scene.wait("a route to bravo's network", || {
        let footprint = Footprint::of(scene.host("alpha")).unwrap();
        footprint.lines().any(|line| line.contains("to 10.2.0.0/24"))
    });
}

fn forwarding(host: &Host) -> [String; 2] {
    ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"]
        .map(|name| host.within(|| std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap()).unwrap())
}

#[test]
fn sigterm_leaves_the_host_as_it_was() {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    for site in &internet.sites {
        // So that the daemon has something to switch on, and off again.
        site.host.sysctl("net.ipv4.ip_forward", "0").unwrap();
        site.host.sysctl("net.ipv6.conf.all.forwarding", "0").unwrap();
    }
    let look = |internet: &Internet| {
        let look = |site: &Site| (Footprint::of(&site.host).unwrap(), forwarding(&site.host));
        internet.sites.iter().map(look).collect::<Vec<_>>()
    };
    let before = look(&internet);
    let mut scene = internet.start(busy_node);
    wait_busy(&scene);
    let during = look(&scene.internet);
    assert!(!during[0].0.beyond(&before[0].0).is_empty(), "nothing to clean");
    assert_eq!(during[0].1, ["1\n", "1\n"], "an exit forwards");
    for name in ["alpha", "bravo"] {
        scene.mesh.stop(name).unwrap();
    }
    for ((now, forwards), (then, forwarded)) in look(&scene.internet).iter().zip(&before) {
        assert_eq!((now.beyond(then), then.beyond(now)), (vec![], vec![]), "left behind, and taken away");
        assert_eq!(forwards, forwarded);
    }
}

/// What others have set up on a host, in our neighbourhood: a Tailscale-like rule and table, and a firewall.
const FOREIGN: [&str; 8] = [
    "ip rule add priority 5210 fwmark 0x80000/0xff0000 lookup main",
    "ip rule add priority 91 from 192.0.2.0/24 lookup 52",
    "ip route add 100.64.0.0/10 dev eth0 table 52",
    "ip route add unreachable 192.0.2.0/24 table 1180",
    "ip -6 rule add priority 5210 fwmark 0x80000/0xff0000 lookup main",
    "ip -6 route add 2001:db8:5000::/40 dev eth0 table 52",
    "nft add table inet somebody",
    "nft add chain inet somebody forward { type filter hook forward priority 0 ; policy accept ; }",
];

/// Rules, routes and firewall as text: everything, in all tables.
pub(crate) fn kernel_state(host: &Host) -> Vec<String> {
    let listings = [
        "ip rule",
        "ip -6 rule",
        "ip route show table all",
        "ip -6 route show table all",
        "ip -o addr",
        "nft list ruleset",
    ];
    // Lifetimes and counters tick; each TUN device gets a number and a link-local address of its own.
    let changes = |line: &str| {
        line.contains("expires")
            || line.contains("counter")
            || (line.contains("viamesh0") && line.contains("fe80:"))
    };
    let unnumbered = |line: &str| match line.split_once(": ") {
        Some((number, rest)) if number.parse::<u32>().is_ok() && rest.starts_with("viamesh0") => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    let lines = listings.iter().flat_map(|listing| {
        let text = system(host, listing);
        text.lines().filter(|line| !changes(line)).map(unnumbered).collect::<Vec<_>>()
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

#[test]
fn what_others_set_up_stays_as_it_is() {
    let internet = Internet::new(&["alpha", "bravo"], 10);
    let alpha = internet.site("alpha").host.clone();
    for line in FOREIGN {
        system(&alpha, line);
    }
    let before = kernel_state(&alpha);
    let mut scene = internet.start(busy_node);
    wait_busy(&scene);
    let during = kernel_state(&alpha);
    let missing: Vec<_> = before.iter().filter(|line| !during.contains(line)).collect();
    assert!(missing.is_empty(), "gone while the daemon runs: {missing:?}");
    scene.mesh.stop("alpha").unwrap();
    assert_eq!(kernel_state(&alpha), before);
}
