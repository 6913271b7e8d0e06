//! Associations that end, and tables that change, under traffic.

use crate::packets::{self, receive_packet, send};
use crate::rig::Mesh;
use esp::{Algorithm, Backend, OutboundSa};
use viamesh::forwarding::{DropReason, Forwarding, Punt};

#[test]
fn an_unknown_association_is_counted_and_a_known_one_goes_on() {
    let mut mesh = Mesh::new(&["tokyo", "paris"]);
    mesh.link(0, 1);
    let old = std::sync::Arc::clone(mesh.nodes[0].outbound(1));
    let foreign =
        OutboundSa::new(0x9999, Algorithm::Aes256Gcm16, &[1; 36], true, Backend::default()).unwrap();
    mesh.nodes[0].rekey(1, foreign);
    let packet = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"x");
    send(&mesh.nodes[0].application, &packet);
    mesh.settle();
    assert_eq!(mesh.nodes[1].worker.counters().drops.get(DropReason::UnknownSpi), 1);
    assert_eq!(old.packets(), 0);
}

#[test]
fn without_extended_numbers_an_association_ends_and_says_so() {
    let mut mesh = Mesh::new(&["tokyo", "paris"]);
    mesh.link(0, 1);
    let sa = OutboundSa::new(0x1001, Algorithm::Aes256Gcm16, &[1; 36], false, Backend::default()).unwrap();
    sa.reserve(u32::MAX - 2).unwrap().for_each(drop);
    mesh.nodes[0].rekey(1, sa);
    let packet = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"x");
    for _ in 0..8 {
        send(&mesh.nodes[0].application, &packet);
    }
    mesh.settle();
    assert!(mesh.nodes[0].worker.counters().drops.get(DropReason::SequenceExhausted) >= 6);
    let link = mesh.nodes[0].link_to(1);
    assert_eq!(mesh.nodes[0].worker.rings().authenticated.pop(), Some(Punt::SequenceExhausted { link }));
}

#[test]
fn a_new_snapshot_counts_from_the_next_turn() {
    let mut mesh = Mesh::new(&["tokyo", "paris"]);
    mesh.link(0, 1);
    let packet = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"x");
    send(&mesh.nodes[0].application, &packet);
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[1].application), Some(packet.clone()));
    let kept = mesh.nodes[0].snapshot.load_full();
    viamesh::runtime::publish(&mesh.nodes[0].snapshot, Forwarding::empty(kept.epoch));
    send(&mesh.nodes[0].application, &packet);
    mesh.settle();
    assert_eq!(mesh.nodes[0].worker.counters().drops.get(DropReason::NoRoute), 1);
    mesh.nodes[0].snapshot.store(kept);
    send(&mesh.nodes[0].application, &packet);
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[1].application), Some(packet));
}
