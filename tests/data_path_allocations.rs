//! The data path allocates nothing per packet once it has warmed up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    dead_code,
    reason = "test code"
)]

#[path = "data_path/packets.rs"]
mod packets;
#[path = "data_path/rig.rs"]
mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system allocator unchanged; the counter is a plain thread-local cell.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is the one that System asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Allocations while `work` runs.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

/// One round: a super-packet, single packets of both families, and a journey, over three nodes.
fn round(mesh: &mut rig::Mesh, frames: &[Vec<u8>], out: &mut [u8]) {
    use std::io::IoSlice;
    use std::time::Duration;
    use viamesh::runtime::Ready;
    for frame in frames {
        mesh.nodes[0].application.send(&[IoSlice::new(frame)]);
    }
    for _ in 0..6 {
        for index in 0..3 {
            mesh.nodes[index].worker.turn(Ready::ALL, mesh.now, Duration::ZERO);
        }
        mesh.nodes[0].socket.carry_to(&mesh.nodes[1].socket);
        mesh.nodes[1].socket.carry_to(&mesh.nodes[2].socket);
    }
    while mesh.nodes[2].application.receive_into(out).is_some() {}
}

#[test]
fn steady_traffic_allocates_nothing() {
    let mut mesh = rig::Mesh::new(&["a", "b", "c"]);
    mesh.link(0, 1);
    mesh.link(1, 2);
    mesh.route(0, 2, 1);
    let exit = mesh.nodes[2].locator.dt46();
    let stop = mesh.nodes[1].locator.end();
    let rule = viamesh::policy::Rule { protocol: Some(17), ..Default::default() };
    mesh.steer(0, rule, &[stop, exit]);
    let (a, c) = (mesh.nodes[0].v6(), mesh.nodes[2].v6());
    let (a4, c4) = (mesh.nodes[0].v4, mesh.nodes[2].v4);
    let plain = viamesh::forwarding::virtio::VirtioHeader::PLAIN.to_bytes();
    let (header, packet) = packets::tcp_super_packet(a, c, &[3; 50_000], 1360);
    let mut frames = vec![[&header.to_bytes()[..], &packet].concat()];
    for size in [10, 500, 1200] {
        for packet in [
            packets::udp(a, c, (1, 2), &vec![1; size]),
            packets::tcp(a4, c4, (1, 2), 1, 0x10, &[], &vec![1; size]),
        ] {
            frames.push([&plain[..], &packet].concat());
        }
    }
    let mut out = vec![0; 70_000];
    for _ in 0..20 {
        round(&mut mesh, &frames, &mut out);
    }
    let before = mesh.nodes[2].worker.counters().tun_written.packets.get();
    let count = allocations(|| {
        for _ in 0..50 {
            round(&mut mesh, &frames, &mut out);
        }
    });
    let packets = mesh.nodes[2].worker.counters().tun_written.packets.get() - before;
    assert_eq!(packets, 50 * (37 + 6));
    assert_eq!(count, 0, "allocations for {packets} packets");
}
