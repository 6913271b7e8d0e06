//! Views, flow keys, checksums, hop limits, MSS clamping, UDP and fragmentation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use srv6::FlowKey;
use srv6::error::Malformed;
use srv6::ip::fragmentation::fragment;
use srv6::ip::mss::{self, Checksum, clamp, clamp_with};
use srv6::ip::udp::{IPV6_HEADERS_LEN, UdpOverIpv6, UdpView};
use srv6::ip::{HopLimit, Ipv4View, Ipv6View, checksum, decrement_hop_limit, hop_limit};
use support::{any_inner, checksum_is_right, ipv4, ipv6, sid, sum16, tcp, transport_sum, udp};

const HOST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR4: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

fn host6() -> Ipv6Addr {
    "2001:db8::1".parse().unwrap()
}

fn far6() -> Ipv6Addr {
    "2001:db8:9::1".parse().unwrap()
}

#[test]
fn flow_keys_of_both_families() {
    let mut packet = ipv4(HOST4, FAR4, 17, &udp(4500, 53, b"x"));
    packet[1] = 46 << 2 | 1;
    let key = FlowKey::parse(&packet).unwrap();
    let expected = FlowKey {
        source: HOST4.into(),
        destination: FAR4.into(),
        protocol: 17,
        ports: Some((4500, 53)),
        dscp: 46,
        fragment: false,
    };
    assert_eq!(key, expected);
    let mut packet = ipv6(host6(), far6(), 6, &tcp(host6().into(), far6().into(), 2, &[], b""));
    packet[0] |= 46 >> 2;
    packet[1] |= (46 & 3) << 6;
    let key = FlowKey::parse(&packet).unwrap();
    assert_eq!((key.protocol, key.ports, key.dscp), (6, Some((1234, 443)), 46));
}

#[test]
fn ports_stand_behind_extension_headers() {
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    for (name, next, header) in [("destination options", 60, &options[..]), ("hop by hop", 0, &options[..])] {
        let mut chain = header.to_vec();
        chain.extend(udp(1, 2, b""));
        let key = FlowKey::parse(&ipv6(host6(), far6(), next, &chain)).unwrap();
        assert_eq!((key.protocol, key.ports), (17, Some((1, 2))), "{name}");
    }
    // AH counts words: 4 means 24 bytes.
    let mut chain = vec![17, 4];
    chain.extend([0; 22]);
    chain.extend(udp(1, 2, b""));
    let key = FlowKey::parse(&ipv6(host6(), far6(), 51, &chain)).unwrap();
    assert_eq!((key.protocol, key.ports), (17, Some((1, 2))));
}

/// All fragments of a datagram have one key: they must not part ways at a policy that names ports.
#[test]
fn fragments_have_one_key() {
    let datagram = udp(1, 2, &[9; 16]);
    let mut first = ipv4(HOST4, FAR4, 17, &datagram[..16]);
    first[6] = 0x20;
    let mut later = ipv4(HOST4, FAR4, 17, &datagram[16..]);
    later[7] = 2;
    let key = FlowKey::parse(&first).unwrap();
    assert_eq!(key, FlowKey::parse(&later).unwrap());
    assert_eq!((key.protocol, key.ports, key.fragment), (17, None, true));

    let fragment = |offset_and_more: u16, rest: &[u8]| {
        let mut chain = vec![17, 0];
        chain.extend(offset_and_more.to_be_bytes());
        chain.extend([0, 0, 0, 1]);
        chain.extend(rest);
        FlowKey::parse(&ipv6(host6(), far6(), 44, &chain)).unwrap()
    };
    let key = fragment(1, &datagram[..16]);
    assert_eq!(key, fragment(2 << 3, &datagram[16..]));
    assert_eq!((key.protocol, key.ports, key.fragment), (17, None, true));
    let atomic = fragment(0, &datagram);
    assert_eq!((atomic.ports, atomic.fragment), (Some((1, 2)), false), "RFC 6946");
}

#[test]
fn unknown_protocols_and_short_transports_have_no_ports() {
    for (protocol, payload) in
        [(253, &b"whatever"[..]), (50, b"\0\0\0\x01esp"), (59, b""), (17, b"\0\x01"), (1, b"\x08\0\0\0")]
    {
        let key = FlowKey::parse(&ipv4(HOST4, FAR4, protocol, payload)).unwrap();
        assert_eq!((key.protocol, key.ports), (protocol, None));
        let key = FlowKey::parse(&ipv6(host6(), far6(), protocol, payload)).unwrap();
        assert_eq!((key.protocol, key.ports), (protocol, None));
    }
}

