//! Extended sequence numbers (RFC 4303 §2.2.1, appendix A) of a whole SA, and their absence.
#![allow(clippy::unwrap_used, reason = "a step that fails should fail the test loudly")]

mod support;

use esp::{Algorithm, Backend, Discard, SequenceExhausted};
use support::{ALGORITHMS, Pair};

const BOUNDARY: u64 = 1 << 32;

/// A pair whose sender gives `next` as its next number, and whose receiver has followed it there.
fn pair_near_the_boundary(algorithm: Algorithm, next: u32) -> Pair {
    let pair = Pair::new(algorithm, true, Backend::AwsLc, Backend::RustCrypto);
    // A receiver can jump less than 2^32, so it follows in two steps.
    pair.lose(0x7fff_ffff);
    pair.receive(&pair.datagram(b"half way")).unwrap();
    pair.lose(next - 0x8000_0000 - 2);
    let (accepted, _) = pair.receive(&pair.datagram(b"there")).unwrap();
    assert_eq!(accepted.sequence(), u64::from(next) - 1);
    pair
}

#[test]
fn traffic_crosses_the_boundary_in_order() {
    for algorithm in ALGORITHMS {
        let pair = pair_near_the_boundary(algorithm, 0xffff_ff00);
        for expected in BOUNDARY - 256..BOUNDARY + 5000 {
            let (accepted, payload) = pair.receive(&pair.datagram(&expected.to_be_bytes())).unwrap();
            assert_eq!(accepted.sequence(), expected);
            assert_eq!(payload, expected.to_be_bytes());
            assert!(accepted.newest());
        }
    }
}

#[test]
fn stragglers_from_below_the_boundary_are_accepted_above_it() {
    let pair = pair_near_the_boundary(Algorithm::Aes256Gcm16, 0xffff_fff0);
    let below: Vec<_> = (0..16).map(|_| pair.datagram(b"below")).collect();
    let above: Vec<_> = (0..16).map(|_| pair.datagram(b"above")).collect();
    for datagram in above.iter().rev().chain(below.iter().rev()) {
        pair.receive(datagram).unwrap();
    }
    for datagram in above.iter().chain(&below) {
        assert_eq!(pair.receive(datagram), Err(Discard::Replayed));
    }
    assert_eq!(pair.receiver.integrity_failures(), 0, "every high half was guessed right");
}

#[test]
fn heavy_loss_around_the_boundary_is_survived() {
    let pair = pair_near_the_boundary(Algorithm::ChaCha20Poly1305, 0xffff_ff00);
    pair.lose(0x7fff_0000);
    let (accepted, _) = pair.receive(&pair.datagram(b"after two thousand million")).unwrap();
    assert_eq!(accepted.sequence(), BOUNDARY - 256 + 0x7fff_0000);
}

/// An old packet with the same low half, from one whole subspace ago, must fail: its high half is
/// authenticated though it is not sent.
#[test]
fn a_packet_of_the_previous_subspace_is_no_replay_of_this_one() {
    let pair = Pair::usual();
    let old = pair.datagram(b"number 1");
    pair.lose(0x7fff_ffff - 1);
    pair.receive(&pair.datagram(b"half way")).unwrap();
    pair.lose(0x7fff_ffff);
    pair.receive(&pair.datagram(b"at the boundary")).unwrap();
    assert_eq!(pair.receive(&old), Err(Discard::IntegrityFailure));
}

#[test]
fn both_ends_must_agree_on_the_kind_of_numbers() {
    for esn in [true, false] {
        let sender = Pair::new(Algorithm::Aes256Gcm16, esn, Backend::AwsLc, Backend::AwsLc);
        let receiver = Pair::new(Algorithm::Aes256Gcm16, !esn, Backend::AwsLc, Backend::AwsLc);
        assert_eq!(receiver.receive(&sender.datagram(b"x")), Err(Discard::IntegrityFailure));
    }
}

#[test]
fn short_numbers_end_before_they_wrap() {
    let pair = Pair::new(Algorithm::Aes128Gcm16, false, Backend::AwsLc, Backend::AwsLc);
    pair.lose(u32::MAX - 2);
    let (accepted, _) = pair.receive(&pair.datagram(b"the last one")).unwrap();
    assert_eq!(accepted.sequence(), 0xffff_fffe);
    for _ in 0..3 {
        assert_eq!(pair.sender.reserve(1).unwrap_err(), SequenceExhausted { remaining: 0 });
    }
    assert_eq!(pair.sender.packets(), 0xffff_fffe);
}
