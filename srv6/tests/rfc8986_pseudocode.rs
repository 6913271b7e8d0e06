//! RFC 8986 line by line: each test names the lines that it proves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use srv6::error::{Error, Unsupported, Violation};
use srv6::ip::icmp_error::{IcmpError, Unreachable};
use srv6::{Behaviour, Flavours, Outcome, process};
use support::{END, echo_request, ipv4, ipv6, sid, srh, udp};

const SRH_AT: usize = 40;
const DT: [Behaviour; 4] = [Behaviour::EndDt4, Behaviour::EndDt6, Behaviour::EndDt46, Behaviour::Internet];

fn inner6() -> Vec<u8> {
    ipv6("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap(), 17, &udp(1, 2, b"six"))
}

fn inner4() -> Vec<u8> {
    ipv4([192, 0, 2, 1].into(), [198, 51, 100, 1].into(), 17, &udp(1, 2, b"four"))
}

/// A packet at node 1 with the path `[1, 2, 3]` written in full, whose Segments Left is `segments_left`.
fn on_the_way(segments_left: u8) -> Vec<u8> {
    let mut chain = srh(41, segments_left, &[sid(3, 0x46), sid(2, END), sid(1, END)], &[]);
    chain.extend(inner6());
    ipv6(sid(9, 1), sid(1, END), 43, &chain)
}

/// An envelope without SRH.
fn enveloped(next_header: u8, inner: &[u8]) -> Vec<u8> {
    ipv6(sid(9, 1), sid(1, 0x46), next_header, inner)
}

#[test]
fn end_s12_to_s15_moves_to_the_next_segment() {
    let mut packet = on_the_way(2);
    let before = packet.clone();
    let outcome = process(&mut packet, Behaviour::END).unwrap();
    let whole = 0..before.len();
    assert_eq!(outcome, Outcome::Forward { packet: whole, destination: sid(2, END), adjacency: None });
    let mut expected = before;
    expected[7] = 63; // S12
    expected[SRH_AT + 3] = 1; // S13
    expected[24..40].copy_from_slice(&sid(2, END).octets()); // S14
    assert_eq!(packet, expected, "and nothing else changed");
}

#[test]
fn end_s02_to_s04_stops_at_the_last_segment_whatever_the_list_says() {
    let request = echo_request(sid(9, 1), sid(1, END));
    let mut chain = srh(58, 0, &[sid(1, END)], &[]);
    chain[4] = 200; // Last Entry beyond the header: must not be looked at.
    chain.extend(&request[40..]);
    let mut packet = ipv6(sid(9, 1), sid(1, END), 43, &chain);
    packet[7] = 1; // S05 is not reached either.
    assert_eq!(process(&mut packet, Behaviour::END), Ok(Outcome::UpperLayer { protocol: 58, offset: 64 }));
}

#[test]
fn end_s05_to_s07_counts_the_hop() {
    for hop_limit in [0, 1] {
        let mut packet = on_the_way(1);
        packet[7] = hop_limit;
        let before = packet.clone();
        let error = process(&mut packet, Behaviour::END).unwrap_err();
        assert_eq!(error, Error::Violation(Violation::HopLimitExceeded));
        assert_eq!(error.icmp(), Some(IcmpError::TimeExceeded));
        assert_eq!(packet, before, "an error changes nothing");
    }
}

#[test]
fn end_s08_to_s11_checks_the_list() {
    let pointer = 43;
    let expect_refused = |change: &dyn Fn(&mut Vec<u8>), what: &str| {
        let mut packet = on_the_way(1);
        change(&mut packet);
        let before = packet.clone();
        let error = process(&mut packet, Behaviour::END).unwrap_err();
        assert_eq!(error, Error::Violation(Violation::SegmentsLeft { pointer }), "{what}");
        assert_eq!(error.icmp(), Some(IcmpError::ParameterProblem { code: 0, pointer }), "{what}");
        assert_eq!(packet, before, "{what}: an error changes nothing");
    };
    expect_refused(&|packet| packet[SRH_AT + 4] = 3, "Last Entry > max_LE");
    expect_refused(&|packet| packet[SRH_AT + 4] = 255, "Last Entry far beyond");
    expect_refused(&|packet| packet[SRH_AT + 3] = 4, "Segments Left > Last Entry + 1");
    expect_refused(&|packet| packet[SRH_AT + 3] = 255, "Segments Left far beyond");
}

#[test]
fn end_accepts_a_reduced_list() {
    // Segments Left = Last Entry + 1 stands for the segment that is the destination only.
    let mut packet = on_the_way(3);
    let outcome = process(&mut packet, Behaviour::END).unwrap();
    assert!(matches!(outcome, Outcome::Forward { destination, .. } if destination == sid(1, END)));
}

#[test]
fn the_pointer_counts_headers_in_front_of_the_srh() {
    let mut chain = vec![43, 0, 1, 4, 0, 0, 0, 0]; // Destination options: PadN.
    chain.extend(srh(41, 9, &[sid(3, 0x46)], &[]));
    chain.extend(inner6());
    let mut packet = ipv6(sid(9, 1), sid(1, END), 60, &chain);
    let error = process(&mut packet, Behaviour::END).unwrap_err();
    assert_eq!(error.icmp(), Some(IcmpError::ParameterProblem { code: 0, pointer: 40 + 8 + 3 }));
}

#[test]
fn end_x_goes_out_by_its_adjacency() {
    let mut packet = on_the_way(2);
    let outcome = process(&mut packet, Behaviour::EndX(Flavours::NONE, 7)).unwrap();
    let Outcome::Forward { destination, adjacency, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((destination, adjacency), (sid(2, END), Some(7)));
    assert_eq!(packet[7], 63);
}

#[test]
fn end_4_1_1_refuses_upper_layers() {
    for (next_header, upper) in [(17, udp(1, 53, b"dns")), (6, vec![0; 20]), (41, inner6()), (4, inner4())] {
        let mut packet = ipv6(sid(9, 1), sid(1, END), next_header, &upper);
        let error = process(&mut packet, Behaviour::END).unwrap_err();
        assert_eq!(error, Error::Violation(Violation::UpperLayer { pointer: 40 }), "{next_header}");
        assert_eq!(error.icmp(), Some(IcmpError::ParameterProblem { code: 4, pointer: 40 }));
    }
}

#[test]
fn end_4_1_1_points_behind_the_srh() {
    let mut packet = on_the_way(0);
    let error = process(&mut packet, Behaviour::END).unwrap_err();
    let pointer = 40 + 8 + 3 * 16;
    assert_eq!(error.icmp(), Some(IcmpError::ParameterProblem { code: 4, pointer }));
}

#[test]
fn ping_and_traceroute_reach_a_sid() {
    for behaviour in DT.into_iter().chain([Behaviour::END]) {
        let mut ping = echo_request(sid(9, 1), sid(1, END));
        assert_eq!(process(&mut ping, behaviour), Ok(Outcome::UpperLayer { protocol: 58, offset: 40 }));
        let mut probe = ipv6(sid(9, 1), sid(1, END), 17, &udp(40_000, 33_434, b""));
        let error = process(&mut probe, behaviour).unwrap_err();
        assert_eq!(error.icmp(), Some(IcmpError::Unreachable(Unreachable::Port)), "{behaviour:?}");
    }
}

#[test]
fn dt_s02_to_s04_refuses_segments_left() {
    for behaviour in DT {
        let mut packet = on_the_way(1);
        let error = process(&mut packet, behaviour).unwrap_err();
        assert_eq!(error.icmp(), Some(IcmpError::ParameterProblem { code: 0, pointer: 43 }), "{behaviour:?}");
    }
}

#[test]
fn dt_removes_the_envelope_of_its_own_family_only() {
    let cases = [
        (Behaviour::EndDt4, true, false),
        (Behaviour::EndDt6, false, true),
        (Behaviour::EndDt46, true, true),
        (Behaviour::Internet, true, true),
    ];
    for (behaviour, takes4, takes6) in cases {
        for (next_header, inner, takes) in [(4, inner4(), takes4), (41, inner6(), takes6)] {
            let mut packet = enveloped(next_header, &inner);
            let outcome = process(&mut packet, behaviour);
            if takes {
                let place = 40..40 + inner.len();
                assert_eq!(outcome, Ok(Outcome::Decapsulated { inner: place.clone() }), "{behaviour:?}");
                assert_eq!(packet[place], inner, "the inner packet is untouched, its hop limit too");
            } else {
                let refused = Error::Violation(Violation::UpperLayer { pointer: 40 });
                assert_eq!(outcome, Err(refused), "{behaviour:?} with {next_header}");
            }
        }
    }
}

#[test]
fn dt_takes_an_exhausted_hop_limit() {
    let mut packet = enveloped(41, &inner6());
    packet[7] = 0;
    assert!(process(&mut packet, Behaviour::EndDt6).is_ok(), "the journey is over, nothing is forwarded");
}

#[test]
fn dt_removes_the_srh_with_the_envelope() {
    let mut chain = srh(41, 0, &[sid(1, 0x46), sid(2, END)], &[4, 6, 0, 0, 0, 0, 0, 0]);
    let inner = inner6();
    chain.extend(&inner);
    let mut packet = ipv6(sid(9, 1), sid(1, 0x46), 43, &chain);
    let at = 40 + 8 + 32 + 8;
    let expected = Outcome::Decapsulated { inner: at..at + inner.len() };
    assert_eq!(process(&mut packet, Behaviour::EndDt46), Ok(expected));
}

#[test]
fn psp_4_16_1_removes_the_srh_before_the_last_segment() {
    let psp = Flavours { psp: true, ..Flavours::NONE };
    let mut packet = on_the_way(1);
    let outcome = process(&mut packet, Behaviour::End(psp)).unwrap();
    let Outcome::Forward { packet: place, destination, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(destination, sid(3, 0x46));
    let mut expected = ipv6(sid(9, 1), sid(3, 0x46), 41, &inner6());
    expected[7] = 63;
    assert_eq!(packet[place], expected);
}

#[test]
fn psp_keeps_headers_in_front_of_the_srh() {
    let psp = Flavours { psp: true, ..Flavours::NONE };
    let options = [43, 0, 1, 4, 0, 0, 0, 0];
    let mut chain = options.to_vec();
    chain.extend(srh(4, 1, &[sid(3, 0x46), sid(1, END)], &[]));
    chain.extend(inner4());
    let mut packet = ipv6(sid(9, 1), sid(1, END), 60, &chain);
    let outcome = process(&mut packet, Behaviour::End(psp)).unwrap();
    let Outcome::Forward { packet: place, .. } = outcome else { panic!("{outcome:?}") };
    let mut chain = vec![4, 0, 1, 4, 0, 0, 0, 0];
    chain.extend(inner4());
    let mut expected = ipv6(sid(9, 1), sid(3, 0x46), 60, &chain);
    expected[7] = 63;
    assert_eq!(packet[place], expected);
}

#[test]
fn psp_4_16_1_keeps_the_srh_earlier() {
    let psp = Flavours { psp: true, ..Flavours::NONE };
    let (mut plain, mut flavoured) = (on_the_way(2), on_the_way(2));
    assert_eq!(process(&mut plain, Behaviour::END), process(&mut flavoured, Behaviour::End(psp)));
    assert_eq!(plain, flavoured);
}

#[test]
fn usp_4_16_2_goes_on_behind_the_srh() {
    let usp = Flavours { usp: true, ..Flavours::NONE };
    let request = echo_request(sid(9, 1), sid(1, END));
    let mut chain = srh(58, 0, &[sid(1, END)], &[]);
    chain.extend(&request[40..]);
    let mut packet = ipv6(sid(9, 1), sid(1, END), 43, &chain);
    let expected = Outcome::UpperLayer { protocol: 58, offset: 64 };
    assert_eq!(process(&mut packet, Behaviour::End(usp)), Ok(expected));
}

#[test]
fn usd_4_16_3_removes_the_envelope_at_the_last_segment() {
    let usd = Flavours { usd: true, ..Flavours::NONE };
    let inner = inner6();
    for mut packet in [on_the_way(0), enveloped(41, &inner), enveloped(4, &inner4())] {
        let outcome = process(&mut packet, Behaviour::End(usd)).unwrap();
        let Outcome::Decapsulated { inner: place } = outcome else { panic!("{outcome:?}") };
        assert!([inner.clone(), inner4()].contains(&packet[place].to_vec()));
    }
    let mut packet = on_the_way(2);
    let outcome = process(&mut packet, Behaviour::End(usd)).unwrap();
    assert!(matches!(outcome, Outcome::Forward { .. }), "not before the last segment");
}

#[test]
fn other_routing_types_follow_rfc_8200_4_4() {
    for kind in [0, 2, 3, 253] {
        let mut chain = srh(41, 1, &[sid(3, END)], &[]);
        chain[2] = kind;
        chain.extend(inner6());
        let mut packet = ipv6(sid(9, 1), sid(1, 6), 43, &chain);
        let error = process(&mut packet, Behaviour::EndDt6).unwrap_err();
        assert_eq!(error, Error::Unsupported(Unsupported::RoutingType { pointer: 42 }));
        assert_eq!(error.icmp(), Some(IcmpError::ParameterProblem { code: 0, pointer: 42 }));
        packet[SRH_AT + 3] = 0;
        assert!(process(&mut packet, Behaviour::EndDt6).is_ok(), "no segments left: ignored");
    }
}

#[test]
fn the_next_segment_must_be_unicast() {
    for next in ["ff02::1", "::", "::1", "::ffff:10.0.0.1"] {
        let mut chain = srh(41, 1, &[next.parse().unwrap()], &[]);
        chain.extend(inner6());
        let mut packet = ipv6(sid(9, 1), sid(1, END), 43, &chain);
        let error = process(&mut packet, Behaviour::END).unwrap_err();
        assert_eq!((error, error.icmp()), (Error::Violation(Violation::NextSegment), None), "{next}");
    }
}

#[test]
fn options_that_must_be_understood_follow_rfc_8200_4_2() {
    let with_option = |kind: u8| {
        let mut chain = vec![43, 0, 0, 0, 0, kind, 1, 0];
        chain.extend(srh(41, 1, &[sid(3, 0x46), sid(1, END)], &[]));
        chain.extend(inner6());
        ipv6(sid(9, 1), sid(1, END), 60, &chain)
    };
    assert!(process(&mut with_option(0x1e), Behaviour::END).is_ok(), "00: skip");
    let icmp = |kind| process(&mut with_option(kind), Behaviour::END).unwrap_err().icmp();
    assert_eq!(icmp(0x5e), None, "01: discard");
    let answer = Some(IcmpError::ParameterProblem { code: 2, pointer: 45 });
    assert_eq!(icmp(0x9e), answer, "10: discard and answer");
    assert_eq!(icmp(0xde), answer, "11: discard and answer");
}

#[test]
fn ecn_is_combined_when_the_envelope_goes() {
    for (outer, inner, expected) in
        [(0b11, 0b01, Some(0b11)), (0b11, 0b10, Some(0b11)), (0b01, 0b10, Some(0b01)), (0b11, 0b00, None)]
    {
        for (next_header, mut packet) in [(4, inner4()), (41, inner6())] {
            match next_header {
                4 => packet[1] = inner,
                _ => packet[1] |= inner << 4,
            }
            if next_header == 4 {
                packet[10..12].fill(0);
                let sum = support::sum16(&packet[..20]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            let mut envelope = enveloped(next_header, &packet);
            envelope[1] |= outer << 4;
            match (process(&mut envelope, Behaviour::EndDt46), expected) {
                (Ok(Outcome::Decapsulated { inner: place }), Some(expected)) => {
                    let got = &envelope[place];
                    let codepoint = if next_header == 4 { got[1] & 3 } else { (got[1] >> 4) & 3 };
                    assert_eq!(codepoint, expected, "{outer:02b} over {inner:02b}");
                    assert!(next_header != 4 || support::sum16(&got[..20]) == 0, "header checksum");
                }
                (Err(error), None) => assert_eq!(error, Error::Violation(Violation::CongestionLost)),
                (other, _) => panic!("{outer:02b} over {inner:02b}: {other:?}"),
            }
        }
    }
}

#[test]
fn the_inner_packet_must_fit_and_is_trimmed() {
    let mut padded = inner4();
    let len = padded.len();
    padded.extend([0xee; 13]);
    let outcome = process(&mut enveloped(4, &padded), Behaviour::EndDt46).unwrap();
    assert_eq!(outcome, Outcome::Decapsulated { inner: 40..40 + len }, "trailing bytes are left behind");

    let refused = Err(Error::Violation(Violation::Inner));
    for cut in [1, 19, 20, len - 1] {
        assert_eq!(process(&mut enveloped(4, &inner4()[..cut]), Behaviour::EndDt4), refused, "cut at {cut}");
    }
    assert_eq!(process(&mut enveloped(4, &inner6()), Behaviour::EndDt46), refused, "6 where 4 is named");
    assert_eq!(process(&mut enveloped(41, &inner4()), Behaviour::EndDt46), refused, "4 where 6 is named");
    assert_eq!(process(&mut enveloped(41, &[]), Behaviour::EndDt46), refused, "nothing inside");
}

#[test]
fn envelopes_in_fragments_are_not_reassembled() {
    let mut chain = vec![41, 0, 0, 1, 0, 0, 0, 9];
    chain.extend(inner6());
    let mut packet = ipv6(sid(9, 1), sid(1, 6), 44, &chain);
    let refused = Err(Error::Unsupported(Unsupported::Fragment));
    assert_eq!(process(&mut packet, Behaviour::EndDt6), refused);
}
