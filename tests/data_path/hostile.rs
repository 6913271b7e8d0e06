//! Input that somebody made up: every datagram is counted, nothing panics, traffic goes on.

use crate::packets::{self, receive, receive_packet, send};
use crate::rig::Mesh;
use esp::{HEADER_LEN, OutboundSa, sealed_len};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};
use viamesh::forwarding::{Down, DropReason, Heard, Punt};

fn pair() -> Mesh {
    let mut mesh = Mesh::new(&["tokyo", "paris"]);
    mesh.link(0, 1);
    mesh
}

fn stranger() -> SocketAddr {
    "203.0.113.9:4500".parse().unwrap()
}

/// Seals any payload for node 1, as a peer could.
fn seal(sa: &OutboundSa, payload: &[u8], next_header: u8) -> Vec<u8> {
    let mut datagram = vec![0; sealed_len(payload.len())];
    datagram[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
    for sequence in sa.reserve(1).unwrap() {
        sa.seal(sequence, &mut datagram, payload.len(), next_header).unwrap();
    }
    datagram
}

fn drops(mesh: &Mesh, node: usize, reason: DropReason) -> u64 {
    mesh.nodes[node].worker.counters().drops.get(reason)
}

#[test]
fn datagrams_of_strangers_are_told_apart() {
    let mut mesh = pair();
    let ike: Vec<u8> = (1..=40).collect();
    let marked: Vec<u8> = [0; 4].into_iter().chain(ike.clone()).collect();
    for contents in [&[0xff][..], &[0xff, 0xff], &[], &[0; 4], &[0; 20], &[0, 0, 0, 1, 2], &marked, &[7; 100]]
    {
        mesh.nodes[1].inject(stranger(), contents, contents.len());
    }
    mesh.settle();
    let counters = mesh.nodes[1].worker.counters();
    assert_eq!(counters.keepalives.get(), 1);
    assert_eq!(drops(&mesh, 1, DropReason::UnknownSpi), 2);
    // Of the two unknown SPIs only one is told: a flood must not displace IKE messages.
    let unknown = mesh.nodes[1].worker.rings().stranger.pop().unwrap();
    assert_eq!((unknown.heard, unknown.remote), (Heard::UnknownSpi(1), stranger()));
    let message = mesh.nodes[1].worker.rings().stranger.pop().unwrap();
    assert_eq!((message.heard, message.remote), (Heard::Ike(ike.clone()), stranger()));
    assert!(mesh.nodes[1].worker.rings().stranger.is_empty());
    // From port 500 there is no marker, whatever the first octets are.
    let unmarked = "203.0.113.9:500".parse().unwrap();
    mesh.nodes[1].inject(unmarked, &ike, ike.len());
    mesh.nodes[1].inject(stranger(), &[&[0; 4][..], &[1; 9000]].concat(), 9004);
    mesh.settle();
    assert_eq!(mesh.nodes[1].worker.rings().stranger.pop().unwrap().heard, Heard::Ike(ike));
    assert_eq!(drops(&mesh, 1, DropReason::StrangerTooLong), 1);
}

#[test]
fn a_flood_of_strangers_fills_its_ring_only() {
    let mut mesh = pair();
    let marked: Vec<u8> = [0; 4].into_iter().chain([9; 40]).collect();
    for _ in 0..2000 {
        mesh.nodes[1].inject(stranger(), &marked, marked.len());
    }
    mesh.settle();
    assert_eq!(mesh.nodes[1].worker.rings().stranger.len(), 512);
    assert_eq!(drops(&mesh, 1, DropReason::StrangerRingFull), 2000 - 512);
    let packet = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"still here");
    send(&mesh.nodes[0].application, &packet);
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[1].application), Some(packet));
}

#[test]
fn replays_forgeries_and_truncations_change_nothing() {
    let mut mesh = pair();
    let packet = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"once");
    let datagram = seal(mesh.nodes[0].outbound(1), &packet, 41);
    let source = mesh.nodes[0].address();
    mesh.nodes[1].inject(source, &datagram, datagram.len());
    mesh.nodes[1].inject(source, &datagram, datagram.len());
    let mut next = seal(mesh.nodes[0].outbound(1), &packet, 41);
    for at in 4..next.len() {
        next[at] ^= 0x40;
        mesh.nodes[1].inject(source, &next, next.len());
        next[at] ^= 0x40;
    }
    for len in 4..next.len() {
        mesh.nodes[1].inject(source, &next[..len], len);
    }
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[1].application), Some(packet.clone()));
    assert!(receive(&mesh.nodes[1].application).is_none());
    assert_eq!(drops(&mesh, 1, DropReason::Replayed), 1);
    let refused = [
        DropReason::IntegrityFailure,
        DropReason::EspTooShort,
        DropReason::OutsideWindow,
        DropReason::UnknownSpi,
    ];
    let refused: u64 = refused.into_iter().map(|reason| drops(&mesh, 1, reason)).sum();
    assert_eq!(refused as usize, 2 * (next.len() - 4));
    mesh.nodes[1].inject(source, &next, next.len());
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[1].application), Some(packet));
}

