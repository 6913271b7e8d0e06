//! Bytes that no honest peer sends: strangers' at every length, and those of a peer that has the keys.

mod support;

#[path = "../fuzz/open_session.rs"]
mod open_session;

use esp::{Algorithm, Backend, Discard, HEADER_LEN, InboundSa, MIN_DATAGRAM_LEN};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use support::{ALGORITHMS, Pair, SPI, WINDOW, receive};

#[test]
fn every_length_from_a_stranger_is_refused() {
    for algorithm in ALGORITHMS {
        for fill in [0x00, 0x5a, 0xff] {
            for length in 0..=64 {
                let pair = Pair::new(algorithm, true, Backend::AwsLc, Backend::AwsLc);
                let mut datagram = vec![fill; length];
                for (octet, spi) in datagram.iter_mut().zip(SPI.to_be_bytes()) {
                    *octet = spi;
                }
                let expected = match length {
                    0..MIN_DATAGRAM_LEN => Discard::TooShort,
                    _ if length % 4 != 0 => Discard::Misaligned,
                    // Number 0 is never valid; number 0xffffffff would be before the first.
                    _ if fill == 0x00 => Discard::Replayed,
                    _ if fill == 0xff => Discard::OutsideWindow,
                    _ => Discard::IntegrityFailure,
                };
                assert_eq!(pair.receive(&datagram), Err(expected), "{length} x {fill:#x}");
            }
        }
    }
}

/// A peer with the right keys may still send any plaintext.
#[test]
fn bad_trailers_of_an_authenticated_peer_are_refused_and_counted() {
    let key = [9; 36];
    let cipher = Algorithm::Aes256Gcm16.aead(&key[..32], Backend::AwsLc).unwrap();
    let sa = InboundSa::new(SPI, Algorithm::Aes256Gcm16, &key, false, WINDOW, Backend::AwsLc).unwrap();
    let trailers: [(&[u8], Result<usize, Discard>); 8] = [
        (&[0xee, 0xee, 0, 4], Ok(2)),
        (&[0xee, 1, 1, 4], Ok(1)),
        (&[1, 2, 2, 4], Ok(0)),
        (&[0xee, 0xee, 3, 4], Err(Discard::BadPadding)),
        (&[0xee, 0xee, 255, 4], Err(Discard::BadPadding)),
        (&[0xee, 0, 1, 4], Err(Discard::BadPadding)),
        (&[2, 1, 2, 4], Err(Discard::BadPadding)),
        (&[0xee, 0xee, 0, 59], Err(Discard::Dummy)),
    ];
    for (sequence, (plaintext, expected)) in (1u32..).zip(trailers) {
        let mut datagram = [&SPI.to_be_bytes()[..], &sequence.to_be_bytes(), &[7; 8], plaintext].concat();
        let nonce = [&key[32..], &[7; 8]].concat().try_into().unwrap();
        let (header, data) = datagram.split_at_mut(HEADER_LEN);
        let icv = cipher.seal_in_place(&nonce, &header[..8], data);
        datagram.extend(icv);
        assert_eq!(receive(&sa, &datagram).map(|(_, payload)| payload.len()), expected, "{plaintext:?}");
        assert_eq!(receive(&sa, &datagram).err(), Some(Discard::Replayed), "the number is used up");
    }
    assert_eq!((sa.packets(), sa.integrity_failures()), (8, 0));
}

#[test]
fn the_fuzzers_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/open");
    let mut inputs: Vec<_> = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 8, "the corpus is committed");
    for input in inputs {
        open_session::run(&fs::read(input).unwrap());
    }
}

proptest! {
    /// What the fuzzer does, without a fuzzer: random records, most of them well-formed.
    #[test]
    fn random_sessions_hold(
        options: u8,
        records in proptest::collection::vec((0u8..3, proptest::collection::vec(any::<u8>(), 0..80)), 0..12),
        tail in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut input = vec![options];
        for (kind, bytes) in records {
            input.extend([kind, u8::try_from(bytes.len()).unwrap()]);
            input.extend(bytes);
        }
        input.extend(tail);
        open_session::run(&input);
    }
}
