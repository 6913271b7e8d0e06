//! The matrix of malformed and unusual TLVs. Each case says what must come out of it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod support;

use std::net::Ipv6Addr;

use babel::{
    Config, InterfaceConfig, InterfaceId, Malformed, Misuse, PacketError, Prefix, Router, RouterId,
    Violation,
    wire::{packet::Packet, parser::Parser, tlv::Tlv, update::Update},
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use support::captures::hex;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 7);
const ROUTER_ID: &str = "060a 0000 0102030405060708";

/// Wraps a body into a packet and parses it: the TLVs that remain, and the number of malformed ones.
fn parse(body: &str) -> (Vec<Tlv>, usize) {
    let payload = packet(body);
    let packet = Packet::parse(&payload).unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = Parser::new(packet.body, SOURCE).partition(Result::is_ok);
    (good.into_iter().map(Result::unwrap).collect(), bad.len())
}

fn assert_nothing(body: &str) {
    assert_eq!(parse(body), (vec![], 0), "silently ignored: {body}");
}

fn assert_malformed(body: &str) {
    // An acknowledgment after it shows that the walk goes on.
    let (tlvs, bad) = parse(&format!("{body} 0302 1234"));
    assert_eq!((tlvs, bad), (vec![Tlv::Ack { opaque: 0x1234 }], 1), "malformed: {body}");
}

fn announced(body: &str) -> Vec<(String, String, RouterId, u16)> {
    let announcements = parse(body).0.into_iter().filter_map(|tlv| match tlv {
        Tlv::Update(Update::Announce(a)) => {
            Some((a.prefix.to_string(), a.next_hop.to_string(), a.router_id, a.metric))
        }
        _ => None,
    });
    announcements.collect()
}

#[test]
fn frames() {
    assert_nothing("");
    assert_nothing("00 00 00");
    assert_nothing("01 03 000000");
    assert_nothing("c8 03 010203");
    assert_eq!(parse("0302").1, 1);
    assert_eq!(parse("03").1, 1);
    assert_eq!(parse("0302 1234 04ff 00").0, vec![Tlv::Ack { opaque: 0x1234 }]);
}

#[test]
fn short_bodies() {
    for kind in ["02", "03", "04", "05", "06", "07", "08", "09", "0a"] {
        assert_malformed(&format!("{kind} 00"));
        assert_malformed(&format!("{kind} 01 00"));
    }
    assert_malformed("02 05 0000 0001 00");
    assert_malformed("04 05 0000 0001 00");
    assert_malformed("05 05 0300 0060 01");
    assert_malformed("06 09 0000 01020304050607");
    assert_malformed("07 09 0300 01020304050607");
    assert_malformed("08 09 0000 0000 0190 0001 ff");
    assert_malformed("08 0c 0100 2000 0190 0001 0007 0a01");
    assert_malformed("0a 0d 0120 0001 0100 01020304050607");
}

#[test]
fn values_that_are_not_allowed() {
    assert_malformed("02 06 0000 0001 0000"); // Acknowledgment Request with interval 0
    assert_malformed("05 06 0000 0060 0000"); // IHU with interval 0
    assert_malformed(&format!("{ROUTER_ID} 08 0e 0100 2000 0000 0001 0007 0a010203")); // Update with interval 0
    assert_malformed("06 0a 0000 0000000000000000");
    assert_malformed("06 0a 0000 ffffffffffffffff");
    assert_malformed("07 02 0000"); // Next Hop with AE 0
    assert_malformed("0a 0e 0000 0001 0100 0102030405060708"); // Seqno Request with AE 0
    assert_malformed("0a 12 0120 0001 0000 0102030405060708 0a010203"); // hop count 0
    assert_malformed("0a 12 0120 0001 0100 0000000000000000 0a010203");
    assert_malformed("08 0a 0000 0000 0190 0001 0007"); // finite wildcard
    assert_malformed("08 0f 0100 2100 0190 0001 ffff 0a01020300"); // /33
    assert_malformed("08 0a 0000 0800 0190 0001 ffff"); // wildcard with a length
    assert_malformed("09 03 0001 00"); // the same
    assert_malformed("08 12 0300 4001 0190 0001 ffff 0102030405060708"); // AE 3 with omitted octets
}

#[test]
fn reserved_bits_are_ignored() {
    assert_eq!(parse("02 06 ffff 0001 0064").0.len(), 1);
    assert!(matches!(parse("04 06 7fff 0001 0064").0[..], [Tlv::Hello(hello)] if !hello.unicast));
    assert!(matches!(parse("04 06 ffff 0001 0000").0[..], [Tlv::Hello(hello)] if hello.unicast));
    assert_eq!(parse("05 06 00ff 0060 0064").0.len(), 1);
    assert_eq!(announced("060a ffff 0102030405060708 08 0e 013f 2000 0190 0001 0007 0a010203").len(), 0);
    assert_eq!(announced("060a ffff 0102030405060708 08 0e 043f 2000 0190 0001 0007 0a010203").len(), 1);
    assert_eq!(parse("0a 12 0120 0001 01ff 0102030405060708 0a010203").0.len(), 1);
}

