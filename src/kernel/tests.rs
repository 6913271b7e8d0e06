//! The real kernel, in a network namespace of each test's own. Needs root.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::*;

const TUN: &str = "viamesh0";
/// What `ip route get` says of an unreachable route.
const UNREACHABLE: &str = "No route to host";

/// Runs `test` on a thread of its own in a fresh network namespace, which dies with the thread.
fn in_namespace<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET)
            .expect("the kernel tests need root (CAP_SYS_ADMIN): run them as root");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn tun() -> SyncDevice {
    DeviceBuilder::new().name(TUN).enable(false).build_sync().expect("/dev/net/tun works")
}

/// Closes the device as a killed process would, and waits until the kernel has forgotten it. It lives on for a
/// moment if another test's thread is starting a program just now (the child holds a copy of each descriptor
/// until it runs the program), and its routes go a moment after it (shown with the device's number).
fn close(device: SyncDevice) {
    drop(device);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let traces = [format!("dev {TUN}"), "dev if".to_owned()];
    loop {
        let gone = shown(&format!("ip link show {TUN}")).contains("does not exist");
        let routes = shown("ip -4 route show table all") + &shown("ip -6 route show table all");
        if gone && !traces.iter().any(|trace| routes.contains(trace)) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "the device does not go away: {routes}");
    }
}

/// What a program prints, in this namespace.
fn shown(command: &str) -> String {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// All that a stranger sees of this namespace's network.
fn everything() -> String {
    [
        "ip -4 rule",
        "ip -6 rule",
        "ip -4 route show table all",
        "ip -6 route show table all",
        "ip -4 -o address",
        "ip -6 -o address",
        "nft list ruleset",
    ]
    .map(shown)
    .join("--\n")
    // Whether the uplink's address was found unique in between is nobody's doing.
    .replace(" tentative", "")
}

/// Runs a line that prepares the namespace.
fn prepare(command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let status = Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(status.success(), "{command}");
}

/// An interface to somewhere.
fn uplink() {
    prepare("ip link add uplink type veth peer name far");
    prepare("ip link set far up");
    prepare("ip link set uplink up");
    prepare("ip address add 192.0.2.9/24 dev uplink");
}

fn kernel() -> Kernel {
    Kernel::new(Claim::default(), None).unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn state() -> KernelState {
    let mut tun = Tun::new(TUN, 1380);
    tun.addresses.extend(["fd5d:ac:1:2::1", "10.9.0.1"].map(|address| address.parse::<IpAddr>().unwrap()));
    let mut state = KernelState::new(&Claim::default(), tun);
    state.add_mesh_route(net("10.4.0.0/16"), Some("10.9.0.1".parse().unwrap()));
    state.add_mesh_route(net("fd5d:ac:7:8::/64"), Some("fd5d:ac:1:2::1".parse().unwrap()));
    state.add_throw(net("192.0.2.0/24"));
    state.add_throw(net("2001:db8::5/128"));
    state.add_steering(net("10.1.99.0/24"), net("0.0.0.0/0"), true);
    state.add_steering(net("fd00:1::/48"), net("::/0"), true);
    state.masquerade =
        Some(Masquerade { except: BTreeSet::from([net("10.1.0.0/16"), net("2001:db8:a::/48")]) });
    state.forward_ipv4 = true;
    state
}

#[test]
fn what_is_wanted_is_what_the_kernel_shows() {
    in_namespace(|| async {
        let _tun = tun();
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&state()).await, []);

        let link = shown(&format!("ip -d link show {TUN}"));
        for expected in ["mtu 1380 qdisc noqueue", ",UP,", "addrgenmode none", "gso_max_size 60300"] {
            assert!(link.contains(expected), "{expected:?} in {link}");
        }
        let rules = shown("ip -4 rule");
        for expected in [
            "90:\tfrom all fwmark 0x76000000/0x76000000 lookup main proto 118",
            "92:\tfrom all lookup 1180 proto 118",
            "93:\tfrom 10.1.99.0/24 lookup 1181 proto 118",
        ] {
            assert!(rules.contains(expected), "{expected:?} in {rules}");
        }
        let overlay = shown("ip -4 route show table 1180");
        assert!(
            overlay.contains("10.4.0.0/16 dev viamesh0 proto 118 scope link src 10.9.0.1 metric 100"),
            "{overlay}"
        );
        assert!(overlay.contains("throw 192.0.2.0/24 proto 118 metric 10"), "{overlay}");
        let policy = shown("ip -6 route show table 1181");
        assert!(policy.contains("default dev viamesh0 proto 118 metric 100"), "{policy}");
        assert!(policy.contains("unreachable default dev lo proto 118 metric 200"), "{policy}");
        let table = shown("nft list table inet viamesh");
        assert!(table.contains("iifname \"viamesh0\" ip daddr 10.1.0.0/16 accept"), "{table}");
        assert!(table.contains("iifname \"viamesh0\" oifname != \"viamesh0\" masquerade"), "{table}");
        assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap().trim(), "1");
        assert_eq!(
            std::fs::read_to_string("/proc/sys/net/ipv4/conf/viamesh0/rp_filter").unwrap().trim(),
            "2"
        );
    });
}

