//! No allocation per packet: counted by the allocator of this test binary.
#![allow(clippy::unwrap_used, reason = "a step that fails should fail the test loudly")]

mod support;

use esp::{Backend, HEADER_LEN, NEXT_HEADER_IPV4, Opened, PendingOpen};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::{ALGORITHMS, Pair};

const BATCH: usize = 32;

struct Counting;

thread_local! {
    /// Per thread, because the test harness allocates on its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// One batch through every step, good packets, replays and forgeries.
fn exchange(pair: &Pair, buffers: &mut [[u8; 1500]; BATCH]) {
    let mut pendings: [Option<PendingOpen>; BATCH] = [const { None }; BATCH];
    let mut opened: [Option<Opened>; BATCH] = [const { None }; BATCH];
    let mut lengths = [0; BATCH];
    let reservation = pair.sender.reserve(32).unwrap();
    for ((sequence, buffer), length) in reservation.zip(buffers.iter_mut()).zip(&mut lengths) {
        *length = pair.sender.seal(sequence, buffer, 1400, NEXT_HEADER_IPV4).unwrap();
    }
    let mut forged = buffers[3];
    forged[HEADER_LEN] ^= 1;

    let mut batch = pair.receiver.batch();
    for ((buffer, length), pending) in buffers.iter().zip(lengths).zip(&mut pendings) {
        *pending = Some(batch.pre_check(&buffer[..length]).unwrap());
    }
    drop(batch);
    let pending = pendings[3].as_ref().unwrap();
    assert!(pair.receiver.open(pending, &mut forged[..lengths[3]]).is_err());
    for (((buffer, length), pending), opened) in
        buffers.iter_mut().zip(lengths).zip(&pendings).zip(&mut opened)
    {
        *opened = Some(pair.receiver.open(pending.as_ref().unwrap(), &mut buffer[..length]).unwrap());
    }
    let mut batch = pair.receiver.batch();
    for opened in &mut opened {
        batch.commit(opened.take().unwrap(), 1).unwrap();
    }
    drop(batch);
    assert!(pair.receiver.pre_check(&buffers[0][..lengths[0]]).is_err());
}

#[test]
fn seal_pre_check_open_and_commit_allocate_nothing() {
    assert_ne!(allocations_of(|| drop(std::hint::black_box(vec![0u8; 10]))), 0, "the counter works");
    let mut buffers = [[0x11; 1500]; BATCH];
    for algorithm in ALGORITHMS {
        for backend in Backend::ALL {
            let pair = Pair::new(algorithm, true, backend, backend);
            // The first call may set something up for the process, such as processor features.
            exchange(&pair, &mut buffers);
            let allocations = allocations_of(|| (0..10).for_each(|_| exchange(&pair, &mut buffers)));
            assert_eq!(allocations, 0, "{algorithm:?} {backend:?}");
        }
    }
}
