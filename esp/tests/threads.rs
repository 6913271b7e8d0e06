//! One SA shared by several threads, and work that moves between them.

mod support;

use esp::{
    Discard, HEADER_LEN, InboundSa, NEXT_HEADER_IPV4, Opened, OutboundSa, PendingOpen, PendingSeal,
    sealed_len,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use support::{Pair, receive};

const PACKETS: usize = 2000;

#[test]
fn the_types_may_cross_threads() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<OutboundSa>();
    shared::<InboundSa>();
    moved::<PendingSeal<'static>>();
    moved::<PendingOpen>();
    moved::<Opened>();
}

#[test]
fn shared_by_four_threads_each_packet_is_delivered_once() {
    let pair = Pair::usual();
    let datagrams: Vec<Vec<u8>> = thread::scope(|scope| {
        let sealers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..PACKETS / 4).map(|_| pair.datagram(b"shared")).collect::<Vec<_>>()))
            .collect();
        sealers.into_iter().flat_map(|sealer| sealer.join().unwrap()).collect()
    });
    assert_eq!(pair.sender.packets(), 2000);
    assert_eq!(pair.sender.bytes(), 2000 * 6);

    let (accepted, replayed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for worker in 0..4 {
            let (pair, datagrams, accepted, replayed) = (&pair, &datagrams, &accepted, &replayed);
            scope.spawn(move || {
                // Every worker gets every datagram, each in an order of its own.
                for index in 0..PACKETS {
                    let datagram = &datagrams[(index * 7 + worker * 501) % PACKETS];
                    match receive(&pair.receiver, datagram) {
                        Ok(_) => accepted.fetch_add(1, Ordering::Relaxed),
                        Err(Discard::Replayed) => replayed.fetch_add(1, Ordering::Relaxed),
                        Err(other) => panic!("{other}"),
                    };
                }
            });
        }
    });
    assert_eq!(accepted.into_inner(), PACKETS);
    assert_eq!(replayed.into_inner(), 3 * PACKETS);
    assert_eq!(pair.receiver.packets(), 2000);
    assert_eq!(pair.receiver.replayed(), 6000);
}

/// Bookkeeping on one thread, cryptography on two others, in both directions.
#[test]
fn cryptography_moves_to_other_threads() {
    let pair = Pair::usual();
    let mut buffers = vec![vec![0x5a; sealed_len(100)]; 64];

    thread::scope(|scope| {
        let reservation = pair.sender.reserve(64).unwrap();
        let mut to_sealers = Vec::new();
        for _ in 0..2 {
            let (sender, queue) = mpsc::channel::<PendingSeal<'_>>();
            scope.spawn(move || queue.into_iter().for_each(|pending| assert_eq!(pending.seal(), 136)));
            to_sealers.push(sender);
        }
        for ((sequence, buffer), sealer) in reservation.zip(&mut buffers).zip(to_sealers.iter().cycle()) {
            sealer.send(pair.sender.prepare(sequence, buffer, 100, NEXT_HEADER_IPV4).unwrap()).unwrap();
        }
    });

    let mut batch = pair.receiver.batch();
    let pendings: Vec<_> = buffers.iter().map(|buffer| batch.pre_check(buffer).unwrap()).collect();
    drop(batch);
    let (results, opened) = mpsc::channel();
    thread::scope(|scope| {
        for (buffers, pendings) in buffers.chunks_mut(32).zip(pendings.chunks(32)) {
            let (results, receiver) = (results.clone(), &pair.receiver);
            scope.spawn(move || {
                for (buffer, pending) in buffers.iter_mut().zip(pendings) {
                    results.send(receiver.open(pending, buffer).unwrap()).unwrap();
                }
            });
        }
    });
    drop(results);

    let mut batch = pair.receiver.batch();
    let accepted: Vec<_> = opened.into_iter().map(|opened| batch.commit(opened, 1).unwrap()).collect();
    assert_eq!(accepted.len(), 64);
    for buffer in &buffers {
        assert_eq!(buffer[HEADER_LEN..HEADER_LEN + 100], [0x5a; 100]);
    }
}
