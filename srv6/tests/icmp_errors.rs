//! ICMP errors: what is quoted, what is never answered, and what an error about an envelope tells the traveller.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use srv6::error::Misuse;
use srv6::ip::icmp_error::{
    self, IcmpError, MAX_LEN, NotAnswered, Unreachable, packet_too_big, parameter_problem, time_exceeded,
    unreachable,
};
use srv6::ip::icmp_quote::quoted_traveller;
use srv6::ip::{Ipv4View, Ipv6View, echo};
use srv6::{Encapsulation, FlowSummary, Form, SegmentPath};
use support::{any_inner, checksum_is_right, echo_request, icmpv6, ipv4, ipv6, sid, sum16, udp};

const ROUTER4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
const HOST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR4: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

fn router6() -> Ipv6Addr {
    sid(1, 1)
}

fn host6() -> Ipv6Addr {
    "2001:db8::1".parse().unwrap()
}

fn far6() -> Ipv6Addr {
    "2001:db8:9::1".parse().unwrap()
}

fn write(error: IcmpError, source: impl Into<IpAddr>, invoking: &[u8]) -> Result<Vec<u8>, NotAnswered> {
    let mut out = [0xaa; MAX_LEN];
    let len = icmp_error::write(error, source.into(), invoking, &mut out)?;
    Ok(out[..len].to_vec())
}

#[test]
fn icmpv4_types_and_fields() {
    let invoking = ipv4(HOST4, FAR4, 17, &udp(5, 6, &[7; 40]));
    let cases: [(IcmpError, [u8; 2], [u8; 4]); 7] = [
        (IcmpError::TimeExceeded, [11, 0], [0; 4]),
        (IcmpError::PacketTooBig { mtu: 1400 }, [3, 4], [0, 0, 5, 0x78]),
        (IcmpError::ParameterProblem { code: 0, pointer: 9 }, [12, 0], [9, 0, 0, 0]),
        (IcmpError::Unreachable(Unreachable::NoRoute), [3, 0], [0; 4]),
        (IcmpError::Unreachable(Unreachable::Address), [3, 1], [0; 4]),
        (IcmpError::Unreachable(Unreachable::Port), [3, 3], [0; 4]),
        (IcmpError::Unreachable(Unreachable::Prohibited), [3, 13], [0; 4]),
    ];
    for (error, kind, rest) in cases {
        let packet = write(error, ROUTER4, &invoking).unwrap();
        let view = Ipv4View::parse(&packet).unwrap();
        assert_eq!((view.source(), view.destination(), view.protocol()), (ROUTER4, HOST4, 1));
        assert_eq!((view.total_len(), view.ttl(), view.dont_fragment()), (packet.len(), 64, true));
        assert!(checksum_is_right(&packet));
        assert_eq!(sum16(view.payload()), 0, "{error:?}");
        assert_eq!((&view.payload()[..2], &view.payload()[4..8]), (&kind[..], &rest[..]), "{error:?}");
        assert_eq!(view.payload()[8..], invoking, "{error:?}");
    }
}

#[test]
fn icmpv6_types_and_fields() {
    let invoking = ipv6(host6(), far6(), 17, &udp(5, 6, &[7; 40]));
    let cases: [(IcmpError, [u8; 2], u32); 8] = [
        (IcmpError::Unreachable(Unreachable::NoRoute), [1, 0], 0),
        (IcmpError::Unreachable(Unreachable::Prohibited), [1, 1], 0),
        (IcmpError::Unreachable(Unreachable::Address), [1, 3], 0),
        (IcmpError::Unreachable(Unreachable::Port), [1, 4], 0),
        (IcmpError::PacketTooBig { mtu: 1400 }, [2, 0], 1400),
        (IcmpError::PacketTooBig { mtu: 1100 }, [2, 0], 1280),
        (IcmpError::TimeExceeded, [3, 0], 0),
        (IcmpError::ParameterProblem { code: 4, pointer: 104 }, [4, 4], 104),
    ];
    for (error, kind, rest) in cases {
        let packet = write(error, router6(), &invoking).unwrap();
        let view = Ipv6View::parse(&packet).unwrap();
        assert_eq!((view.source(), view.destination(), view.next_header()), (router6(), host6(), 58));
        assert_eq!((view.total_len(), view.hop_limit()), (packet.len(), 64));
        assert!(checksum_is_right(&packet), "{error:?}");
        assert_eq!(view.payload()[..2], kind, "{error:?}");
        assert_eq!(view.payload()[4..8], rest.to_be_bytes(), "{error:?}");
        assert_eq!(view.payload()[8..], invoking, "{error:?}");
    }
}