#[test]
fn authenticated_nonsense_is_counted_by_reason() {
    let mut mesh = pair();
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    let good = packets::udp(a, b, (1, 2), b"x");
    let loopback: IpAddr = "::1".parse().unwrap();
    let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    let multicast: IpAddr = "ff0e::1".parse().unwrap();
    let cases = [
        (good.clone(), 4, DropReason::Malformed),
        (good.clone(), 59, DropReason::Dummy),
        (good.clone(), 6, DropReason::UnknownNextHeader),
        (good[..30].to_vec(), 41, DropReason::Malformed),
        (Vec::new(), 41, DropReason::Malformed),
        (vec![0x45; 19], 4, DropReason::Malformed),
        (packets::udp(loopback, b, (1, 2), b"x"), 41, DropReason::Martian),
        (packets::udp(mapped, b, (1, 2), b"x"), 41, DropReason::Martian),
        (packets::udp("127.0.0.1".parse().unwrap(), mesh.nodes[1].v4, (1, 2), b"x"), 4, DropReason::Martian),
        (packets::udp(b, b, (1, 2), b"x"), 41, DropReason::OwnAddressFromOutside),
        (packets::udp(a, multicast, (1, 2), b"x"), 41, DropReason::Multicast),
        (
            packets::udp(mesh.nodes[0].v4, "255.255.255.255".parse().unwrap(), (1, 2), b"x"),
            4,
            DropReason::Multicast,
        ),
    ];
    for (payload, next_header, reason) in cases {
        let before = drops(&mesh, 1, reason);
        let datagram = seal(mesh.nodes[0].outbound(1), &payload, next_header);
        mesh.nodes[1].inject(mesh.nodes[0].address(), &datagram, datagram.len());
        mesh.settle();
        assert_eq!(drops(&mesh, 1, reason), before + 1, "{reason}");
        assert!(receive(&mesh.nodes[1].application).is_none(), "{reason}");
    }
}

#[test]
fn what_the_lan_must_not_send_is_counted_by_reason() {
    let mut mesh = pair();
    mesh.nodes[0].announce("10.1.0.0/16");
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    let cases = [
        (packets::udp(a, "fe80::1".parse().unwrap(), (1, 2), b"x"), DropReason::LinkLocalFromTun),
        (packets::udp(a, "ff02::fb".parse().unwrap(), (1, 2), b"x"), DropReason::Multicast),
        (packets::udp(a, a, (1, 2), b"x"), DropReason::OwnDestinationFromTun),
        (packets::udp("fe80::1".parse().unwrap(), b, (1, 2), b"x"), DropReason::Martian),
        (packets::udp(mesh.nodes[0].v4, "10.1.2.3".parse().unwrap(), (1, 2), b"x"), DropReason::RoutingLoop),
        (vec![0x60, 1, 2], DropReason::Malformed),
    ];
    for (packet, reason) in cases {
        let before = drops(&mesh, 0, reason);
        send(&mesh.nodes[0].application, &packet);
        mesh.settle();
        assert_eq!(drops(&mesh, 0, reason), before + 1, "{reason}");
    }
    assert!(mesh.passed.is_empty());
}

#[test]
fn a_peer_without_transit_speaks_for_its_own_prefixes_only() {
    let mut mesh = pair();
    mesh.nodes[1].accept_only(0, &["fd5d:ac::/32", "10.99.0.0/24"]);
    let b = mesh.nodes[1].v4;
    let allowed = packets::udp(mesh.nodes[0].v4, b, (1, 2), b"x");
    send(&mesh.nodes[0].application, &allowed);
    send(&mesh.nodes[0].application, &packets::udp("10.98.0.1".parse().unwrap(), b, (1, 2), b"x"));
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[1].application), Some(allowed));
    assert!(receive(&mesh.nodes[1].application).is_none());
    assert_eq!(drops(&mesh, 1, DropReason::TransitRefused), 1);
}

#[test]
fn traffic_flow_padding_is_cut_off() {
    let mut mesh = pair();
    let packet = packets::udp(mesh.nodes[0].v4, mesh.nodes[1].v4, (1, 2), b"short");
    let padded = [&packet[..], &[0; 700]].concat();
    let datagram = seal(mesh.nodes[0].outbound(1), &padded, 4);
    mesh.nodes[1].inject(mesh.nodes[0].address(), &datagram, datagram.len());
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[1].application), Some(packet));
}

