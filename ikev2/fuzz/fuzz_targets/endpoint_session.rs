#![no_main]

#[path = "../endpoint_session.rs"]
mod endpoint_session;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| endpoint_session::check(octets));
