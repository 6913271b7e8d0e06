//! Replays the fuzzing corpora; a file added after a crash keeps this red until the cause is gone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]
#![allow(unreachable_pub, reason = "the targets are modules here")]

use std::{fs, path::Path};

#[path = "../fuzz/packet.rs"]
mod packet;
#[path = "../fuzz/router_session.rs"]
mod router_session;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8, "the corpus of {target} is gone");
    for file in files {
        println_name(&file);
        run(&fs::read(&file).unwrap());
    }
}

/// Shown by the test harness if the replay panics.
#[expect(clippy::print_stdout, reason = "names the input that fails")]
fn println_name(file: &Path) {
    println!("replaying {}", file.display());
}

#[test]
fn packet_corpus() {
    replay("packet", packet::run);
}

#[test]
fn router_session_corpus() {
    replay("router_session", router_session::run);
}
