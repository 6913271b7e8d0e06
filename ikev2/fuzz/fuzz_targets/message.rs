#![no_main]

#[path = "../message.rs"]
mod message;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| message::check(octets));