#[test]
fn unknown_mandatory_sub_tlvs_ignore_every_kind_of_tlv() {
    let with_optional = [
        "02 08 0000 0001 0064 3700",
        "03 04 0001 3700",
        "04 08 0000 0001 0064 3700",
        "05 08 0000 0060 0064 3700",
        "08 0c 0000 0000 0190 0001 ffff 3700",
        "08 10 0100 2000 0190 0001 ffff 0a010203 3700",
        "09 04 0000 3700",
        "0a 14 0120 0001 0100 0102030405060708 0a010203 3700",
    ];
    for body in with_optional {
        assert_eq!(parse(body).0.len(), 1, "{body}");
        let mandatory = body.strip_suffix("3700").unwrap();
        assert_nothing(&format!("{mandatory} b700"));
    }
    // Source prefixes have no meaning in these.
    assert_nothing("04 0a 0000 0001 0064 8002 0810");
    assert_nothing("09 06 0000 8002 0810");
}

#[test]
fn sub_tlvs_that_overrun() {
    assert_malformed("03 03 0001 37");
    assert_malformed("03 05 0001 3705 00");
    assert_malformed("04 08 0000 0001 0064 b7ff");
}

#[test]
fn parser_state_is_updated_by_ignored_tlvs() {
    // Router-Id and Next Hop with unknown mandatory sub-TLVs, and an Update that sets the default prefix.
    let body = "060c 0000 0102030405060708 b700
                07 08 0100 c0000207 b700
                08 10 0180 2000 0190 0001 0007 0a010203 b700
                08 0b 0100 2003 0190 0001 0007 09";
    let expected = ("10.1.2.9/32".to_owned(), "192.0.2.7".to_owned(), RouterId([1, 2, 3, 4, 5, 6, 7, 8]), 7);
    assert_eq!(announced(body), vec![expected]);
}

#[test]
fn default_prefixes_belong_to_one_encoding() {
    assert_malformed(&format!("{ROUTER_ID} 08 0b 0400 2003 0190 0001 0007 09"));
    // AE 1 sets its own; AE 4 has none yet.
    let one_then_four = format!(
        "{ROUTER_ID} 07 06 0100 c0000207 08 0e 0180 2000 0190 0001 0007 0a010203 08 0b 0400 2003 0190 0001 0007 09"
    );
    let (tlvs, bad) = parse(&one_then_four);
    assert_eq!((tlvs.len(), bad), (1, 1));
    let four =
        format!("{ROUTER_ID} 08 0e 0480 2000 0190 0001 0007 0a010203 08 0b 0400 2003 0190 0001 0008 09");
    let prefixes: Vec<_> = announced(&four).into_iter().map(|(prefix, ..)| prefix).collect();
    assert_eq!(prefixes, ["10.1.2.3/32", "10.1.2.9/32"]);
}

#[test]
fn unknown_encodings_are_skipped() {
    assert_nothing("05 08 0900 0060 0064 0102");
    assert_nothing("05 08 0400 0060 0064 0102"); // AE 4 never in an IHU
    assert_nothing("08 0c 0900 2000 0190 0001 0007 0a01");
    assert_nothing("09 04 0920 0a01");
    assert_nothing("0a 10 0920 0001 0100 0102030405060708 0a01");
    // A Next Hop of an unknown encoding leaves the others alone.
    let body = format!("{ROUTER_ID} 07 04 0900 0102 08 0e 0400 2000 0190 0001 0007 0a010203");
    assert_eq!(announced(&body)[0].1, "fe80::7");
    // Link-local prefixes are nothing to route to.
    assert_nothing("08 12 0300 4000 0190 0001 ffff 0102030405060708");
}

#[test]
fn next_hops() {
    let update = "08 0e 0100 2000 0190 0001 0007 0a010203";
    // AE 1 without an IPv4 next hop is ignored, its retraction is not.
    assert_nothing(&format!("{ROUTER_ID} {update}"));
    let retraction = parse("08 0e 0100 2000 0190 0001 ffff 0a010203");
    let prefix = Prefix::to("10.1.2.3/32".parse().unwrap());
    assert_eq!(retraction, (vec![Tlv::Update(Update::Retract { prefix })], 0));
    assert_eq!(announced(&format!("{ROUTER_ID} 0706 0100 c0000207 {update}"))[0].1, "192.0.2.7");
    // An IPv6 next hop counts for AE 2 and AE 4, not for AE 1.
    let by_nine =
        format!("{ROUTER_ID} 070a 0300 0000000000000009 08 0e 0400 2000 0190 0001 0007 0a010203 {update}");
    let next_hops: Vec<_> = announced(&by_nine).into_iter().map(|(_, next_hop, ..)| next_hop).collect();
    assert_eq!(next_hops, ["fe80::9"]);
}

