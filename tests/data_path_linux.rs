//! The Linux engines: real TUN devices and sockets, two nodes in namespaces of their own, with and
//! without each offload. Needs root, and says so where it is missing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "test code"
)]

use arc_swap::ArcSwap;
use esp::{Algorithm, Backend, InboundSa, OutboundSa};
use lab::{Capability, Host, Pinger, TcpPump, World};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use viamesh::forwarding::{
    DropReason, Forwarding, InboundEntry, LinkId, LinkPath, Local, LocalAddresses, NextHop, PrefixTable,
    SocketIndex, SpiTable,
};
use viamesh::runtime::{
    Clock, SocketConfig, TunConfig, TunLinux, UdpSocketLinux, WorkerHandle, start as start_worker,
};

const TUN: &str = "mesh0";
/// Fits 1,500 octets of underlay in both families.
const MTU: u16 = 1400;

/// Which offloads a pair of nodes uses.
#[derive(Debug, Clone, Copy)]
struct Offloads {
    tcp: bool,
    udp: bool,
    segmentation: bool,
    coalescing: bool,
}

const ALL: Offloads = Offloads { tcp: true, udp: true, segmentation: true, coalescing: true };

/// The overlay's addresses of node 0 or 1.
fn overlay(node: usize) -> [IpAddr; 2] {
    let low = node as u16 + 1;
    [IpAddr::from([10, 99, 0, low as u8]), Ipv6Addr::new(0xfd5d, 0xac, 0, 1, 0, 0, 0, low).into()]
}

fn forwarding(node: usize, local: IpAddr, remote: IpAddr, clock: &Clock) -> Forwarding {
    let other = 1 - node;
    let key = |from: usize| [from as u8 + 1; 36];
    let spi = |from: usize| 0x1000 + from as u32;
    let algorithm = Algorithm::Aes256Gcm16;
    let outbound = OutboundSa::new(spi(node), algorithm, &key(node), true, Backend::default()).unwrap();
    let inbound = InboundSa::new(spi(other), algorithm, &key(other), true, 4096, Backend::default()).unwrap();
    let link = LinkId(0);
    let mut forwarding = Forwarding::empty(clock.now());
    forwarding.locals = LocalAddresses::new(overlay(node).map(|address| (address, Local::Address)));
    forwarding.routes = PrefixTable::new(overlay(other).map(|address| (address.into(), NextHop::Link(link))));
    forwarding.links = vec![Some(LinkPath {
        id: link,
        socket: SocketIndex(0),
        local,
        remote: SocketAddr::new(remote, 13_000),
        outbound: Some(Arc::new(outbound)),
        mtu: MTU,
        fragment_outer: false,
        accept: None,
        hmac: srv6::hmac::Requirement::default(),
        counters: Arc::default(),
    })];
    forwarding.inbound = SpiTable::new([InboundEntry { sa: Arc::new(inbound), link }]);
    forwarding.tun_mtu = MTU;
    forwarding
}

/// Starts a worker in a host.
fn node(
    host: &Host,
    number: usize,
    local: IpAddr,
    remote: IpAddr,
    offloads: Offloads,
) -> WorkerHandle<TunLinux, UdpSocketLinux> {
    let clock = Clock::new();
    let snapshot = Arc::new(ArcSwap::from_pointee(forwarding(number, local, remote, &clock)));
    let tun_config =
        TunConfig { tcp_offload: offloads.tcp, udp_offload: offloads.udp, ..TunConfig::new(TUN, MTU) };
    let socket_config = SocketConfig {
        segmentation: offloads.segmentation,
        coalescing: offloads.coalescing,
        ..SocketConfig::new(SocketAddr::new(local, 13_000))
    };
    let started = host.within(|| {
        let tun = TunLinux::open(&tun_config).unwrap().remove(0);
        let socket = UdpSocketLinux::bind(&socket_config).unwrap();
        start_worker(format!("worker-{number}"), tun, vec![socket], &snapshot, clock, Arc::new(|| {}))
            .unwrap()
    });
    // Up last: a device without neighbour discovery never joins the group that the lab would wait for.
    for (address, length) in overlay(number).into_iter().zip([24, 64]) {
        host.add_address(TUN, ipnet::IpNet::new(address, length).unwrap()).unwrap();
    }
    host.set_up(TUN, true).unwrap();
    started.unwrap()
}

fn traffic_passes(v6: bool, offloads: Offloads) {
    let world = World::new().unwrap();
    let hosts = [world.host("a").unwrap(), world.host("b").unwrap()];
    let wire = world.veth(&hosts[0], &hosts[1]).unwrap();
    let ends = [&wire.a, &wire.b].map(|end| -> IpAddr {
        if v6 { end.v6.unwrap().into() } else { end.v4.unwrap().into() }
    });
    let handles = [0, 1].map(|number| node(&hosts[number], number, ends[number], ends[1 - number], offloads));
    for target in overlay(1) {
        let report = Pinger { count: Some(5), ..Pinger::new(target) }.run(&hosts[0]).unwrap();
        assert_eq!(report.received, 5, "{offloads:?} {target} {report:?}");
        let pump =
            TcpPump { duration: Duration::from_millis(300), ..TcpPump::new(SocketAddr::new(target, 5201)) };
        let report = pump.run(&hosts[0], &hosts[1]).unwrap();
        // How much depends on the machine and its load; that it flows does not.
        assert!(report.bytes > 100_000, "{offloads:?} {target} {report:?}");
    }
    for handle in handles {
        assert!(!handle.is_finished());
        let counters = handle.counters();
        for (reason, count) in counters.drops.iter() {
            // The kernel's own neighbour discovery and router solicitations.
            assert!(matches!(reason, DropReason::Multicast), "{offloads:?}: {count} {reason}");
        }
        assert_eq!(counters.tun_offload_refused.get(), 0);
        handle.stop().unwrap();
    }
}

#[test]
fn traffic_passes_with_and_without_each_offload() {
    if !matches!(World::probe(), Capability::Ready) {
        eprintln!("NOT RUN: needs root for network namespaces and TUN devices");
        return;
    }
    let cases = [
        ALL,
        Offloads { udp: false, ..ALL },
        Offloads { tcp: false, ..ALL },
        Offloads { segmentation: false, ..ALL },
        Offloads { coalescing: false, ..ALL },
        Offloads { tcp: false, udp: false, segmentation: false, coalescing: false },
    ];
    for offloads in cases {
        traffic_passes(false, offloads);
    }
    traffic_passes(true, ALL);
}
