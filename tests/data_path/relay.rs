//! Three nodes in a row: A and C have no link.

use crate::packets::{self, receive, receive_packet, send, send_frame};
use crate::rig::{LINK_MTU, Mesh};
use srv6::ip::{FlowKey, checksum, hop_limit};
use viamesh::forwarding::DropReason;
use viamesh::runtime::memory::Faults;

fn row() -> Mesh {
    let mut mesh = Mesh::new(&["tokyo", "dubai", "paris"]);
    mesh.link(0, 1);
    mesh.link(1, 2);
    mesh.route(0, 2, 1);
    mesh.route(2, 0, 1);
    mesh
}

#[test]
fn a_relay_counts_one_hop_and_changes_nothing_else() {
    let mut mesh = row();
    for (a, c) in [(mesh.nodes[0].v6(), mesh.nodes[2].v6()), (mesh.nodes[0].v4, mesh.nodes[2].v4)] {
        let packet = packets::udp(a, c, (1, 2), b"far away");
        send(&mesh.nodes[0].application, &packet);
        mesh.settle();
        let mut got = receive_packet(&mesh.nodes[2].application).unwrap();
        assert_eq!(hop_limit(&got).unwrap(), 63);
        if got[0] >> 4 == 4 {
            assert_eq!(checksum::of(&got[..20]), 0);
            got[8] = 64;
            got[10..12].copy_from_slice(&packet[10..12]);
        } else {
            got[7] = 64;
        }
        assert_eq!(got, packet);
    }
    assert!(receive(&mesh.nodes[1].application).is_none(), "relayed packets never touch the TUN");
    assert_eq!(mesh.nodes[1].worker.counters().relayed.packets.get(), 2);
}

#[test]
fn a_train_is_relayed_as_a_train() {
    let mut mesh = row();
    let (a, c) = (mesh.nodes[0].v6(), mesh.nodes[2].v6());
    let payload: Vec<u8> = (0..55_000u32).map(|index| (index * 13) as u8).collect();
    let (header, packet) = packets::tcp_super_packet(a, c, &payload, 1360);
    send_frame(&mesh.nodes[0].application, header, &packet);
    mesh.settle();
    assert_eq!(mesh.passed.len(), 2, "one send each");
    assert_eq!(mesh.passed[0].len, mesh.passed[1].len);
    let (got_header, mut got) = receive(&mesh.nodes[2].application).unwrap();
    got[7] += 1;
    assert_eq!((got_header, got), (header, packet));
}

#[test]
fn relayed_and_own_packets_share_an_association_in_order() {
    let mut mesh = row();
    let (a, b, c) = (mesh.nodes[0].v6(), mesh.nodes[1].v6(), mesh.nodes[2].v6());
    for round in 0..20u8 {
        for size in [1000, 100, 1000, 37] {
            send(&mesh.nodes[0].application, &packets::udp(a, c, (1, 2), &vec![round; size]));
            send(&mesh.nodes[1].application, &packets::udp(b, c, (3, 4), &vec![round; size]));
        }
    }
    mesh.settle();
    let mut octets = 0;
    while let Some((_, packet)) = receive(&mesh.nodes[2].application) {
        octets += packet.len();
    }
    assert!(octets > 2 * 20 * 2137);
    let counters = mesh.nodes[2].worker.counters();
    assert_eq!(counters.drops.total(), 0);
    assert_eq!(counters.tun_written.packets.get(), 160);
    assert_eq!(mesh.nodes[2].inbound(1).outside_window(), 0);
}

#[test]
fn the_last_hop_is_answered_to_the_source() {
    let mut mesh = row();
    for (a, b, c) in [
        (mesh.nodes[0].v6(), mesh.nodes[1].v6(), mesh.nodes[2].v6()),
        (mesh.nodes[0].v4, mesh.nodes[1].v4, mesh.nodes[2].v4),
    ] {
        send(&mesh.nodes[0].application, &packets::echo_request(a, c, 1, 1, 8));
        mesh.settle();
        let error = receive_packet(&mesh.nodes[0].application).unwrap();
        let flow = FlowKey::parse(&error).unwrap();
        assert_eq!((flow.source, flow.destination), (b, a));
        let (at, kind) = if a.is_ipv4() { (20, 11) } else { (40, 3) };
        assert_eq!((error[at], error[at + 1]), (kind, 0));
    }
    assert_eq!(mesh.nodes[1].worker.counters().drops.get(DropReason::HopLimitExceeded), 2);
    assert!(receive(&mesh.nodes[2].application).is_none());
}

