//! Two nodes.

use crate::packets::{self, receive, receive_packet, send, send_frame};
use crate::rig::{LINK_MTU, Mesh};
use srv6::ip::{FlowKey, checksum};
use viamesh::forwarding::virtio::Gso;
use viamesh::forwarding::{Down, DropReason, Punt};

fn pair() -> Mesh {
    let mut mesh = Mesh::new(&["tokyo", "paris"]);
    mesh.link(0, 1);
    mesh
}

#[test]
fn every_protocol_of_both_families_arrives_unchanged() {
    let mut mesh = pair();
    for (a, b) in [(mesh.nodes[0].v6(), mesh.nodes[1].v6()), (mesh.nodes[0].v4, mesh.nodes[1].v4)] {
        let sent = [
            packets::udp(a, b, (1, 2), b"hello"),
            packets::tcp(a, b, (1, 2), 7, 0x10, &[], b""),
            packets::tcp(a, b, (1, 2), 7, 0x18, &[], b"data"),
            packets::echo_request(a, b, 7, 64, 56),
            packets::ip(a, b, 132, 64, &[9; 33]),
            packets::ip(a, b, 59, 64, &[]),
        ];
        for packet in &sent {
            send(&mesh.nodes[0].application, packet);
            mesh.settle();
            assert_eq!(receive_packet(&mesh.nodes[1].application).as_ref(), Some(packet));
        }
        // And the other way.
        let answer = packets::echo_request(b, a, 8, 64, 1000);
        send(&mesh.nodes[1].application, &answer);
        mesh.settle();
        assert_eq!(receive_packet(&mesh.nodes[0].application), Some(answer));
    }
    assert_eq!(mesh.nodes[0].worker.counters().drops.total(), 0);
    assert_eq!(mesh.nodes[1].worker.counters().drops.total(), 0);
    assert_eq!(mesh.nodes[0].link_counters(1).sent.packets.get(), 12);
    assert_eq!(mesh.nodes[1].link_counters(0).received.packets.get(), 12);
}

#[test]
fn a_super_packet_is_one_send_and_arrives_as_one() {
    for v4 in [true, false] {
        let mut mesh = pair();
        let (a, b) =
            if v4 { (mesh.nodes[0].v4, mesh.nodes[1].v4) } else { (mesh.nodes[0].v6(), mesh.nodes[1].v6()) };
        let payload: Vec<u8> = (0..55_000u32).map(|index| (index * 7) as u8).collect();
        let (header, packet) = packets::tcp_super_packet(a, b, &payload, 1360);
        send_frame(&mesh.nodes[0].application, header, &packet);
        mesh.settle();
        assert_eq!(mesh.passed.len(), 1, "one send");
        assert_eq!(receive(&mesh.nodes[1].application), Some((header, packet)));
        assert!(receive(&mesh.nodes[1].application).is_none());
        assert_eq!(mesh.nodes[1].worker.counters().tun_writes.get(), 1);
        assert_eq!(mesh.nodes[1].worker.counters().tun_written.packets.get(), 41);
    }
}

#[test]
fn small_packets_of_one_size_leave_in_one_train() {
    let mut mesh = pair();
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    let sent: Vec<_> = (0..8).map(|index| packets::udp(a, b, (1, 2), &[index; 64])).collect();
    for packet in &sent {
        send(&mesh.nodes[0].application, packet);
    }
    mesh.settle();
    assert_eq!(mesh.passed.len(), 1);
    let (header, joined) = receive(&mesh.nodes[1].application).unwrap();
    assert_eq!((header.gso, header.gso_size), (Gso::Udp, 64));
    let payload: Vec<u8> = sent.iter().flat_map(|packet| packet[48..].to_vec()).collect();
    assert_eq!(joined[48..], payload);
}

#[test]
fn order_is_kept_when_sizes_change() {
    let mut mesh = pair();
    let (a, b) = (mesh.nodes[0].v4, mesh.nodes[1].v4);
    let sizes = [100, 100, 40, 900, 40, 40, 901, 899, 1, 1400, 1399];
    let sent: Vec<_> =
        sizes.iter().map(|size| packets::ip(a, b, 99, 64, &vec![*size as u8; *size])).collect();
    for packet in &sent {
        send(&mesh.nodes[0].application, packet);
    }
    mesh.settle();
    for packet in &sent {
        assert_eq!(receive_packet(&mesh.nodes[1].application).as_ref(), Some(packet));
    }
    assert_eq!(mesh.nodes[1].worker.counters().drops.total(), 0, "sequence numbers were in order");
}