#[test]
fn quotes_end_at_576_and_1280_bytes() {
    for len in [0, 500, 519, 520, 521, 1191, 1192, 1193, 1500, 9000, 60_000] {
        let long = udp(1, 2, &vec![3; len]);
        let packet = write(IcmpError::TimeExceeded, ROUTER4, &ipv4(HOST4, FAR4, 17, &long)).unwrap();
        assert_eq!(packet.len(), (20 + 8 + 20 + 8 + len).min(576));
        let packet = write(IcmpError::TimeExceeded, router6(), &ipv6(host6(), far6(), 17, &long)).unwrap();
        assert_eq!(packet.len(), (40 + 8 + 40 + 8 + len).min(1280));
        assert!(checksum_is_right(&packet), "odd lengths too");
    }
}

#[test]
fn errors_are_never_answered() {
    for kind in [3, 4, 5, 11, 12] {
        let error = ipv4(HOST4, FAR4, 1, &[kind, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(write(IcmpError::TimeExceeded, ROUTER4, &error), Err(NotAnswered::IcmpError));
    }
    let ping = ipv4(HOST4, FAR4, 1, &[8, 0, 0, 0, 0, 0, 0, 0]);
    assert!(write(IcmpError::TimeExceeded, ROUTER4, &ping).is_ok());
    let untold = ipv4(HOST4, FAR4, 1, &[]);
    assert_eq!(write(IcmpError::TimeExceeded, ROUTER4, &untold), Err(NotAnswered::IcmpError));

    for kind in [1, 2, 3, 4, 100, 127, 137] {
        let error = ipv6(host6(), far6(), 58, &icmpv6(host6(), far6(), kind, 0, &[0; 4]));
        assert_eq!(write(IcmpError::TimeExceeded, router6(), &error), Err(NotAnswered::IcmpError), "{kind}");
        let mut hidden = vec![58, 0, 1, 4, 0, 0, 0, 0];
        hidden.extend(&error[40..]);
        let hidden = ipv6(host6(), far6(), 60, &hidden);
        assert_eq!(write(IcmpError::TimeExceeded, router6(), &hidden), Err(NotAnswered::IcmpError), "{kind}");
    }
    assert!(write(IcmpError::TimeExceeded, router6(), &echo_request(host6(), far6())).is_ok());
}

#[test]
fn many_and_nobody_are_never_answered() {
    let datagram = udp(1, 2, b"x");
    for destination in [Ipv4Addr::new(224, 0, 0, 1), Ipv4Addr::BROADCAST] {
        let packet = ipv4(HOST4, destination, 17, &datagram);
        assert_eq!(write(IcmpError::TimeExceeded, ROUTER4, &packet), Err(NotAnswered::Multicast));
    }
    for source in [[0, 0, 0, 0], [0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], [240, 0, 0, 1], [255; 4]] {
        let packet = ipv4(source.into(), FAR4, 17, &datagram);
        assert_eq!(write(IcmpError::TimeExceeded, ROUTER4, &packet), Err(NotAnswered::Source), "{source:?}");
    }
    let group = ipv6(host6(), "ff02::1:6".parse().unwrap(), 17, &datagram);
    assert_eq!(write(IcmpError::TimeExceeded, router6(), &group), Err(NotAnswered::Multicast));
    let port = IcmpError::Unreachable(Unreachable::Port);
    assert_eq!(write(port, router6(), &group), Err(NotAnswered::Multicast));
    assert!(write(IcmpError::PacketTooBig { mtu: 1280 }, router6(), &group).is_ok(), "exception 1");
    let option = IcmpError::ParameterProblem { code: 2, pointer: 42 };
    assert!(write(option, router6(), &group).is_ok(), "exception 2");
    for source in ["::", "ff02::1", "::1"] {
        let packet = ipv6(source.parse().unwrap(), far6(), 17, &datagram);
        assert_eq!(write(IcmpError::TimeExceeded, router6(), &packet), Err(NotAnswered::Source), "{source}");
    }
}

#[test]
fn later_fragments_are_not_answered() {
    let mut first = ipv4(HOST4, FAR4, 17, &udp(1, 2, b"x"));
    first[6] = 0x20;
    assert!(write(IcmpError::TimeExceeded, ROUTER4, &first).is_ok(), "the first fragment is");
    let mut later = first.clone();
    later[7] = 1;
    assert_eq!(write(IcmpError::TimeExceeded, ROUTER4, &later), Err(NotAnswered::Fragment));

    // An ICMPv6 message cut in fragments may be an error.
    let fragment = [58, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8];
    let later = ipv6(host6(), far6(), 44, &fragment);
    assert_eq!(write(IcmpError::PacketTooBig { mtu: 1280 }, router6(), &later), Err(NotAnswered::IcmpError));
}

#[test]
fn families_and_buffers_are_checked() {
    let packet4 = ipv4(HOST4, FAR4, 17, &udp(1, 2, b"x"));
    let packet6 = ipv6(host6(), far6(), 17, &udp(1, 2, b"x"));
    let family = Err(NotAnswered::Misuse(Misuse::Family));
    assert_eq!(write(IcmpError::TimeExceeded, router6(), &packet4), family);
    assert_eq!(write(IcmpError::TimeExceeded, ROUTER4, &packet6), family);
    let mut short = [0; 60];
    let too_short = Err(NotAnswered::Misuse(Misuse::BufferTooShort));
    assert_eq!(time_exceeded(router6().into(), &packet6, &mut short), too_short);
    assert_eq!(unreachable(Unreachable::Port, ROUTER4.into(), &packet4, &mut short[..27]), too_short);
    let mut out = [0; MAX_LEN];
    assert!(packet_too_big(1400, ROUTER4.into(), &packet4, &mut out).is_ok());
    assert!(parameter_problem(4, 40, router6().into(), &packet6, &mut out).is_ok());
}

fn envelope(inner: &[u8]) -> (Vec<u8>, usize) {
    let path = SegmentPath::new(&[sid(2, 0xe), sid(3, 0xe), sid(2, 0xe), sid(4, 0x46)]).unwrap();
    let encapsulation = Encapsulation::new(sid(1, 1), &path, Form::Reduced).unwrap();
    let mut packet = vec![0; encapsulation.header_len()];
    encapsulation.write(&mut packet, &FlowSummary::parse(inner).unwrap(), inner.len()).unwrap();
    packet.extend(inner);
    (packet, encapsulation.header_len())
}

#[test]
fn an_error_on_the_journey_becomes_one_for_the_traveller() {
    let inner = ipv6(host6(), far6(), 17, &udp(5, 6, &[7; 1300]));
    let (packet, overhead) = envelope(&inner);
    let cases = [
        (IcmpError::PacketTooBig { mtu: 1400 }, IcmpError::PacketTooBig { mtu: 1400 - overhead as u32 }),
        (IcmpError::TimeExceeded, IcmpError::Unreachable(Unreachable::Address)),
        (IcmpError::Unreachable(Unreachable::NoRoute), IcmpError::Unreachable(Unreachable::Address)),
        (IcmpError::Unreachable(Unreachable::Prohibited), IcmpError::Unreachable(Unreachable::Prohibited)),
        (IcmpError::ParameterProblem { code: 0, pointer: 43 }, IcmpError::Unreachable(Unreachable::Address)),
    ];
    for (error, told) in cases {
        let report = write(error, sid(3, 1), &packet).unwrap();
        let traveller = quoted_traveller(&report).unwrap();
        assert_eq!((traveller.error, traveller.inner_error), (error, told));
        assert_eq!((traveller.reporter, traveller.envelope_source), (sid(3, 1), sid(1, 1)));
        assert_eq!(traveller.last_segment, sid(4, 0x46), "not the stop that it was on its way to");
        assert_eq!(traveller.envelope_len, overhead);
        assert_eq!(traveller.inner, &inner[..traveller.inner.len()]);
        // The quote is cut, and still good enough to tell the traveller.
        let told = write(traveller.inner_error, router6(), traveller.inner).unwrap();
        assert_eq!(Ipv6View::parse(&told).unwrap().destination(), host6());
        assert!(checksum_is_right(&told));
    }
}

#[test]
fn an_ipv4_traveller_is_told_in_icmpv4() {
    let inner = ipv4(HOST4, FAR4, 17, &udp(5, 6, &[7; 1300]));
    let (packet, overhead) = envelope(&inner);
    let report = write(IcmpError::PacketTooBig { mtu: 1300 }, sid(3, 1), &packet).unwrap();
    let traveller = quoted_traveller(&report).unwrap();
    let told = write(traveller.inner_error, ROUTER4, traveller.inner).unwrap();
    assert_eq!(told[20..22], [3, 4]);
    assert_eq!(told[26..28], (1300 - overhead as u16).to_be_bytes());
    assert_eq!(told[16..20], HOST4.octets());
}

#[test]
fn other_reports_hold_no_traveller() {
    let inner = ipv6(host6(), far6(), 17, &udp(5, 6, b"x"));
    let (packet, overhead) = envelope(&inner);
    let report = write(IcmpError::TimeExceeded, sid(3, 1), &packet).unwrap();
    assert!(quoted_traveller(&report).is_some());
    let mut forged = report;
    forged[50] ^= 1;
    assert!(quoted_traveller(&forged).is_none(), "wrong checksum");
    let plain = write(IcmpError::TimeExceeded, sid(3, 1), &inner).unwrap();
    assert!(quoted_traveller(&plain).is_none(), "no envelope");
    assert!(quoted_traveller(&echo_request(host6(), sid(1, 1))).is_none(), "no error");
    for kept in 0..overhead + 40 {
        let cut = write(IcmpError::TimeExceeded, sid(3, 1), &packet[..kept]);
        let found = cut.ok().is_some_and(|report| quoted_traveller(&report).is_some());
        assert!(!found, "{kept} bytes quoted: the inner header is not whole");
    }
    for len in 0..8 {
        let short = ipv6(host6(), sid(1, 1), 58, &icmpv6(host6(), sid(1, 1), 3, 0, &vec![0; len]));
        assert!(quoted_traveller(&short).is_none());
    }
}

#[test]
fn a_ping_to_a_sid_is_answered() {
    let request = echo_request(host6(), sid(2, 0xe));
    let mut out = [0xaa; 200];
    let len = echo::reply(&request, &mut out).unwrap();
    let reply = &out[..len];
    let view = Ipv6View::parse(reply).unwrap();
    assert_eq!((view.source(), view.destination()), (sid(2, 0xe), host6()));
    assert!(checksum_is_right(reply));
    assert_eq!(reply[40], 129);
    assert_eq!(reply[44..], request[44..], "identifier, number and data return");

    let mut list = support::srh(58, 0, &[sid(2, 0xe)], &[]);
    list.extend(&request[40..]);
    let steered = ipv6(host6(), sid(2, 0xe), 43, &list);
    assert_eq!(echo::reply(&steered, &mut out), Some(len), "without the way it came by");

    assert_eq!(echo::reply(&request, &mut out[..len - 1]), None);
    let reply = out[..len].to_vec();
    assert_eq!(echo::reply(&reply, &mut out), None, "a reply is not answered");
    let mut wrong = request;
    wrong[42] ^= 1;
    assert_eq!(echo::reply(&wrong, &mut out), None, "wrong checksum");
}

proptest! {
    #![proptest_config(support::fixed_seed())]

    /// Whatever the inner packet: an error about its envelope names it, and it can be told.
    #[test]
    fn travellers_are_found(inner in any_inner(), mtu in 1280_u32..9000) {
        let (packet, overhead) = envelope(&inner);
        let report = write(IcmpError::PacketTooBig { mtu }, sid(3, 1), &packet).unwrap();
        prop_assert!(checksum_is_right(&report));
        let traveller = quoted_traveller(&report).unwrap();
        prop_assert_eq!(traveller.inner, &inner[..]);
        prop_assert_eq!(traveller.inner_error, IcmpError::PacketTooBig { mtu: mtu - overhead as u32 });
    }
}
