//! Hostile datagrams against one inbound SA: `cargo +nightly fuzz run open`.
#![no_main]

#[path = "../open_session.rs"]
mod open_session;

libfuzzer_sys::fuzz_target!(|input: &[u8]| open_session::run(input));