#[test]
fn malformed_headers_are_told_apart() {
    assert_eq!(FlowKey::parse(&[]), Err(Malformed::Truncated));
    assert_eq!(FlowKey::parse(&[0x50; 60]), Err(Malformed::Version));
    let good = ipv4(HOST4, FAR4, 17, b"12345678");
    let broken = |at: usize, octet: u8| {
        let mut packet = good.clone();
        packet[at] = octet;
        FlowKey::parse(&packet)
    };
    assert_eq!(broken(0, 0x44), Err(Malformed::HeaderLength));
    assert_eq!(broken(0, 0x4f), Err(Malformed::HeaderLength));
    assert_eq!(broken(3, 19), Err(Malformed::Length));
    assert_eq!(broken(3, 29), Err(Malformed::Length));
    assert_eq!(FlowKey::parse(&good[..19]), Err(Malformed::Truncated));
    let good = ipv6(host6(), far6(), 0, &[17, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(FlowKey::parse(&good), Err(Malformed::ExtensionChain), "a header of 16 bytes in 8");
    assert_eq!(FlowKey::parse(&good[..39]), Err(Malformed::Truncated));
    assert_eq!(FlowKey::parse(&good[..47]), Err(Malformed::Length));
}

#[test]
fn endless_chains_end() {
    let chain: Vec<u8> = [60, 0, 1, 4, 0, 0, 0, 0].repeat(100);
    assert_eq!(FlowKey::parse(&ipv6(host6(), far6(), 60, &chain)), Err(Malformed::ExtensionChain));
}

#[test]
fn bytes_behind_the_packet_do_not_count() {
    let mut packet = ipv4(HOST4, FAR4, 17, b"12345678");
    packet.extend([0xee; 9]);
    assert_eq!(Ipv4View::parse(&packet).unwrap().payload(), b"12345678");
    let mut packet = ipv6(host6(), far6(), 17, b"12345678");
    packet.extend([0xee; 9]);
    assert_eq!(Ipv6View::parse(&packet).unwrap().payload(), b"12345678");
}

#[test]
fn hop_limits_count_down_to_one() {
    for mut packet in [ipv4(HOST4, FAR4, 17, b"x"), ipv6(host6(), far6(), 17, b"x")] {
        let is_ipv4 = packet[0] >> 4 == 4;
        let at = if is_ipv4 { 8 } else { 7 };
        for left in (1..64).rev() {
            assert_eq!(decrement_hop_limit(&mut packet), Ok(HopLimit::Left(left)));
            assert_eq!((packet[at], hop_limit(&packet)), (left, Ok(left)));
            assert!(!is_ipv4 || checksum_is_right(&packet));
        }
        let before = packet.clone();
        assert_eq!(decrement_hop_limit(&mut packet), Ok(HopLimit::Exceeded));
        packet[at] = 0;
        assert_eq!(decrement_hop_limit(&mut packet), Ok(HopLimit::Exceeded));
        packet[at] = 1;
        assert_eq!(packet, before);
    }
    assert_eq!(decrement_hop_limit(&mut [0x45; 19]), Err(Malformed::Truncated));
    assert_eq!(decrement_hop_limit(&mut [0x60; 39]), Err(Malformed::Truncated));
}

fn syn(family: u8, flags: u8, options: &[u8]) -> Vec<u8> {
    match family {
        4 => ipv4(HOST4, FAR4, 6, &tcp(HOST4.into(), FAR4.into(), flags, options, b"data")),
        _ => ipv6(host6(), far6(), 6, &tcp(host6().into(), far6().into(), flags, options, b"data")),
    }
}

fn tcp_checksum_is_right(packet: &[u8]) -> bool {
    let (source, destination, at): (IpAddr, IpAddr, usize) = if packet[0] >> 4 == 4 {
        (HOST4.into(), FAR4.into(), 20)
    } else {
        (host6().into(), far6().into(), 40)
    };
    transport_sum(source, destination, 6, &packet[at..]) == 0
}

#[test]
fn syn_and_syn_ack_are_clamped() {
    for (family, header) in [(4, 20), (6, 40)] {
        for flags in [0x02, 0x12, 0xc2] {
            let mut packet = syn(family, flags, &[2, 4, 0x05, 0xb4, 1, 3, 3, 7]);
            assert!(clamp(&mut packet, 1320));
            let expected = 1320 - header - 20_u16;
            assert_eq!(packet[usize::from(header) + 22..][..2], expected.to_be_bytes());
            assert!(tcp_checksum_is_right(&packet));
            assert!(!clamp(&mut packet, 1320), "once is enough");
            assert!(!clamp(&mut packet, 1500), "never raised");
        }
    }
}

#[test]
fn an_mss_at_an_odd_offset_is_clamped() {
    for lead in
        [&[1_u8][..], &[1, 1], &[1, 1, 1], &[3, 3, 7], &[4, 2, 1], &[8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1]]
    {
        let mut options = lead.to_vec();
        options.extend([2, 4, 0x05, 0xb4]);
        options.resize(options.len().next_multiple_of(4), 0);
        let mut packet = syn(6, 2, &options);
        assert!(clamp(&mut packet, 1280), "{lead:?}");
        assert_eq!(packet[40 + 20 + lead.len() + 2..][..2], 1220_u16.to_be_bytes());
        assert!(tcp_checksum_is_right(&packet), "{lead:?}");
    }
}

#[test]
fn what_is_no_syn_with_an_mss_is_left_alone() {
    let mss = [2, 4, 0x05, 0xb4];
    let untouched = |mut packet: Vec<u8>, what: &str| {
        let before = packet.clone();
        assert!(!clamp(&mut packet, 1000), "{what}");
        assert_eq!(packet, before, "{what}");
    };
    untouched(syn(4, 0x10, &mss), "ACK");
    untouched(syn(4, 0x04, &mss), "RST");
    untouched(syn(4, 0x06, &mss), "SYN and RST");
    untouched(syn(6, 2, &[]), "no options");
    untouched(syn(6, 2, &[0, 0, 0, 0, 2, 4, 5, 0xb4]), "behind the end of the options");
    untouched(syn(6, 2, &[2, 3, 5, 0xb4]), "wrong length");
    untouched(syn(6, 2, &[3, 0, 2, 4, 5, 0xb4, 0, 0]), "length 0");
    untouched(syn(6, 2, &[3, 1, 2, 4, 5, 0xb4, 0, 0]), "length 1");
    untouched(syn(6, 2, &[3, 40, 2, 4, 5, 0xb4, 0, 0]), "an option beyond the header");
    untouched(syn(6, 2, &[1, 1, 2, 4]), "the value is missing");
    let mut fragment = syn(4, 2, &mss);
    fragment[6] = 0x20;
    untouched(fragment, "a fragment");
    let mut short = syn(4, 2, &mss);
    short[32] = 0xf0;
    untouched(short, "a data offset beyond the segment");
    untouched(ipv4(HOST4, FAR4, 17, &udp(1, 2, b"x")), "UDP");
    let mut packet = syn(4, 2, &mss);
    assert!(!clamp(&mut packet, 39), "an MTU below the headers");
}

#[test]
fn a_checksum_that_is_completed_later_stays() {
    let mut packet = syn(4, 2, &[2, 4, 0x05, 0xb4]);
    packet[36..38].copy_from_slice(&[0xab, 0xcd]);
    assert!(clamp_with(&mut packet, 1320, Checksum::Partial));
    assert_eq!(packet[36..38], [0xab, 0xcd]);
    assert_eq!(packet[42..44], 1280_u16.to_be_bytes());
    let _ = mss::Checksum::Complete;
}

#[test]
fn udp_over_ipv6_is_written_and_read() {
    let envelope = UdpOverIpv6 {
        source: "fe80::1".parse().unwrap(),
        destination: "ff02::1:6".parse().unwrap(),
        source_port: 6696,
        destination_port: 6696,
        hop_limit: 1,
        traffic_class: 0xc0,
    };
    let mut buffer = [0xaa; 200];
    for payload in [&b""[..], b"odd", b"even"] {
        buffer[IPV6_HEADERS_LEN..][..payload.len()].copy_from_slice(payload);
        let len = envelope.write(&mut buffer, payload.len()).unwrap();
        assert!(checksum_is_right(&buffer[..len]));
        let view = Ipv6View::parse(&buffer[..len]).unwrap();
        assert_eq!((view.hop_limit(), view.traffic_class(), view.total_len()), (1, 0xc0, len));
        let datagram = UdpView::parse_in_ipv6(&view).unwrap();
        assert_eq!((datagram.source_port(), datagram.destination_port()), (6696, 6696));
        assert_eq!(datagram.payload(), payload);
    }
    buffer[47] ^= 1;
    let view = Ipv6View::parse(&buffer).unwrap();
    assert_eq!(UdpView::parse_in_ipv6(&view).err(), Some(Malformed::Checksum));
    assert!(envelope.write(&mut buffer, 153).is_err());
}

/// Puts fragments together again, the slow and obvious way.
fn reassemble(fragments: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (number, fragment) in fragments.iter().enumerate() {
        let view = Ipv4View::parse(fragment).unwrap();
        assert!(sum16(&fragment[..view.header_len()]) == 0);
        assert_eq!(view.total_len(), fragment.len());
        assert_eq!(usize::from(view.fragment_offset()) * 8, payload.len());
        assert_eq!(view.more_fragments(), number + 1 < fragments.len());
        payload.extend(view.payload());
    }
    payload
}

fn fragments_of(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let mut writer = fragment(packet, mtu).unwrap()?;
    let mut pieces = Vec::new();
    let mut out = vec![0; mtu];
    while let Some(len) = writer.write_next(&mut out) {
        pieces.push(out[..len].to_vec());
    }
    Some(pieces)
}

#[test]
fn packets_that_forbid_it_are_not_fragmented() {
    let mut packet = ipv4(HOST4, FAR4, 17, &[1; 2000]);
    assert!(fragments_of(&packet, 27).is_none(), "no room for 8 bytes");
    assert_eq!(fragments_of(&packet, 1500).unwrap().len(), 2);
    packet[6] = 0x40;
    assert!(fragments_of(&packet, 1500).is_none(), "DF");
}

#[test]
fn only_copied_options_stand_in_later_fragments() {
    let mut packet = ipv4(HOST4, FAR4, 17, &[]);
    packet[0] = 0x48;
    // Record route (not copied), router alert (copied), end.
    packet.extend([7, 7, 4, 9, 9, 9, 9, 0x94, 4, 0, 0, 0]);
    packet.extend([5; 100]);
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    let pieces = fragments_of(&packet, 80).unwrap();
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces[0][20..32], packet[20..32]);
    assert_eq!(pieces[1][20..32], [1, 1, 1, 1, 1, 1, 1, 0x94, 4, 0, 0, 0]);
    assert_eq!(reassemble(&pieces), [5; 100]);
}

proptest! {
    #![proptest_config(support::fixed_seed())]

    #[test]
    fn fragments_fit_and_add_up(len in 0_usize..5000, mtu in 28_usize..2000) {
        let payload: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let packet = ipv4(HOST4, FAR4, 17, &payload);
        let pieces = fragments_of(&packet, mtu).unwrap();
        prop_assert!(pieces.iter().all(|piece| piece.len() <= mtu));
        prop_assert_eq!(reassemble(&pieces), payload);
    }

    /// A fragment that is fragmented again keeps its place.
    #[test]
    fn fragments_of_fragments_add_up(len in 100_usize..3000, first in 200_usize..900, second in 60_usize..200) {
        let payload: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let packet = ipv4(HOST4, FAR4, 17, &payload);
        let pieces: Vec<_> = fragments_of(&packet, first)
            .unwrap()
            .iter()
            .flat_map(|piece| fragments_of(piece, second).unwrap())
            .collect();
        prop_assert_eq!(reassemble(&pieces), payload);
    }

    #[test]
    fn checksums_agree_with_the_slow_way(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(checksum::of(&bytes), sum16(&bytes));
        let (source, destination) = (sid(1, 1).into(), sid(2, 2).into());
        prop_assert_eq!(checksum::transport(source, destination, 17, &bytes), transport_sum(source, destination, 17, &bytes));
        let (source, destination) = (HOST4.into(), FAR4.into());
        prop_assert_eq!(checksum::transport(source, destination, 6, &bytes), transport_sum(source, destination, 6, &bytes));
    }

    #[test]
    fn incremental_checksums_verify(mut bytes in proptest::collection::vec(any::<u8>(), 4..64), new in any::<u16>()) {
        bytes.truncate(bytes.len() & !1);
        bytes[2..4].fill(0);
        let sum = checksum::of(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        let old = u16::from_be_bytes([bytes[0], bytes[1]]);
        let updated = checksum::updated(sum, old, new);
        bytes[0..2].copy_from_slice(&new.to_be_bytes());
        bytes[2..4].copy_from_slice(&updated.to_be_bytes());
        prop_assert!(sum16(&bytes) == 0 || bytes.iter().all(|octet| *octet == 0));
    }

    #[test]
    fn a_key_is_stable_while_forwarding(mut inner in any_inner()) {
        let key = FlowKey::parse(&inner).unwrap();
        let _ = decrement_hop_limit(&mut inner).unwrap();
        prop_assert_eq!(FlowKey::parse(&inner), Ok(key));
    }
}