#[test]
fn the_kernel_takes_the_routes_that_the_rules_promise() {
    in_namespace(|| async {
        let _tun = tun();
        uplink();
        prepare("ip address add 10.1.99.1/32 dev uplink");
        prepare("ip route add default via 192.0.2.1");
        // A full tunnel of somebody else, after ours.
        prepare("ip route add unreachable default table 7120");
        prepare("ip rule add pref 110 not fwmark 0x1bd00 lookup 7120");
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&state()).await, []);

        assert!(shown("ip route get 10.4.1.1").contains("dev viamesh0 table 1180 src 10.9.0.1"));
        assert!(shown("ip route get 198.51.100.1 from 10.1.99.1").contains("dev viamesh0 table 1181"));
        assert!(shown("ip route get 198.51.100.1 mark 0x76000000").contains("via 192.0.2.1 dev uplink"));
        assert!(shown("ip route get 198.51.100.1").contains(UNREACHABLE), "theirs still works");
        assert!(shown("ip route get 192.0.2.77").contains(UNREACHABLE), "thrown to theirs");
    });
}

#[test]
fn applying_the_same_again_changes_nothing_not_even_for_a_new_process() {
    in_namespace(|| async {
        let _tun = tun();
        let mut first = kernel();
        assert_eq!(first.apply(&state()).await, []);
        let before = everything();
        let mut changes = Changes::open(Claim::default(), TUN).await.unwrap();
        assert_eq!(first.apply(&state()).await, []);
        first.resync();
        assert_eq!(first.apply(&state()).await, []);
        assert_eq!(kernel().apply(&state()).await, []);
        assert_eq!(everything(), before);
        let quiet = tokio::time::timeout(Duration::from_millis(300), changes.next()).await;
        assert!(quiet.is_err(), "the kernel was told something: {quiet:?}");
    });
}

#[test]
fn only_the_difference_is_changed() {
    in_namespace(|| async {
        let _tun = tun();
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&state()).await, []);
        let mut next = state();
        next.routes.retain(|key, _| key.destination != net("10.4.0.0/16"));
        next.add_mesh_route(net("10.5.0.0/16"), None);
        next.rules.retain(|rule| rule.selector.from != Some(net("10.1.99.0/24")));
        next.add_steering(net("10.1.98.0/24"), net("172.16.0.0/12"), false);
        next.tun.addresses.insert("10.9.0.2".parse().unwrap());
        next.tun.mtu = 1300;
        next.masquerade = None;
        next.forward_ipv4 = false;
        assert_eq!(kernel.apply(&next).await, []);

        let overlay = shown("ip -4 route show table 1180");
        assert!(
            overlay.contains("10.5.0.0/16 dev viamesh0") && !overlay.contains("10.4.0.0/16"),
            "{overlay}"
        );
        let rules = shown("ip -4 rule");
        assert!(rules.contains("from 10.1.98.0/24 to 172.16.0.0/12 lookup 1181"), "{rules}");
        assert!(!rules.contains("10.1.99.0/24"), "{rules}");
        assert!(shown("nft list ruleset").is_empty());
        assert!(shown("ip address show dev viamesh0").contains("10.9.0.2/32"));
        assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap().trim(), "0");
    });
}

#[test]
fn a_rule_that_covers_another_is_removed_alone() {
    in_namespace(|| async {
        let _tun = tun();
        let mut wanted = KernelState::new(&Claim::default(), Tun::new(TUN, 1380));
        wanted.add_steering(net("10.1.0.0/16"), net("10.7.0.0/16"), false);
        wanted.add_steering(net("10.1.0.0/16"), net("0.0.0.0/0"), false);
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&wanted).await, []);
        wanted.rules.retain(|rule| rule.selector.from.is_none() || rule.selector.to.is_some());
        assert_eq!(kernel.apply(&wanted).await, []);
        let rules = shown("ip -4 rule");
        assert!(rules.contains("93:\tfrom 10.1.0.0/16 to 10.7.0.0/16 lookup 1181"), "{rules}");
        assert!(!rules.contains("from 10.1.0.0/16 lookup 1181"), "{rules}");
    });
}

