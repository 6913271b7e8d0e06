//! Replays the committed fuzz corpora, and some more input of the same kinds, in every test run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]
#![allow(unreachable_pub, reason = "the modules are shared with the fuzz targets")]

#[path = "../fuzz/endpoint_session.rs"]
mod endpoint_session;
#[path = "../fuzz/fragment.rs"]
mod fragment;
#[path = "../fuzz/message.rs"]
mod message;

use std::fs;
use std::path::PathBuf;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// All files of a corpus, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut octets = vec![0; length];
    ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut octets);
    octets
}

#[test]
fn messages() {
    for octets in corpus("message") {
        message::check(&octets);
        // Every single changed octet and every truncation of a real message.
        for at in 0..octets.len() {
            let mut changed = octets.clone();
            changed[at] = changed[at].wrapping_add(1);
            message::check(&changed);
            message::check(&octets[..at]);
        }
    }
}

#[test]
fn fragments() {
    corpus("fragment").iter().for_each(|octets| fragment::check(octets));
    (0..200).for_each(|seed| fragment::check(&random(seed, 600)));
}

#[test]
fn endpoint_sessions() {
    corpus("endpoint_session").iter().for_each(|octets| endpoint_session::check(octets));
    (0..100).for_each(|seed| endpoint_session::check(&random(seed, 900)));
}
