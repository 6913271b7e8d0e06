//! Captured packets as hexadecimal text: one packet a line, IPv6 source and destination first; `#` starts a comment.

use std::net::Ipv6Addr;

pub struct Captured {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub payload: Vec<u8>,
}

pub fn parse(text: &str) -> Vec<Captured> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let mut word = || words.next().expect("source, destination, octets");
            Captured {
                source: word().parse().expect("an IPv6 address"),
                destination: word().parse().expect("an IPv6 address"),
                payload: hex(word()),
            }
        })
        .collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A packet with this body.
pub fn packet(body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[42, 2], &length[..], body].concat()
}