#[test]
fn syn_is_clamped_in_both_directions() {
    let mut mesh = pair();
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    mesh.nodes[0].set_mtu(1, 1300);
    for (from, to, source, destination, flags) in [(0, 1, a, b, 0x02), (1, 0, b, a, 0x12)] {
        let syn = packets::tcp(source, destination, (1, 2), 7, flags, &[2, 4, 0x05, 0xa0], b"");
        send(&mesh.nodes[from].application, &syn);
        mesh.settle();
        let got = receive_packet(&mesh.nodes[to].application).unwrap();
        let mss = u16::from_be_bytes([got[62], got[63]]);
        assert_eq!(mss, 1300 - 60, "node {from} to {to}");
        assert_eq!(checksum::transport(source, destination, 6, &got[40..]), 0);
    }
}

#[test]
fn a_packet_beyond_the_path_is_answered_with_its_size() {
    let mut mesh = pair();
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    send(&mesh.nodes[0].application, &packets::udp(a, b, (1, 2), &[0; LINK_MTU as usize]));
    let (a4, b4) = (mesh.nodes[0].v4, mesh.nodes[1].v4);
    send(&mesh.nodes[0].application, &packets::udp(a4, b4, (1, 2), &[0; LINK_MTU as usize]));
    mesh.settle();
    let v6 = receive_packet(&mesh.nodes[0].application).unwrap();
    assert_eq!((v6[6], v6[40]), (58, 2));
    assert_eq!(u32::from_be_bytes(v6[44..48].try_into().unwrap()), u32::from(LINK_MTU));
    assert_eq!(FlowKey::parse(&v6).unwrap().destination, a);
    let v4 = receive_packet(&mesh.nodes[0].application).unwrap();
    assert_eq!((v4[9], v4[20], v4[21]), (1, 3, 4));
    assert_eq!(u16::from_be_bytes([v4[26], v4[27]]), LINK_MTU);
    assert_eq!(mesh.nodes[0].worker.counters().drops.get(DropReason::TooBig), 2);
    assert!(mesh.passed.is_empty());
}

#[test]
fn ipv4_that_may_be_fragmented_is() {
    let mut mesh = pair();
    let (a, b) = (mesh.nodes[0].v4, mesh.nodes[1].v4);
    let mut packet = packets::udp(a, b, (1, 2), &[7; 3000]);
    packet[6] = 0;
    packet[10..12].fill(0);
    let sum = checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    send(&mesh.nodes[0].application, &packet);
    mesh.settle();
    let mut payload: Vec<u8> = Vec::new();
    while let Some(fragment) = receive_packet(&mesh.nodes[1].application) {
        assert!(fragment.len() <= usize::from(LINK_MTU));
        payload.extend(&fragment[20..]);
    }
    assert_eq!(payload, packet[20..]);
}

#[test]
fn control_packets_reach_the_peer_s_control_plane() {
    let mut mesh = pair();
    let link_local = "fe80::1".parse().unwrap();
    for destination in ["ff02::1:6", "fe80::2"] {
        let packet = packets::udp(link_local, destination.parse().unwrap(), (6696, 6696), b"babel");
        let link = mesh.nodes[0].link_to(1);
        mesh.nodes[0].worker.rings().down.push(Down::Control { link, packet: packet.clone() }).unwrap();
        mesh.settle();
        let punt = mesh.nodes[1].worker.rings().authenticated.pop().unwrap();
        let link = mesh.nodes[1].link_to(0);
        assert_eq!(punt, Punt::Packet { link, packet, arrival: mesh.now });
    }
    assert!(receive(&mesh.nodes[1].application).is_none(), "the kernel does not see it");
}

#[test]
fn only_answers_to_our_own_probes_are_kept_from_the_kernel() {
    let mut mesh = pair();
    mesh.nodes[1].set_probe_identifier(0xbeef);
    let pairs = [(mesh.nodes[0].v6(), mesh.nodes[1].v6()), (mesh.nodes[0].v4, mesh.nodes[1].v4)];
    for (a, b) in pairs {
        let ours = packets::echo_reply(a, b, 0xbeef, 8);
        let others = packets::echo_reply(a, b, 0xbeee, 8);
        let request = packets::echo_request(a, b, 0xbeef, 64, 8);
        for packet in [&ours, &others, &request] {
            send(&mesh.nodes[0].application, packet);
        }
        mesh.settle();
        let punt = mesh.nodes[1].worker.rings().authenticated.pop().unwrap();
        assert!(matches!(punt, Punt::Packet { packet, .. } if packet == ours));
        assert_eq!(receive_packet(&mesh.nodes[1].application), Some(others));
        assert_eq!(receive_packet(&mesh.nodes[1].application), Some(request));
    }
}
