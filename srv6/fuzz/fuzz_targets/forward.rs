#![no_main]

#[path = "../forward.rs"]
mod forward;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| forward::check(bytes));
