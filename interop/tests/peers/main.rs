//! Foreign daemons as peers of ours, and as judges. Needs root and the file systems that `cargo xtask setup` makes.
//!
//! `cargo xtask interop` runs it; `VIAMESH_FULL=1` asks for the whole matrices instead of a sample. The first word of
//! a case's name is the peer.
#![allow(clippy::unwrap_used, reason = "a case fails by panicking")]

mod babel_mesh;
mod babeld;
mod bird;
mod case;
mod kernel;
mod pairwise;
mod releases;
mod seg6;
mod strongswan;

use case::Case;

/// Whether the whole matrices are asked for, instead of CI's sample.
fn is_full() -> bool {
    std::env::var_os("VIAMESH_FULL").is_some_and(|value| value == "1")
}

fn main() {
    let mut arguments = libtest_mimic::Arguments::from_args();
    let cases: Vec<Case> = [
        releases::cases(),
        bird::cases(),
        babeld::cases(),
        seg6::cases(),
        strongswan::cases(),
        kernel::cases(),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Those of strongSwan wait for timers most of the time, so that two have room. The others measure, and come alone.
    let (waiting, measuring): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| case.name().starts_with("strongswan/"));
    let mut run = |cases: Vec<Case>, threads| {
        arguments.test_threads = Some(threads);
        libtest_mimic::run(&arguments, cases.into_iter().map(Case::into_trial).collect())
    };
    let failed = run(measuring, 1).has_failed();
    let failed = run(waiting, 2).has_failed() || failed;
    std::process::exit(i32::from(failed));
}