#[test]
fn cleaning_leaves_the_host_as_it_was() {
    in_namespace(|| async {
        prepare("ip link set lo up");
        uplink();
        // What others have, close to ours on purpose.
        prepare("ip rule add pref 92 fwmark 0x1 lookup 1180 proto 4");
        prepare("ip route add 10.77.0.0/16 dev uplink table 1180 proto 4");
        prepare("ip rule add pref 5270 lookup 52");
        prepare("nft add table inet other");
        let before = everything();
        let device = tun();
        let mut kernel = kernel();
        let problems = kernel.apply(&state()).await;
        assert_eq!(problems, [Problem::SharedTable { table: 1180 }]);
        assert_ne!(everything(), before);
        assert_eq!(kernel.clean().await, []);
        close(device);
        assert_eq!(everything(), before);
        assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap().trim(), "0");
    });
}

fn state_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("viamesh-kernel-{name}-{}", std::process::id()))
}

#[test]
fn a_killed_run_blocks_drop_policies_and_the_next_one_finds_what_is_left() {
    in_namespace(|| async {
        prepare("ip link set lo up");
        uplink();
        prepare("ip address add 10.1.99.1/32 dev uplink");
        prepare("ip route add default via 192.0.2.1");
        let before = everything();
        let file = state_file("killed");
        let device = tun();
        let mut killed = Kernel::new(Claim::default(), Some(file.clone())).unwrap();
        assert_eq!(killed.apply(&state()).await, []);
        drop(killed);
        close(device);
        let leftovers = shown("ip route get 198.51.100.1 from 10.1.99.1");
        assert!(leftovers.contains(UNREACHABLE), "traffic of a drop policy leaks: {leftovers}");

        let device = tun();
        let mut next = Kernel::new(Claim::default(), Some(file.clone())).unwrap();
        assert_eq!(next.apply(&state()).await, []);
        assert_eq!(shown("ip rule").matches("lookup 1180").count(), 1);
        assert_eq!(next.clean().await, []);
        close(device);
        assert_eq!(everything(), before);
        assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap().trim(), "0");
        assert!(!file.exists());
    });
}

#[test]
fn leftovers_are_found_although_the_numbers_changed() {
    in_namespace(|| async {
        let before = everything();
        let device = tun();
        let claim = Claim { overlay_table: 200, policy_table: 201, overlay_priority: 42, ..Claim::default() };
        let mut wanted = KernelState::new(&claim, Tun::new(TUN, 1380));
        wanted.add_throw(net("192.0.2.0/24"));
        wanted.add_steering(net("10.1.99.0/24"), net("0.0.0.0/0"), true);
        assert_eq!(Kernel::new(claim, None).unwrap().apply(&wanted).await, []);
        close(device);
        assert_eq!(kernel().clean().await, []);
        assert_eq!(everything(), before);
    });
}

#[test]
fn a_host_without_ipv6_still_gets_ipv4() {
    in_namespace(|| async {
        std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").unwrap();
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        let _tun = tun();
        assert_eq!(kernel().apply(&state()).await, [Problem::NoIpv6]);
        assert!(shown("ip route get 10.4.1.1").contains("dev viamesh0 table 1180"));
    });
}

#[test]
fn forwarding_ipv6_keeps_the_router_advertisements_of_the_uplink() {
    in_namespace(|| async {
        prepare("ip link add uplink type veth peer name far");
        let _tun = tun();
        let mut wanted = state();
        wanted.forward_ipv6 = true;
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&wanted).await, []);
        let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{name}")).unwrap();
        assert_eq!(read("all/forwarding").trim(), "1");
        assert_eq!(read("uplink/accept_ra").trim(), "2");
        assert_eq!(kernel.clean().await, []);
        assert_eq!(read("all/forwarding").trim(), "0");
        assert_eq!(read("uplink/accept_ra").trim(), "1");
    });
}

#[test]
fn a_missing_tun_is_told_and_drop_policies_block() {
    in_namespace(|| async {
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&state()).await, [Problem::NoTun { name: TUN.to_owned() }]);
        assert!(shown("ip route show table 1181").contains("unreachable default"));
        let _tun = tun();
        assert_eq!(kernel.apply(&state()).await, [], "the device is found when it is there");
        assert!(shown("ip route show table 1181").contains("default dev viamesh0"));
    });
}

#[test]
fn a_firewall_that_drops_forwarded_packets_is_told() {
    in_namespace(|| async {
        prepare("nft add table ip filter");
        prepare("nft add chain ip filter FORWARD { type filter hook forward priority 0 ; policy drop ; }");
        let _tun = tun();
        let mut kernel = kernel();
        let chain = "ip filter FORWARD".to_owned();
        assert_eq!(kernel.apply(&state()).await, [Problem::ForwardDropped { chain }]);
        prepare("nft add rule ip filter FORWARD iifname viamesh0 accept");
        kernel.resync();
        assert_eq!(kernel.apply(&state()).await, []);
    });
}

