//! Packets for tests, written byte by byte so that they don't depend on the code under test.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unreachable_pub, clippy::unwrap_used, clippy::cast_possible_truncation, reason = "test support")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A SID of node `node` of the test mesh.
pub fn sid(node: u16, function: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd5d, 0xac, 0, node, 0, 0, 0, function)
}

pub const END: u16 = 0xe;
pub const DT46: u16 = 0x46;

/// An IPv6 packet. `chain` is what follows the fixed header.
pub fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, chain: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((chain.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(chain);
    packet
}

/// An IPv4 packet without options, with a right checksum.
pub fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0x12, 0x34, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let sum = sum16(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// A segment routing header; `list` in its order, the last stop first.
pub fn srh(next_header: u8, segments_left: u8, list: &[Ipv6Addr], tlvs: &[u8]) -> Vec<u8> {
    let mut header = vec![
        next_header,
        ((list.len() * 16 + tlvs.len()) / 8) as u8,
        4,
        segments_left,
        (list.len() as u8).wrapping_sub(1),
        0,
        0,
        0,
    ];
    list.iter().for_each(|segment| header.extend(segment.octets()));
    header.extend(tlvs);
    header
}

/// A UDP datagram with a zero checksum.
pub fn udp(source_port: u16, destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(source_port.to_be_bytes());
    datagram.extend(destination_port.to_be_bytes());
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// A TCP segment with these flags and options, and a right checksum.
pub fn tcp(source: IpAddr, destination: IpAddr, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4), "TCP options fill words");
    let mut segment = vec![0x04, 0xd2, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 0];
    segment.extend([((20 + options.len()) as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(options);
    segment.extend(payload);
    let sum = transport_sum(source, destination, 6, &segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    segment
}

/// An ICMPv6 message with a right checksum.
pub fn icmpv6(source: Ipv6Addr, destination: Ipv6Addr, kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(rest);
    let sum = transport_sum(source.into(), destination.into(), 58, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// An ICMPv6 echo request in its packet.
pub fn echo_request(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let message = icmpv6(source, destination, 128, 0, &[0, 7, 0, 1, b'p', b'i', b'n', b'g']);
    ipv6(source, destination, 58, &message)
}

/// The Internet checksum, the slow and obvious way.
pub fn sum16(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The checksum of a transport with its pseudo-header, the slow and obvious way.
pub fn transport_sum(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    let mut covered = Vec::new();
    for address in [source, destination] {
        match address {
            IpAddr::V4(address) => covered.extend(address.octets()),
            IpAddr::V6(address) => covered.extend(address.octets()),
        }
    }
    covered.extend((segment.len() as u32).to_be_bytes());
    covered.extend([0, 0, 0, protocol]);
    covered.extend(segment);
    sum16(&covered)
}

/// Whether an IPv4 header, or the transport of an IPv6 packet without extension headers, sums up to zero.
pub fn checksum_is_right(packet: &[u8]) -> bool {
    if packet[0] >> 4 == 4 {
        return sum16(&packet[..usize::from(packet[0] & 0xf) * 4]) == 0;
    }
    let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap());
    transport_sum(address(8).into(), address(24).into(), packet[6], &packet[40..]) == 0
}

/// Any small IPv4 or IPv6 packet with a UDP datagram in it.
pub fn any_inner() -> impl Strategy<Value = Vec<u8>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..200);
    (any::<[u16; 2]>(), any::<[u8; 32]>(), any::<u8>(), payload, any::<bool>()).prop_map(
        |(ports, addresses, traffic_class, payload, is_ipv6)| {
            let datagram = udp(ports[0], ports[1], &payload);
            let half = |at: usize| <[u8; 16]>::try_from(&addresses[at..at + 16]).unwrap();
            if is_ipv6 {
                let mut packet = ipv6(half(0).into(), half(16).into(), 17, &datagram);
                packet[0] |= traffic_class >> 4;
                packet[1] |= traffic_class << 4;
                return packet;
            }
            let quarter = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&addresses[at..at + 4]).unwrap());
            let mut packet = ipv4(quarter(0), quarter(16), 17, &datagram);
            packet[1] = traffic_class;
            packet[10..12].copy_from_slice(&[0, 0]);
            let sum = sum16(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet
        },
    )
}

/// The same cases in every run; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` choose others.
pub fn fixed_seed() -> ProptestConfig {
    let config = ProptestConfig::default();
    let rng_seed = match config.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0x5eed),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    ProptestConfig { rng_seed, failure_persistence: None, cases: config.cases.max(1024), ..config }
}
