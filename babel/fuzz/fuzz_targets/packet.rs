//! The codec: `cargo +nightly fuzz run packet`.
#![no_main]

#[path = "../packet.rs"]
mod packet;

libfuzzer_sys::fuzz_target!(|input: &[u8]| packet::run(input));
