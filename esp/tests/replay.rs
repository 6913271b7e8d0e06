//! Replay protection of a whole SA: the order of pre-check, ICV and window (RFC 4303 §3.4.3).
#![allow(clippy::unwrap_used, reason = "a step that fails should fail the test loudly")]

mod support;

use esp::{Algorithm, Backend, Discard, InboundSa, NEXT_HEADER_DUMMY, NEXT_HEADER_IPV6, SequenceNumber};
use support::Pair;

fn next(pair: &Pair) -> SequenceNumber {
    pair.sender.reserve(1).unwrap().next().unwrap()
}

#[test]
fn every_packet_is_accepted_once_in_any_order() {
    let pair = Pair::usual();
    let mut datagrams: Vec<_> = (0..200u8).map(|octet| pair.datagram(&[octet; 20])).collect();
    datagrams.reverse();
    for (datagram, octet) in datagrams.iter().zip((0..200).rev()) {
        let (accepted, payload) = pair.receive(datagram).unwrap();
        assert_eq!(payload, [octet; 20]);
        assert_eq!(accepted.newest(), octet == 199, "only the first to arrive is ahead of all others");
    }
    for datagram in &datagrams {
        assert_eq!(pair.receive(datagram), Err(Discard::Replayed));
    }
    assert_eq!(pair.receiver.packets(), 200);
    assert_eq!(pair.receiver.bytes(), 200 * 20);
    assert_eq!(pair.receiver.replayed(), 200);
}

#[test]
fn a_replay_costs_no_cryptography() {
    let pair = Pair::usual();
    let datagram = pair.datagram(b"once");
    pair.receive(&datagram).unwrap();
    assert_eq!(pair.receiver.pre_check(&datagram), Err(Discard::Replayed));
}

#[test]
fn packets_older_than_the_window_are_told_apart_from_replays() {
    let pair = Pair::new(Algorithm::Aes256Gcm16, false, Backend::AwsLc, Backend::AwsLc);
    let oldest = pair.datagram(b"oldest");
    let second = pair.datagram(b"second");
    pair.lose(4094);
    pair.receive(&pair.datagram(b"number 4097")).unwrap();
    assert_eq!(pair.receive(&oldest), Err(Discard::OutsideWindow));
    assert!(pair.receive(&second).is_ok());
    assert_eq!((pair.receiver.outside_window(), pair.receiver.replayed()), (1, 0));
}

/// With extended numbers a low half below the window stands for the next subspace (RFC 4303 appendix A2.2), so
/// it is the ICV that refuses a packet that is too late.
#[test]
fn with_extended_numbers_the_icv_refuses_what_is_too_old() {
    let pair = Pair::usual();
    let oldest = pair.datagram(b"oldest");
    pair.lose(4095);
    pair.receive(&pair.datagram(b"number 4097")).unwrap();
    assert_eq!(pair.receive(&oldest), Err(Discard::IntegrityFailure));
    assert!(pair.receive(&pair.datagram(b"number 4098")).unwrap().0.newest());
}

/// Two workers open two copies of one packet before either commits.
#[test]
fn the_second_of_two_opened_copies_is_refused() {
    let pair = Pair::usual();
    let (mut first, mut second) = (pair.datagram(b"twin"), Vec::new());
    second.clone_from(&first);
    let pendings = [pair.receiver.pre_check(&first).unwrap(), pair.receiver.pre_check(&second).unwrap()];
    let opened = [
        pair.receiver.open(&pendings[0], &mut first).unwrap(),
        pair.receiver.open(&pendings[1], &mut second).unwrap(),
    ];
    let verdicts = opened.map(|opened| pair.receiver.commit(opened, 1).map(|accepted| accepted.sequence()));
    assert_eq!(verdicts, [Ok(1), Err(Discard::Replayed)]);
    assert_eq!((pair.receiver.packets(), pair.receiver.replayed()), (1, 1));
}

