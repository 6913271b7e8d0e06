//! Packets that nobody should send: no panic, no change on an error, never more than the buffer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use proptest::prelude::*;
use srv6::ip::icmp_error::{self, IcmpError, MAX_LEN};
use srv6::ip::{self, icmp_quote, mss};
use srv6::wire::{SegmentRoutingHeader, SrhView};
use srv6::{Behaviour, Flavours, FlowKey, Outcome, process};
use support::{any_inner, ipv6, sid, srh};

fn behaviours() -> Vec<Behaviour> {
    let all = Flavours { psp: true, usp: true, usd: true };
    vec![
        Behaviour::END,
        Behaviour::End(all),
        Behaviour::EndX(all, 3),
        Behaviour::EndDt4,
        Behaviour::EndDt6,
        Behaviour::EndDt46,
        Behaviour::Internet,
    ]
}

/// Runs everything that takes a packet over it.
fn survive(packet: &[u8]) {
    for behaviour in behaviours() {
        let mut changed = packet.to_vec();
        match process(&mut changed, behaviour) {
            Ok(Outcome::Forward { packet: place, .. }) => {
                let forwarded = &changed[place];
                assert_eq!(srv6::ip::Ipv6View::parse(forwarded).unwrap().total_len(), forwarded.len());
            }
            Ok(Outcome::Decapsulated { inner }) => assert!(FlowKeyOrChain::parses(&changed[inner])),
            Ok(Outcome::UpperLayer { offset, .. }) => assert!(offset <= packet.len()),
            Err(error) => {
                assert_eq!(changed, packet, "{error} changed the packet");
                if let Some(IcmpError::ParameterProblem { pointer, .. }) = error.icmp() {
                    assert!(pointer as usize <= packet.len(), "{error} points beyond the packet");
                }
            }
        }
    }
    let _ = FlowKey::parse(packet);
    let _ = icmp_quote::quoted_traveller(packet);
    let mut out = [0; 2048];
    let _ = srv6::ip::echo::reply(packet, &mut out);
    for source in ["fd5d:ac:0:1::1".parse().unwrap(), "192.0.0.8".parse().unwrap()] {
        if let Ok(len) = icmp_error::write(IcmpError::PacketTooBig { mtu: 1280 }, source, packet, &mut out) {
            assert!(len <= MAX_LEN);
        }
    }
    let mut changed = packet.to_vec();
    mss::clamp(&mut changed, 1280);
    let _ = ip::decrement_hop_limit(&mut changed);
    assert_eq!(changed.len(), packet.len());
}

/// The inner packet of a decapsulation has a whole IP header; what follows may be anything.
struct FlowKeyOrChain;

impl FlowKeyOrChain {
    fn parses(inner: &[u8]) -> bool {
        srv6::ip::Ipv4View::parse(inner).is_ok_and(|view| view.total_len() == inner.len())
            || srv6::ip::Ipv6View::parse(inner).is_ok_and(|view| view.total_len() == inner.len())
    }
}

proptest! {
    #![proptest_config(support::fixed_seed())]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survive(&bytes);
    }

    /// Valid in the first byte, so that the parsers get further.
    #[test]
    fn any_bytes_of_ipv6(next in prop_oneof![Just(43_u8), Just(0), Just(44), Just(60), Just(51), any::<u8>()],
                         chain in proptest::collection::vec(any::<u8>(), 0..300)) {
        survive(&ipv6(sid(9, 1), sid(1, 0xe), next, &chain));
    }

    /// A good envelope with a few bytes changed and the end cut off.
    #[test]
    fn damaged_envelopes(inner in any_inner(), left in 0_u8..5, listed in 1_u16..5,
                         damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
                         cut in any::<prop::sample::Index>()) {
        let list: Vec<_> = (0..listed).map(|node| sid(node, 0xe)).collect();
        let next = if inner[0] >> 4 == 4 { 4 } else { 41 };
        let mut chain = srh(next, left, &list, &[4, 6, 0, 0, 0, 0, 0, 0]);
        chain.extend(inner);
        let mut packet = ipv6(sid(9, 1), sid(1, 0xe), 43, &chain);
        for (at, octet) in damage {
            let at = at.index(packet.len());
            packet[at] = octet;
        }
        survive(&packet);
        packet.truncate(cut.index(packet.len() + 1));
        survive(&packet);
    }

    /// Reading the bytes of a header gives the header, and writing it again the bytes.
    #[test]
    fn srh_survives_the_wire(next_header in any::<u8>(), list in proptest::collection::vec(any::<u128>(), 1..=16),
                             left in any::<prop::sample::Index>(), flags in any::<u8>(), tag in any::<u16>(),
                             hmac in proptest::option::of((any::<bool>(), any::<u32>(), any::<[u8; 32]>()))) {
        let list: Vec<_> = list.into_iter().map(std::net::Ipv6Addr::from_bits).collect();
        let left = u8::try_from(left.index(list.len() + 2)).unwrap();
        let mut value = SegmentRoutingHeader::new(next_header, left.min(list.len() as u8), &list).unwrap();
        value.flags = flags;
        value.tag = tag;
        value.hmac = hmac.map(|(reduced, key_id, digest)| srv6::wire::tlv::HmacTlv { reduced, key_id, digest });
        let mut bytes = [0xaa; 512];
        let len = value.emit(&mut bytes).unwrap();
        prop_assert_eq!(len, value.encoded_len());
        let view = SrhView::parse(&bytes[..len]).unwrap();
        prop_assert_eq!(SegmentRoutingHeader::parse(&view), Ok(value));
        prop_assert!(view.segments().eq(list));
        prop_assert!(value.emit(&mut bytes[..len - 1]).is_err());
    }
}

