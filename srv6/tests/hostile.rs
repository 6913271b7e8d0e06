//! Packets that nobody should send: no panic, no change on an error, never more than the buffer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

#[path = "../fuzz/forward.rs"]
mod forward;
#[path = "../fuzz/routing_header.rs"]
mod routing_header;

use proptest::prelude::*;
use srv6::wire::{SegmentRoutingHeader, SrhView};
use support::{any_inner, ipv6, sid, srh};

/// Every file of a fuzz target's corpus.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).expect("the corpus is in the repository");
    let paths: std::collections::BTreeSet<_> = files.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn the_corpora_are_survived() {
    corpus("routing_header").iter().for_each(|bytes| routing_header::check(bytes));
    corpus("forward").iter().for_each(|bytes| forward::check(bytes));
}

proptest! {
    #![proptest_config(support::fixed_seed())]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        forward::check(&bytes);
    }

    /// Valid in the first byte, so that the parsers get further.
    #[test]
    fn any_bytes_of_ipv6(next in prop_oneof![Just(43_u8), Just(0), Just(44), Just(60), Just(51), any::<u8>()],
                         chain in proptest::collection::vec(any::<u8>(), 0..300)) {
        forward::check(&ipv6(sid(9, 1), sid(1, 0xe), next, &chain));
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
        forward::check(&packet);
        packet.truncate(cut.index(packet.len() + 1));
        forward::check(&packet);
    }

    #[test]
    fn any_bytes_of_a_routing_header(mut bytes in proptest::collection::vec(any::<u8>(), 8..340), routing in any::<bool>()) {
        bytes.truncate(bytes.len() & !7);
        bytes[1] = (bytes.len() / 8 - 1) as u8;
        if routing {
            bytes[2] = 4;
            bytes[4] %= 20;
        }
        routing_header::check(&bytes);
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