/// The window passes a packet by while it is being decrypted.
#[test]
fn a_packet_that_falls_behind_while_it_is_opened_is_refused() {
    let pair = Pair::usual();
    let mut slow = pair.datagram(b"slow");
    let pending = pair.receiver.pre_check(&slow).unwrap();
    let opened = pair.receiver.open(&pending, &mut slow).unwrap();
    pair.lose(5000);
    pair.receive(&pair.datagram(b"fast")).unwrap();
    assert_eq!(pair.receiver.commit(opened, 1), Err(Discard::OutsideWindow));
}

#[test]
fn a_forged_packet_moves_nothing() {
    let pair = Pair::usual();
    let honest = pair.datagram(b"honest");
    pair.lose(1_000_000);
    let mut forged = pair.datagram(b"forged");
    *forged.last_mut().unwrap() ^= 1;
    for _ in 0..3 {
        assert_eq!(pair.receive(&forged), Err(Discard::IntegrityFailure));
    }
    let receiver = &pair.receiver;
    assert_eq!((receiver.integrity_failures(), receiver.packets()), (3, 0));
    assert_eq!(receiver.last_authenticated_millis(), 0);
    assert!(pair.receive(&honest).unwrap().0.newest());
}

#[test]
fn a_dummy_is_dropped_but_uses_its_number() {
    let pair = Pair::usual();
    let dummy = pair.sealed(next(&pair), b"noise", NEXT_HEADER_DUMMY);
    assert_eq!(pair.receive(&dummy), Err(Discard::Dummy));
    assert_eq!(pair.receive(&dummy), Err(Discard::Replayed));
    assert_eq!((pair.receiver.packets(), pair.receiver.bytes()), (1, 0));
    assert_eq!(pair.receiver.last_authenticated_millis(), 1, "the peer is alive");
}

#[test]
fn a_batch_takes_the_lock_once_per_step() {
    let pair = Pair::usual();
    let mut datagrams: Vec<_> = (0..32u8).map(|octet| pair.datagram(&[octet; 64])).collect();
    datagrams.push(datagrams[7].clone());

    let mut batch = pair.receiver.batch();
    let pendings: Vec<_> = datagrams.iter().map(|datagram| batch.pre_check(datagram).unwrap()).collect();
    drop(batch);
    let opened: Vec<_> = datagrams
        .iter_mut()
        .zip(&pendings)
        .map(|(datagram, pending)| pair.receiver.open(pending, datagram).unwrap())
        .collect();
    let mut batch = pair.receiver.batch();
    let verdicts: Vec<_> = opened.into_iter().map(|opened| batch.commit(opened, 9)).collect();
    drop(batch);

    for (octet, (datagram, verdict)) in datagrams.iter().zip(&verdicts).take(32).enumerate() {
        let accepted = verdict.as_ref().unwrap();
        assert!(accepted.newest());
        assert_eq!(accepted.next_header(), NEXT_HEADER_IPV6);
        assert!(datagram[accepted.payload()].iter().all(|&byte| usize::from(byte) == octet));
    }
    assert_eq!(verdicts[32], Err(Discard::Replayed), "a duplicate inside one batch");
}

#[test]
fn the_last_authenticated_arrival_never_goes_back() {
    let pair = Pair::usual();
    for (arrival, expected) in [(500, 500), (400, 500), (501, 501)] {
        let mut datagram = pair.datagram(b"tick");
        let pending = pair.receiver.pre_check(&datagram).unwrap();
        let opened = pair.receiver.open(&pending, &mut datagram).unwrap();
        pair.receiver.commit(opened, arrival).unwrap();
        assert_eq!(pair.receiver.last_authenticated_millis(), expected);
    }
}

#[test]
fn a_packet_is_committed_to_the_sa_that_opened_it() {
    let pair = Pair::usual();
    let other = InboundSa::new(300, Algorithm::Aes256Gcm16, &[1; 36], true, 4096, Backend::AwsLc).unwrap();
    let mut datagram = pair.datagram(b"ours");
    let pending = pair.receiver.pre_check(&datagram).unwrap();
    let opened = pair.receiver.open(&pending, &mut datagram).unwrap();
    assert_eq!(other.commit(opened, 1), Err(Discard::WrongSpi));
    assert_eq!((other.packets(), other.last_authenticated_millis()), (0, 0));
}
