//! Segmentation offload of the sockets: used, refused, blocked.

use crate::packets::{self, receive, receive_packet, send, send_frame};
use crate::rig::Mesh;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use viamesh::forwarding::{DropReason, Punt};
use viamesh::runtime::Ready;
use viamesh::runtime::memory::Faults;

fn pair() -> Mesh {
    let mut mesh = Mesh::new(&["tokyo", "paris"]);
    mesh.link(0, 1);
    mesh
}

fn super_packet(mesh: &Mesh) -> (viamesh::forwarding::virtio::VirtioHeader, Vec<u8>) {
    packets::tcp_super_packet(mesh.nodes[0].v6(), mesh.nodes[1].v6(), &[5; 20_000], 1300)
}

#[test]
fn a_refused_train_goes_at_once_as_single_datagrams() {
    for errno in [libc::EIO, libc::EINVAL] {
        let mut mesh = pair();
        mesh.nodes[0].socket.set_faults(Faults { segmentation: Some(errno), ..Faults::default() });
        let (header, packet) = super_packet(&mesh);
        send_frame(&mesh.nodes[0].application, header, &packet);
        mesh.settle();
        assert_eq!(mesh.passed.len(), 16, "each datagram by itself");
        assert_eq!(mesh.nodes[1].worker.counters().tun_written.packets.get(), 16, "nothing was lost");
        let link = mesh.nodes[0].link_to(1);
        let punt = mesh.nodes[0].worker.rings().authenticated.pop();
        assert_eq!(punt, Some(Punt::SegmentationFailed { link, errno }));
        // The next train does not even try, and after a while one does.
        mesh.nodes[0].socket.set_faults(Faults::default());
        mesh.passed.clear();
        send_frame(&mesh.nodes[0].application, header, &packet);
        mesh.settle();
        assert_eq!(mesh.passed.len(), 16);
        mesh.now += Duration::from_secs(61);
        mesh.passed.clear();
        send_frame(&mesh.nodes[0].application, header, &packet);
        mesh.settle();
        assert_eq!(mesh.passed.len(), 1);
        assert_eq!(mesh.nodes[0].worker.counters().drops.total(), 0);
    }
}

#[test]
fn a_datagram_that_is_too_big_is_counted_and_reported_and_blames_no_offload() {
    let mut mesh = pair();
    mesh.nodes[0].socket.set_faults(Faults { longest: Some(1000), ..Faults::default() });
    let (header, packet) = super_packet(&mesh);
    send_frame(&mesh.nodes[0].application, header, &packet);
    let small = packets::udp(mesh.nodes[0].v6(), mesh.nodes[1].v6(), (1, 2), b"small");
    send(&mesh.nodes[0].application, &small);
    mesh.settle();
    let too_big = mesh.nodes[0].worker.counters().drops.get(DropReason::DatagramTooBig);
    assert_eq!(too_big, 15, "the short last segment passes");
    assert!(matches!(
        mesh.nodes[0].worker.rings().authenticated.pop(),
        Some(Punt::DatagramTooBig { datagram: 1396, .. })
    ));
    assert_eq!(mesh.nodes[0].link_counters(1).single_until_millis.load(Relaxed), 0);
    assert_eq!(mesh.nodes[1].worker.counters().tun_written.packets.get(), 2);
}

#[test]
fn a_full_socket_stops_the_tun_but_not_reception() {
    let mut mesh = pair();
    mesh.nodes[0].socket.set_faults(Faults { full: true, ..Faults::default() });
    let (a, b) = (mesh.nodes[0].v6(), mesh.nodes[1].v6());
    let sent: Vec<_> =
        (0..100u8).map(|index| packets::udp(a, b, (1, 2), &vec![index; 100 + usize::from(index)])).collect();
    for packet in &sent {
        send(&mesh.nodes[0].application, packet);
    }
    for _ in 0..50 {
        let turned = mesh.nodes[0].worker.turn(Ready::ALL, mesh.now, Duration::ZERO);
        assert_eq!(turned.full, 1);
    }
    assert!(mesh.nodes[0].worker.counters().tun_read.packets.get() < 10, "the TUN is left alone");
    let answer = packets::udp(b, a, (3, 4), b"inbound");
    send(&mesh.nodes[1].application, &answer);
    mesh.settle();
    assert_eq!(receive_packet(&mesh.nodes[0].application), Some(answer));
    mesh.nodes[0].socket.set_faults(Faults::default());
    mesh.settle();
    assert_eq!(mesh.nodes[0].worker.counters().drops.total(), 0, "nothing was lost");
    for packet in &sent {
        assert_eq!(receive_packet(&mesh.nodes[1].application).as_ref(), Some(packet));
    }
}

#[test]
fn hard_send_errors_are_counted_and_pass() {
    let mut mesh = pair();
    let reasons = [
        (libc::ENOBUFS, DropReason::NoKernelBuffer),
        (libc::EPERM, DropReason::SendRefused),
        (libc::ENETUNREACH, DropReason::SendRefused),
    ];
    for (errno, reason) in reasons {
        let before = mesh.nodes[0].worker.counters().drops.get(reason);
        mesh.nodes[0].socket.set_faults(Faults { all: Some(errno), ..Faults::default() });
        let (header, packet) = super_packet(&mesh);
        send_frame(&mesh.nodes[0].application, header, &packet);
        mesh.settle();
        assert_eq!(mesh.nodes[0].worker.counters().drops.get(reason), before + 16, "{errno}");
    }
    mesh.nodes[0].socket.set_faults(Faults::default());
    let (header, packet) = super_packet(&mesh);
    send_frame(&mesh.nodes[0].application, header, &packet);
    mesh.settle();
    assert_eq!(receive(&mesh.nodes[1].application), Some((header, packet)));
}