#[test]
fn router_ids() {
    // No router-id: malformed, unless it is a retraction.
    assert_malformed("08 0e 0400 2000 0190 0001 0007 0a010203");
    // From the prefix.
    let v4 = announced("08 0e 0440 2000 0190 0001 0007 0a010203");
    assert_eq!(v4[0].2, RouterId([0, 0, 0, 0, 10, 1, 2, 3]));
    let v6 = announced("08 1a 0240 8000 0190 0001 0007 20010db8000000000102030405060709");
    assert_eq!(v6[0].2, RouterId([1, 2, 3, 4, 5, 6, 7, 9]));
    // A bad Router-Id must not leave the previous one in force.
    let (tlvs, bad) =
        parse(&format!("{ROUTER_ID} 060a 0000 ffffffffffffffff 08 0e 0400 2000 0190 0001 0007 0a010203"));
    assert_eq!((tlvs.len(), bad), (0, 2));
}

#[test]
fn host_bits_are_cleared() {
    assert_eq!(announced(&format!("{ROUTER_ID} 08 0b 0400 0700 0190 0001 0007 ff"))[0].0, "254.0.0.0/7");
}

fn router() -> (Router, std::time::Instant) {
    #[expect(clippy::disallowed_methods, reason = "virtual time needs some origin")]
    let now = std::time::Instant::now();
    let mut config = Config::new(RouterId([9; 8]));
    config.limits.routes_per_neighbour = 100;
    config.limits.neighbours_per_interface = 4;
    let mut router = Router::new(config, ChaCha20Rng::seed_from_u64(1), now).unwrap();
    let local = "fe80::1".parse().unwrap();
    router.add_interface(InterfaceId(1), InterfaceConfig::new(local), now);
    (router, now)
}

fn packet(body: &str) -> Vec<u8> {
    support::captures::packet(&hex(body))
}

#[test]
fn refusals_of_whole_packets() {
    let (mut router, now) = router();
    let ack = packet("0302 1234");
    let mut send = |interface, source: &str, payload: &[u8]| {
        router.handle_packet(InterfaceId(interface), source.parse().unwrap(), true, payload, now, now)
    };
    assert_eq!(send(2, "fe80::7", &ack), Err(PacketError::Misuse(Misuse::UnknownInterface)));
    let global = send(1, "2001:db8::7", &ack);
    assert_eq!(global, Err(PacketError::Violation(Violation::SourceNotLinkLocal)));
    assert_eq!(send(1, "fe80::7", &ack[..3]), Err(PacketError::Malformed(Malformed::Header)));
    for neighbour in 2..6 {
        assert_eq!(send(1, &format!("fe80::{neighbour}"), &ack), Ok(()));
    }
    let fifth = send(1, "fe80::6", &ack);
    assert_eq!(fifth, Err(PacketError::Violation(Violation::TooManyNeighbours)));
    // What precedes a malformed TLV is processed.
    let (mut router, now) = self::router();
    let mixed = packet("04 06 0000 0001 0064 05 06 0000 0060 0064 09 01 00");
    let result = router.handle_packet(InterfaceId(1), SOURCE, true, &mixed, now, now);
    assert!(matches!(result, Err(PacketError::Malformed(Malformed::TooShort(_)))));
    assert!(router.neighbours(now)[0].up);
}

#[test]
fn tables_are_bounded() {
    let (mut router, now) = router();
    for index in 0..200_u8 {
        let update = packet(&format!("{ROUTER_ID} 08 0e 0400 2000 0190 0001 0007 0a0100{index:02x}"));
        router.handle_packet(InterfaceId(1), SOURCE, true, &update, now, now).unwrap();
    }
    assert_eq!(router.routes(now).len(), 100);
    let limits = std::iter::from_fn(|| router.poll_event())
        .filter(|event| matches!(event, babel::Event::LimitReached { .. }))
        .count();
    assert_eq!(limits, 1, "reported once");
    // A flood of requests for an acknowledgment makes no more than bounded output.
    let flood = packet(&"02 06 0000 0001 0064".repeat(100));
    for _ in 0..100 {
        router.handle_packet(InterfaceId(1), SOURCE, true, &flood, now, now).unwrap();
    }
    let (mut buffer, mut octets) = (Vec::new(), 0);
    while router.poll_transmit(&mut buffer, now).is_some() {
        octets += buffer.len();
    }
    assert!(octets < 8192, "{octets}");
}