#[test]
fn a_peer_that_moved_is_reported_once_and_not_by_replays() {
    let mut mesh = pair();
    let packet = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"x");
    let first = seal(mesh.nodes[0].outbound(1), &packet, 41);
    let second = seal(mesh.nodes[0].outbound(1), &packet, 41);
    let third = seal(mesh.nodes[0].outbound(1), &packet, 41);
    mesh.nodes[1].inject(mesh.nodes[0].address(), &second, second.len());
    mesh.settle();
    // A replay and an older packet from elsewhere prove nothing.
    mesh.nodes[1].inject(stranger(), &second, second.len());
    mesh.nodes[1].inject(stranger(), &first, first.len());
    mesh.settle();
    assert!(mesh.nodes[1].worker.rings().authenticated.is_empty());
    mesh.nodes[1].inject(stranger(), &third, third.len());
    mesh.settle();
    let punt = mesh.nodes[1].worker.rings().authenticated.pop();
    assert!(matches!(punt, Some(Punt::PeerMoved { remote, .. }) if remote == stranger()));
    assert!(mesh.nodes[1].worker.rings().authenticated.is_empty());
}

#[test]
fn congestion_marks_survive_the_tunnel_or_drop_the_packet() {
    let mut mesh = pair();
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    let mut capable = packets::udp(a, b, (1, 2), b"ecn");
    capable[1] |= 0x20;
    for (packet, arrives) in [(capable, true), (packets::udp(a, b, (1, 2), b"not"), false)] {
        let datagram = seal(mesh.nodes[0].outbound(1), &packet, 41);
        let wire = viamesh::runtime::memory::Wire {
            source: mesh.nodes[0].address(),
            destination: mesh.nodes[1].address(),
            segment: datagram.len(),
            ecn: 3,
        };
        mesh.nodes[1].socket.inject(wire, &datagram);
        mesh.settle();
        let got = receive_packet(&mesh.nodes[1].application);
        assert_eq!(got.map(|got| got[1] >> 4 & 3), arrives.then_some(3));
    }
    assert_eq!(drops(&mesh, 1, DropReason::CongestionUnmarkable), 1);
}

#[test]
fn the_outer_header_shows_the_inner_ecn() {
    let mut mesh = pair();
    let mut packet = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"ecn");
    packet[1] |= 0x20;
    send(&mesh.nodes[0].application, &packet);
    mesh.nodes[0].worker.turn(viamesh::runtime::Ready::ALL, mesh.now, std::time::Duration::ZERO);
    let (wire, _) = mesh.nodes[0].socket.take_sent().unwrap();
    assert_eq!(wire.ecn, 2);
}

/// Mostly valid packets with bytes changed: they get far into the code.
fn mutated() -> impl Strategy<Value = (usize, Vec<(u16, u8)>, u16)> {
    (0usize..6, prop::collection::vec((any::<u16>(), any::<u8>()), 0..4), any::<u16>())
}

proptest! {
    #[test]
    fn no_authenticated_packet_panics(cases in prop::collection::vec(mutated(), 1..20)) {
        let mut mesh = Mesh::new(&["a", "b", "c"]);
        mesh.link(0, 1);
        mesh.link(1, 2);
        mesh.route(0, 2, 1);
        mesh.nodes[1].set_probe_identifier(7);
        let (a, b, c) = (mesh.nodes[0].v6(), mesh.nodes[1].v6(), mesh.nodes[2].v6());
        let (end, dt6) = (mesh.nodes[1].locator.end(), mesh.nodes[1].locator.dt6());
        let inner = packets::udp(a, c, (1, 2), b"inner");
        let bases = [
            packets::udp(a, b, (1, 2), &[1; 99]),
            packets::tcp(a, c, (1, 2), 3, 0x12, &[2, 4, 5, 0xb4], b"data"),
            packets::echo_reply(a, b, 7, 40),
            packets::ip(a, dt6.into(), 41, 64, &inner),
            packets::ip(a, end.into(), 43, 64, &[&[41, 2, 4, 1, 0, 0, 0, 0][..], &[0xfd; 16], &inner].concat()),
            packets::tcp(mesh.nodes[0].v4, mesh.nodes[2].v4, (1, 2), 3, 0x02, &[2, 4, 5, 0xb4], b""),
        ];
        for (base, changes, cut) in cases {
            let mut packet = bases[base].clone();
            let next_header = if packet[0] >> 4 == 4 { 4 } else { 41 };
            for (at, value) in changes {
                let at = usize::from(at) % packet.len();
                packet[at] = value;
            }
            if cut % 4 == 0 {
                packet.truncate(usize::from(cut) % packet.len());
            }
            let datagram = seal(mesh.nodes[0].outbound(1), &packet, next_header);
            mesh.nodes[1].inject(mesh.nodes[0].address(), &datagram, datagram.len());
            send(&mesh.nodes[0].application, &packet);
            mesh.nodes[0].worker.rings().down.push(Down::Originate { packet }).unwrap();
        }
        mesh.settle();
        prop_assert_eq!(drops(&mesh, 2, DropReason::OutsideWindow), 0);
    }

    #[test]
    fn no_datagram_panics(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
        segment in 1usize..100,
        port in prop::sample::select(vec![500u16, 4500, 13_000]),
    ) {
        let mut mesh = pair();
        let source = SocketAddr::new("203.0.113.9".parse().unwrap(), port);
        for contents in contents {
            mesh.nodes[1].inject(source, &contents, segment);
        }
        mesh.settle();
    }
}
