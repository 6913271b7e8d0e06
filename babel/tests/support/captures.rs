//! Captured packets as hexadecimal text: one packet a line, its IPv6 source first; `#` starts a comment.

use std::net::Ipv6Addr;

pub fn parse(text: &str) -> Vec<(Ipv6Addr, Vec<u8>)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let (source, octets) = line.split_once(' ').expect("source and octets");
            (source.parse().expect("an IPv6 address"), hex(octets))
        })
        .collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