#[test]
fn a_smaller_second_link_is_reported_by_the_relay() {
    let mut mesh = row();
    mesh.nodes[1].set_mtu(2, 1300);
    let (a, b, c) = (mesh.nodes[0].v6(), mesh.nodes[1].v6(), mesh.nodes[2].v6());
    send(&mesh.nodes[0].application, &packets::udp(a, c, (1, 2), &[0; 1350]));
    mesh.settle();
    let error = receive_packet(&mesh.nodes[0].application).unwrap();
    assert_eq!(FlowKey::parse(&error).unwrap().source, b);
    assert_eq!((error[40], u32::from_be_bytes(error[44..48].try_into().unwrap())), (2, 1300));
    // TCP never meets that: its SYN is clamped at the relay, whichever way it goes.
    for (from, to, source, destination) in [(0, 2, a, c), (2, 0, c, a)] {
        let syn = packets::tcp(source, destination, (1, 2), 7, 0x02, &[2, 4, 0x05, 0xa0], b"");
        send(&mesh.nodes[from].application, &syn);
        mesh.settle();
        let got = receive_packet(&mesh.nodes[to].application).unwrap();
        assert_eq!(u16::from_be_bytes([got[62], got[63]]), 1240);
    }
}

#[test]
fn unknown_destinations_are_unreachable() {
    let mut mesh = row();
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    let link = viamesh::forwarding::NextHop::Link(mesh.nodes[0].link_to(1));
    mesh.nodes[0].add_route("fd00:1::/64", link);
    send(&mesh.nodes[0].application, &packets::udp(a, "fd00:1::1".parse().unwrap(), (1, 2), b"?"));
    send(&mesh.nodes[0].application, &packets::udp(a, "fd00:2::1".parse().unwrap(), (1, 2), b"?"));
    mesh.settle();
    let own = receive_packet(&mesh.nodes[0].application).unwrap();
    assert_eq!((own[40], FlowKey::parse(&own).unwrap().source), (1, "fd00:2::1".parse().unwrap()));
    let relays = receive_packet(&mesh.nodes[0].application).unwrap();
    assert_eq!((relays[40], FlowKey::parse(&relays).unwrap().source), (1, b));
    assert_eq!(mesh.nodes[0].worker.counters().drops.get(DropReason::NoRoute), 1);
    assert_eq!(mesh.nodes[1].worker.counters().drops.get(DropReason::NoRoute), 1);
}

#[test]
fn a_full_socket_holds_relayed_trains_back_until_the_buffers_are_full() {
    let mut mesh = row();
    let (a, c) = (mesh.nodes[0].v6(), mesh.nodes[2].v6());
    mesh.nodes[1].socket.set_faults(Faults { full: true, ..Faults::default() });
    for round in 0..10u8 {
        let packet = packets::udp(a, c, (1, 2), &vec![round; 700 + 8 * usize::from(round)]);
        send(&mesh.nodes[0].application, &packet);
        mesh.nodes[0].worker.turn(viamesh::runtime::Ready::ALL, mesh.now, std::time::Duration::ZERO);
    }
    for _ in 0..100 {
        for index in 0..3 {
            let turned = mesh.nodes[index].worker.turn(
                viamesh::runtime::Ready::ALL,
                mesh.now,
                std::time::Duration::ZERO,
            );
            assert_eq!(
                turned.full != 0,
                index == 1 && mesh.nodes[1].worker.counters().received.packets.get() > 0
            );
        }
        while let Some((wire, contents)) = mesh.nodes[0].socket.take_sent() {
            mesh.nodes[1].socket.inject(wire, &contents);
        }
    }
    assert_eq!(
        mesh.nodes[1].worker.counters().drops.get(DropReason::EgressFull),
        2,
        "8 buffers hold 8 trains"
    );
    mesh.nodes[1].socket.set_faults(Faults::default());
    mesh.settle();
    assert_eq!(mesh.nodes[2].worker.counters().tun_written.packets.get(), 8);
    assert_eq!(mesh.nodes[2].worker.counters().drops.total(), 0);
}

#[test]
fn the_longest_relayed_packet_still_fits() {
    let mut mesh = row();
    let (a, c) = (mesh.nodes[0].v4, mesh.nodes[2].v4);
    let packet = packets::udp(a, c, (1, 2), &[1; LINK_MTU as usize - 28]);
    send(&mesh.nodes[0].application, &packet);
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[2].application).unwrap().len(), usize::from(LINK_MTU));
}