/// The kernel's own checks (Linux seg6_validate_srh) on what we emit: every TLV by type and length, to the end.
#[test]
fn linux_accepts_what_we_emit() {
    for listed in 1..=16 {
        for hmac in [false, true] {
            let list: Vec<_> = (0..listed).map(|node| sid(node, 0xe)).collect();
            let mut value = SegmentRoutingHeader::new(41, 1, &list).unwrap();
            value.hmac =
                hmac.then_some(srv6::wire::tlv::HmacTlv { reduced: false, key_id: 1, digest: [0; 32] });
            let mut bytes = [0; 512];
            let len = value.emit(&mut bytes).unwrap();
            assert_eq!(len, (usize::from(bytes[1]) + 1) * 8);
            assert!(usize::from(bytes[4]) < usize::from(bytes[1]) / 2);
            let mut rest = &bytes[8 + (usize::from(bytes[4]) + 1) * 16..len];
            while !rest.is_empty() {
                let tlv_len = 2 + usize::from(rest[1]);
                rest = rest.get(tlv_len..).expect("a TLV ends inside the header");
            }
        }
    }
}

#[test]
fn tlvs_of_all_kinds_are_read() {
    use srv6::error::Malformed;
    let parse = |tlvs: &[u8]| {
        let header = srh(41, 0, &[sid(1, 0xe)], tlvs);
        SegmentRoutingHeader::parse(&SrhView::parse(&header).unwrap()).map(|value| value.hmac.is_some())
    };
    assert_eq!(parse(&[]), Ok(false));
    assert_eq!(parse(&[0; 8]), Ok(false), "Pad1 eight times");
    assert_eq!(parse(&[4, 6, 0, 0, 0, 0, 0, 0]), Ok(false), "PadN");
    assert_eq!(parse(&[4, 5, 0, 0, 0, 0, 0, 0]), Ok(false), "PadN, then Pad1");
    assert_eq!(parse(&[4, 7, 0, 0, 0, 0, 0, 0]), Err(Malformed::Tlv), "one byte too long");
    assert_eq!(parse(&[0, 0, 0, 0, 0, 0, 0, 4]), Err(Malformed::Tlv), "no length");
    assert_eq!(parse(&[5, 6, 0, 0, 0, 0, 0, 1]), Err(Malformed::Tlv), "an HMAC without a hash");
    assert_eq!(parse(&[124, 6, 0, 0, 0, 0, 0, 0]), Err(Malformed::Tlv), "a type that we never send");
}

/// SRHs whose lengths contradict each other, as far as they can be told from the header alone.
#[test]
fn lengths_that_contradict_each_other() {
    let good = srh(41, 1, &[sid(2, 0xe), sid(1, 0xe)], &[]);
    assert!(SrhView::parse(&good).is_ok_and(|view| view.is_consistent()));
    let consistent = |at: usize, octet: u8| {
        let mut header = good.clone();
        header[at] = octet;
        SrhView::parse(&header).is_ok_and(|view| view.is_consistent())
    };
    assert!(!consistent(1, 3), "Hdr Ext Len below the bytes");
    assert!(!consistent(1, 5), "Hdr Ext Len above the bytes");
    assert!(!consistent(2, 0), "another routing type");
    assert!(!consistent(4, 2), "Last Entry beyond the list");
    assert!(!consistent(3, 3), "Segments Left beyond a reduced list");
    assert!(consistent(3, 2), "a reduced list");
    assert!(consistent(4, 0), "a shorter list leaves room for TLVs");
    let empty = [41, 0, 4, 0, 0, 0, 0, 0];
    assert!(!SrhView::parse(&empty).unwrap().is_consistent(), "no list at all");
    assert!(SrhView::parse(&empty[..7]).is_err());
}
