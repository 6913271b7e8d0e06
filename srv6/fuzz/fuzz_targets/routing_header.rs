#![no_main]

#[path = "../routing_header.rs"]
mod routing_header;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| routing_header::check(bytes));
