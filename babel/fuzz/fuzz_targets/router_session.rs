//! A router among hostile neighbours: `cargo +nightly fuzz run router_session`.
#![no_main]

#[path = "../router_session.rs"]
mod router_session;

libfuzzer_sys::fuzz_target!(|input: &[u8]| router_session::run(input));
