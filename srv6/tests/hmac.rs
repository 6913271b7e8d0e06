//! The keyed hash: what it covers, who checks it, and that the journey does not break it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use srv6::error::{Error, Violation};
use srv6::hmac::{HmacKey, HmacKeys, Requirement};
use srv6::ip::icmp_error::IcmpError;
use srv6::wire::SrhView;
use srv6::{Behaviour, Encapsulation, FlowSummary, Form, Outcome, SegmentPath, overhead, process};
use support::{echo_request, ipv4, ipv6, sid, udp};

const SECRET: &[u8] = b"a secret of the mesh";
/// Where the TLV of [`signed`] stands.
const TLV_AT: usize = 40 + 8 + 3 * 16;

fn key() -> HmacKey {
    HmacKey::new(7, SECRET).unwrap()
}

fn keys() -> HmacKeys {
    HmacKeys::new(vec![HmacKey::new(6, b"an older one").unwrap(), key()])
}

fn encapsulate(stops: &[std::net::Ipv6Addr], form: Form, key: &HmacKey) -> Vec<u8> {
    let inner = ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &udp(1, 2, b"hello"));
    let path = SegmentPath::new(stops).unwrap();
    let encapsulation = Encapsulation::with_hmac(sid(9, 1), &path, form, key).unwrap();
    let mut packet = vec![0xff; encapsulation.header_len()];
    encapsulation.write(&mut packet, &FlowSummary::parse(&inner).unwrap(), inner.len()).unwrap();
    packet.extend(inner);
    packet
}

fn signed() -> Vec<u8> {
    encapsulate(&[sid(2, 0xe), sid(3, 0xe), sid(2, 0xe), sid(4, 0x46)], Form::Reduced, &key())
}

/// Computed with Python's hmac module over source, Last Entry 2, flags 8, key id 7 and the three listed segments.
const DIGEST: &str = "297c5085f0ade724b4b08461c680a4fd7151715059caf837a0625879e0bbdcc1";

#[test]
fn the_hash_is_the_one_that_others_compute() {
    let path = [sid(3, 0xe), sid(3, 0xe), sid(2, 0xe), sid(4, 0x46)];
    let packet = encapsulate(&path, Form::Reduced, &key());
    let srh = SrhView::parse(&packet[40..TLV_AT + 40]).unwrap();
    assert_eq!((srh.last_entry(), srh.flags(), srh.segments_left()), (2, 8, 3));
    let (at, hmac) = srh.hmac().unwrap().unwrap();
    assert_eq!((at + 40, hmac.key_id, hmac.reduced), (TLV_AT, 7, true));
    let hex: String = hmac.digest.iter().map(|octet| format!("{octet:02x}")).collect();
    assert_eq!(hex, DIGEST);
}

#[test]
fn linux_finds_the_tlv() {
    for form in [Form::Reduced, Form::Full] {
        let packet = encapsulate(&[sid(2, 0xe), sid(4, 0x46)], form, &key());
        let end = 40 + (usize::from(packet[41]) + 1) * 8;
        assert_eq!(packet[end - 40..end - 38], [5, 38], "the last 40 bytes of the header");
        assert_eq!(packet[45] & 8, 8, "and the flag that announces it");
    }
}

#[test]
fn a_single_stop_gets_a_header_to_sign() {
    let packet = encapsulate(&[sid(4, 0x46)], Form::Reduced, &key());
    assert_eq!(packet[6], 43);
    assert_eq!(keys().check(&packet, Requirement::Required), Ok(()));
    let full = overhead::of_path(1, Form::Full) + overhead::HMAC_TLV_LEN;
    assert_eq!(overhead::with_hmac(1, Form::Reduced), full);
    assert_eq!(packet.len(), full + 20 + 8 + 5);
}

#[test]
fn the_journey_does_not_break_it() {
    for form in [Form::Reduced, Form::Full] {
        let path = [sid(2, 0xe), sid(3, 0xe), sid(2, 0xe), sid(4, 0x46)];
        let mut packet = encapsulate(&path, form, &key());
        for _ in 0..3 {
            assert_eq!(keys().check(&packet, Requirement::Required), Ok(()));
            assert!(matches!(process(&mut packet, Behaviour::END), Ok(Outcome::Forward { .. })));
        }
        assert_eq!(keys().check(&packet, Requirement::Required), Ok(()));
    }
}

#[test]
fn whatever_it_covers_must_not_change() {
    let good = signed();
    let covered = (8..24).chain([44, 45]).chain(48..TLV_AT).chain(TLV_AT + 4..TLV_AT + 40);
    for at in covered {
        let mut packet = good.clone();
        packet[at] ^= 0x40;
        let error = keys().check(&packet, Requirement::Required).expect_err("a changed byte");
        if (44..48).contains(&at) {
            continue; // Last Entry moves the place where TLVs begin.
        }
        let pointer = TLV_AT as u32;
        assert_eq!(error, Error::Violation(Violation::Hmac { pointer }), "byte {at}");
        assert_eq!(error.icmp(), Some(IcmpError::ParameterProblem { code: 0, pointer }));
    }
    let uncovered = [0, 1, 7, 46, 47, TLV_AT + 40];
    for at in uncovered {
        let mut packet = good.clone();
        packet[at] ^= 0x0f;
        if at == 0 {
            packet[0] = 0x6f;
        }
        assert_eq!(keys().check(&packet, Requirement::Required), Ok(()), "byte {at}");
    }
}

#[test]
fn the_destination_must_be_the_current_segment() {
    let mut packet = encapsulate(&[sid(2, 0xe), sid(3, 0xe), sid(4, 0x46)], Form::Full, &key());
    assert_eq!(keys().check(&packet, Requirement::Required), Ok(()));
    packet[24..40].copy_from_slice(&sid(5, 0xe).octets());
    assert!(keys().check(&packet, Requirement::Required).is_err());
}

#[test]
fn requirements() {
    let refused = |pointer| Err(Error::Violation(Violation::Hmac { pointer }));
    let unknown = encapsulate(&[sid(2, 0xe), sid(4, 0x46)], Form::Reduced, &HmacKey::new(8, SECRET).unwrap());
    assert_eq!(keys().check(&unknown, Requirement::Ignored), Ok(()));
    assert_eq!(keys().check(&unknown, Requirement::IfPresent), refused(40 + 8 + 16));

    let mut chain = support::srh(4, 1, &[sid(4, 0x46), sid(2, 0xe)], &[]);
    chain.extend(ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &udp(1, 2, b"")));
    let unsigned = ipv6(sid(9, 1), sid(2, 0xe), 43, &chain);
    assert_eq!(keys().check(&unsigned, Requirement::IfPresent), Ok(()));
    assert_eq!(keys().check(&unsigned, Requirement::Required), refused(40));

    let bare = ipv6(sid(9, 1), sid(4, 0x46), 4, &chain[40..]);
    assert_eq!(keys().check(&bare, Requirement::IfPresent), Ok(()));
    assert_eq!(keys().check(&bare, Requirement::Required), refused(6), "no SRH is no way around");
    let ping = echo_request(sid(9, 1), sid(4, 0x46));
    assert_eq!(keys().check(&ping, Requirement::Required), Ok(()), "OAM");
}

#[test]
fn secrets_are_not_shown_and_bad_keys_refused() {
    assert_eq!(format!("{:?}", key()), "HmacKey { id: 7, .. }");
    assert!(HmacKey::new(0, SECRET).is_err(), "key id 0 is reserved");
    assert!(HmacKey::new(1, b"").is_err());
}
