#![no_main]

#[path = "../fragment.rs"]
mod fragment;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| fragment::check(octets));