#[test]
fn a_late_local_rule_is_told() {
    in_namespace(|| async {
        prepare("ip rule add pref 32765 lookup local");
        prepare("ip rule delete pref 0");
        // IPv6 still has its rule at 0, which does not hide the problem.
        let _tun = tun();
        let late = Problem::LateLocalRule { priority: 32765, ours: 89 };
        assert_eq!(kernel().apply(&state()).await, [late]);
    });
}

#[test]
fn what_others_remove_is_told_and_put_back() {
    in_namespace(|| async {
        let _tun = tun();
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&state()).await, []);
        let mut changes = Changes::open(Claim::default(), TUN).await.unwrap();
        prepare("ip route delete 10.4.0.0/16 table 1180");
        prepare("ip rule delete pref 92");
        let change = tokio::time::timeout(Duration::from_secs(5), changes.next()).await.unwrap();
        assert_eq!(change, Change { ours: true, ..Change::default() });
        kernel.resync();
        assert_eq!(kernel.apply(&state()).await, []);
        assert!(shown("ip route get 10.4.1.1").contains("dev viamesh0 table 1180"));
    });
}

#[test]
fn changes_of_the_host_are_told_apart() {
    in_namespace(|| async {
        let _tun = tun();
        prepare("ip link add uplink type veth peer name far");
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&state()).await, []);
        let mut changes = Changes::open(Claim::default(), TUN).await.unwrap();
        prepare("ip link set uplink up");
        prepare("ip address add 192.0.2.9/24 dev uplink");
        let change = tokio::time::timeout(Duration::from_secs(5), changes.next()).await.unwrap();
        assert!(change.addresses && change.links && change.routes && !change.ours, "{change:?}");
        let networks = kernel.connected_networks().await.unwrap();
        let uplink = ConnectedNetwork { network: net("192.0.2.0/24"), interface: "uplink".to_owned() };
        assert_eq!(networks, [uplink], "without the TUN and link-local networks");
        let addresses = kernel.local_addresses().await.unwrap();
        assert!(addresses.iter().any(|entry| entry.address == "192.0.2.9".parse::<IpAddr>().unwrap()));
        assert!(addresses.iter().all(|entry| entry.interface == "uplink"), "{addresses:?}");
    });
}

#[test]
fn ten_thousand_routes_are_no_problem() {
    in_namespace(|| async {
        let _tun = tun();
        let mut wanted = state();
        for index in 0..10_000_u32 {
            let address = std::net::Ipv4Addr::from(0x0b00_0000 | index << 8);
            wanted.add_mesh_route(IpNet::new(address.into(), 24).unwrap(), None);
        }
        let mut kernel = kernel();
        assert_eq!(kernel.apply(&wanted).await, []);
        assert_eq!(shown("ip -4 route show table 1180").lines().count(), 10_002);
        assert_eq!(kernel.apply(&state()).await, []);
        assert_eq!(shown("ip -4 route show table 1180").lines().count(), 2);
    });
}

/// A UDP packet without payload, as it comes out of a tunnel.
fn udp_packet(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0];
    packet.extend(source);
    packet.extend(destination);
    packet.extend([0x13, 0x88, 0x13, 0x89, 0, 8, 0, 0]);
    let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&u16::try_from(!folded & 0xffff).unwrap().to_be_bytes());
    packet
}

/// Source address of the next UDP packet to `destination` that leaves by `device`.
fn source_seen(device: &std::sync::Arc<SyncDevice>, destination: [u8; 4]) -> [u8; 4] {
    let (found, seen) = std::sync::mpsc::channel();
    let device = std::sync::Arc::clone(device);
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok(length) = device.recv(&mut buffer) {
            if length == 28 && buffer[0] == 0x45 && buffer[16..20] == destination {
                let _ = found.send(<[u8; 4]>::try_from(&buffer[12..16]).unwrap());
                return;
            }
        }
    });
    seen.recv_timeout(Duration::from_secs(10)).expect("the packet leaves by the uplink")
}

#[test]
fn only_what_leaves_for_the_internet_takes_our_address() {
    in_namespace(|| async {
        let mesh = tun();
        let uplink = DeviceBuilder::new().name("uplink").enable(false).build_sync().unwrap();
        let uplink = std::sync::Arc::new(uplink);
        prepare("ip link set uplink up");
        prepare("ip address add 192.0.2.9/24 dev uplink");
        prepare("ip route add default dev uplink");
        assert_eq!(kernel().apply(&state()).await, []);

        let (member, server, behind_us) = ([10, 4, 0, 7], [198, 51, 100, 7], [10, 1, 0, 5]);
        mesh.send(&udp_packet(member, server)).unwrap();
        assert_eq!(source_seen(&uplink, server), [192, 0, 2, 9]);
        mesh.send(&udp_packet(member, behind_us)).unwrap();
        assert_eq!(source_seen(&uplink, behind_us), member, "an announced network sees who asks");
    });
}
