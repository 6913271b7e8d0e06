//! SRv6: A→B→C→B→D, visits checked on the wires.

use crate::packets::{self, receive, receive_packet, send, send_frame};
use crate::rig::{LINK_MTU, Mesh};
use srv6::ip::{FlowKey, hop_limit};
use std::net::IpAddr;
use viamesh::forwarding::{DropReason, NextHop, Punt};
use viamesh::policy::Rule;

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;

/// Everybody linked to everybody, direct links the best ones, and the policy A→B→C→B→D.
fn world(exit: impl Fn(&Mesh) -> std::net::Ipv6Addr, to: &str) -> Mesh {
    let mut mesh = Mesh::new(&["a", "b", "c", "d"]);
    for a in 0..4 {
        for b in a + 1..4 {
            mesh.link(a, b);
        }
    }
    let (b, c) = (mesh.nodes[B].locator.end(), mesh.nodes[C].locator.end());
    let rule = Rule { name: "tour".into(), to: vec![to.parse().unwrap()], ..Rule::default() };
    let exit = exit(&mesh);
    mesh.steer(A, rule, &[b, c, b, exit]);
    mesh
}

#[test]
fn packets_of_the_policy_visit_its_stops_in_order() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "10.99.0.4/32");
    let (a, d) = (mesh.nodes[A].v4, mesh.nodes[D].v4);
    let packet = packets::udp(a, d, (1, 2), b"by the scenic road");
    send(&mesh.nodes[A].application, &packet);
    mesh.settle();
    assert_eq!(mesh.journey(), ["a", "b", "c", "b", "d"]);
    assert_eq!(receive_packet(&mesh.nodes[D].application), Some(packet));
    // What the policy does not match goes the fastest way.
    mesh.passed.clear();
    let (a, d) = (mesh.nodes[A].v6(), mesh.nodes[D].v6());
    let packet = packets::udp(a, d, (1, 2), b"straight");
    send(&mesh.nodes[A].application, &packet);
    mesh.settle();
    assert_eq!(mesh.journey(), ["a", "d"]);
    assert_eq!(receive_packet(&mesh.nodes[D].application), Some(packet));
    for node in &mesh.nodes {
        assert_eq!(node.worker.counters().drops.total(), 0, "{}", node.name);
    }
}

#[test]
fn a_super_packet_makes_the_journey_in_one_send_a_hop() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "fd5d:ac::/32");
    let (a, d) = (mesh.nodes[A].v6(), mesh.nodes[D].v6());
    let payload: Vec<u8> = (0..50_000u32).map(|index| (index / 3) as u8).collect();
    let (header, packet) = packets::tcp_super_packet(a, d, &payload, 1200);
    send_frame(&mesh.nodes[A].application, header, &packet);
    mesh.settle();
    assert_eq!(mesh.journey(), ["a", "b", "c", "b", "d"]);
    assert_eq!(receive(&mesh.nodes[D].application), Some((header, packet)));
}

#[test]
fn the_exit_sends_what_is_not_of_the_mesh_to_its_kernel() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.internet(), "198.51.100.0/24");
    let outside: IpAddr = "198.51.100.7".parse().unwrap();
    let packet = packets::udp(mesh.nodes[A].v4, outside, (1, 53), b"query");
    send(&mesh.nodes[A].application, &packet);
    mesh.settle();
    assert_eq!(
        mesh.nodes[D].worker.counters().drops.get(DropReason::NoRoute),
        1,
        "not offered: nobody has ::f"
    );
    let refusal = receive_packet(&mesh.nodes[A].application).unwrap();
    assert_eq!((refusal[9], refusal[20]), (1, 3), "and the sender is told");
    mesh.nodes[D].offer_internet();
    send(&mesh.nodes[A].application, &packet);
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[D].application), Some(packet));
    // The answer comes back on the fastest way.
    mesh.passed.clear();
    let answer = packets::udp(outside, mesh.nodes[A].v4, (53, 1), b"answer");
    send(&mesh.nodes[D].application, &answer);
    mesh.settle();
    assert_eq!(mesh.journey(), ["d", "a"]);
    assert_eq!(receive_packet(&mesh.nodes[A].application), Some(answer));
}

#[test]
fn a_policy_s_overhead_counts_in_its_mtu() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "fd5d:ac::/32");
    let (a, d) = (mesh.nodes[A].v6(), mesh.nodes[D].v6());
    // Reduced encapsulation: 40 octets of IPv6, 8 of SRH, three listed segments.
    let longest = usize::from(LINK_MTU) - 40 - 8 - 48;
    let fits = packets::udp(a, d, (1, 2), &vec![1; longest - 48]);
    send(&mesh.nodes[A].application, &fits);
    send(&mesh.nodes[A].application, &packets::udp(a, d, (1, 2), &vec![1; longest - 47]));
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[D].application), Some(fits));
    assert!(receive(&mesh.nodes[D].application).is_none());
    let error = receive_packet(&mesh.nodes[A].application).unwrap();
    assert_eq!(u32::from_be_bytes(error[44..48].try_into().unwrap()) as usize, longest);
    let syn = packets::tcp(a, d, (1, 2), 7, 0x02, &[2, 4, 0x05, 0xa0], b"");
    send(&mesh.nodes[A].application, &syn);
    mesh.settle();
    let got = receive_packet(&mesh.nodes[D].application).unwrap();
    assert_eq!(usize::from(u16::from_be_bytes([got[62], got[63]])), longest - 60);
}

#[test]
fn each_stop_of_the_journey_answers_a_probe_that_expires_there() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "fd5d:ac::/32");
    mesh.nodes[A].set_probe_identifier(0x7ace);
    let (a, d) = (mesh.nodes[A].v6(), mesh.nodes[D].v6());
    let mut answered = Vec::new();
    for limit in 1..=4 {
        let packet = packets::echo_request(a, d, 0x7ace, limit, 16);
        mesh.nodes[A].worker.rings().down.push(viamesh::forwarding::Down::Inject { packet }).unwrap();
        mesh.settle();
        while let Some(punt) = mesh.nodes[A].worker.rings().authenticated.pop() {
            let Punt::Packet { packet, .. } = punt else { panic!("{punt:?}") };
            let source = FlowKey::parse(&packet).unwrap().source;
            answered.push(mesh.nodes.iter().find(|node| node.v6() == source).unwrap().name);
        }
    }
    assert_eq!(answered, ["b", "c", "b"], "the fourth arrives");
    let arrived = receive_packet(&mesh.nodes[D].application).unwrap();
    assert_eq!(hop_limit(&arrived).unwrap(), 4, "the envelope's hop limit was counted, not the traveller's");
}

#[test]
fn an_error_about_the_envelope_reaches_the_traveller_s_sender() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "fd5d:ac::/32");
    mesh.nodes[C].set_mtu(B, 1420);
    let (a, d) = (mesh.nodes[A].v6(), mesh.nodes[D].v6());
    let packet = packets::udp(a, d, (1, 2), &[1; 1330 - 48]);
    send(&mesh.nodes[A].application, &packet);
    mesh.settle();
    // The control plane learns the path's MTU, the application its own.
    let punt = mesh.nodes[A].worker.rings().authenticated.pop().unwrap();
    assert!(matches!(punt, Punt::Packet { .. }));
    let error = receive_packet(&mesh.nodes[A].application).unwrap();
    assert_eq!((error[40], u32::from_be_bytes(error[44..48].try_into().unwrap())), (2, 1420 - 96));
    assert_eq!(error[48..48 + 48], packet[..48], "it quotes the traveller");
}

#[test]
fn policies_that_cannot_be_followed_drop() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "fd5d:ac::/32");
    // The first stop has no route any more.
    let sid = ipnet::IpNet::from(mesh.nodes[B].locator.prefix()).to_string();
    mesh.nodes[A].add_route(&sid, NextHop::Unreachable);
    let packet = packets::udp(mesh.nodes[A].v6(), mesh.nodes[D].v6(), (1, 2), b"x");
    send(&mesh.nodes[A].application, &packet);
    mesh.settle();
    assert!(mesh.passed.is_empty(), "never the direct way");
    assert_eq!(mesh.nodes[A].worker.counters().drops.get(DropReason::PolicyUnreachable), 1);
    let error = receive_packet(&mesh.nodes[A].application).unwrap();
    assert_eq!((error[40], error[41]), (1, 3));
}

#[test]
fn segments_are_closed_to_the_lan_and_to_strangers() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "192.0.2.0/24");
    let sid: IpAddr = mesh.nodes[D].locator.end().into();
    let own: IpAddr = mesh.nodes[A].locator.end().into();
    let a = mesh.nodes[A].v6();
    send(&mesh.nodes[A].application, &packets::udp(a, sid, (1, 2), b"x"));
    send(&mesh.nodes[A].application, &packets::udp(a, own, (1, 2), b"x"));
    mesh.settle();
    assert_eq!(mesh.nodes[A].worker.counters().drops.get(DropReason::SidFromTun), 2);
    // A peer that forwards somebody else's packet to a segment.
    let stranger = "2001:db8::1".parse().unwrap();
    let link = mesh.nodes[A].link_to(D);
    for sid in [sid, mesh.nodes[C].locator.end().into()] {
        let packet = packets::udp(stranger, sid, (1, 2), b"x");
        mesh.nodes[A].worker.rings().down.push(viamesh::forwarding::Down::Control { link, packet }).unwrap();
    }
    mesh.settle();
    assert_eq!(mesh.nodes[D].worker.counters().drops.get(DropReason::SidSourceOutside), 2);
}

#[test]
fn a_ping_to_a_segment_is_the_control_plane_s() {
    let mut mesh = world(|mesh| mesh.nodes[D].locator.dt46(), "192.0.2.0/24");
    let packet = packets::echo_request(mesh.nodes[A].v6(), mesh.nodes[D].locator.end().into(), 3, 64, 8);
    mesh.nodes[A]
        .worker
        .rings()
        .down
        .push(viamesh::forwarding::Down::Originate { packet: packet.clone() })
        .unwrap();
    mesh.settle();
    let punt = mesh.nodes[D].worker.rings().authenticated.pop().unwrap();
    assert!(matches!(punt, Punt::Packet { packet: got, .. } if got == packet));
}
