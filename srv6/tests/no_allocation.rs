//! The functions that touch packets allocate nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use srv6::headend::MAX_HEADER_LEN;
use srv6::hmac::{HmacKey, HmacKeys, Requirement};
use srv6::ip::icmp_error::{self, IcmpError, MAX_LEN};
use srv6::ip::{decrement_hop_limit, echo, fragmentation, icmp_quote, mss};
use srv6::{Behaviour, Encapsulation, FlowKey, FlowSummary, Form, LocalSids, Locator, SegmentPath, process};
use support::{echo_request, ipv4, ipv6, sid, srh, udp};

fn assert_no_allocation(what: &str, work: impl FnOnce()) {
    let counted = allocation_counter::measure(work);
    assert_eq!(counted.count_total, 0, "{what} allocated");
}

#[test]
fn packets_are_processed_without_allocation() {
    let inner = ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &udp(1, 2, &[0; 1200]));
    let path = SegmentPath::new(&[sid(1, 0xe), sid(2, 0xe), sid(1, 0xe), sid(3, 0x46)]).unwrap();
    let encapsulation = Encapsulation::new(sid(9, 1), &path, Form::Reduced).unwrap();
    let mut out = [0; MAX_HEADER_LEN];
    assert_no_allocation("headend", || {
        let key = FlowKey::parse(&inner).unwrap();
        let summary = FlowSummary::of(&inner, &key).unwrap();
        encapsulation.write(&mut out, &summary, inner.len()).unwrap();
    });

    let sids = LocalSids::of_locator(&Locator::new("fd5d:ac:0:1::/64".parse().unwrap()).unwrap(), true);
    let mut chain = srh(4, 1, &[sid(3, 0x46), sid(1, 0xe)], &[]);
    chain.extend(&inner);
    let mut waypoint = ipv6(sid(9, 1), sid(1, 0xe), 43, &chain);
    let mut exit = ipv6(sid(9, 1), sid(1, 0x46), 4, &inner);
    let mut refused = ipv6(sid(9, 1), sid(1, 0xe), 17, &udp(1, 2, b""));
    assert_no_allocation("endpoint", || {
        let behaviour = sids.lookup(sid(1, 0xe)).unwrap();
        process(&mut waypoint, behaviour).unwrap();
        process(&mut exit, Behaviour::EndDt46).unwrap();
        let error = process(&mut refused, behaviour).unwrap_err();
        assert!(error.icmp().is_some());
    });

    let key = HmacKey::new(7, b"secret").unwrap();
    let signed = Encapsulation::with_hmac(sid(9, 1), &path, Form::Reduced, &key).unwrap();
    let mut packet = vec![0; signed.header_len()];
    signed.write(&mut packet, &FlowSummary::parse(&inner).unwrap(), inner.len()).unwrap();
    packet.extend(&inner);
    let keys = HmacKeys::new(vec![key]);
    assert_no_allocation("HMAC", || keys.check(&packet, Requirement::Required).unwrap());

    let mut report = [0; MAX_LEN];
    let request = echo_request(sid(9, 1), sid(1, 0xe));
    assert_no_allocation("ICMP", || {
        icmp_error::write(IcmpError::TimeExceeded, [192, 0, 0, 8].into(), &inner, &mut report).unwrap();
        let source = sid(1, 1).into();
        let len =
            icmp_error::write(IcmpError::PacketTooBig { mtu: 1300 }, source, &waypoint, &mut report).unwrap();
        assert!(icmp_quote::quoted_traveller(&report[..len]).is_some());
        echo::reply(&request, &mut report).unwrap();
    });

    let mut forwarded = inner.clone();
    assert_no_allocation("forwarding", || {
        decrement_hop_limit(&mut forwarded).unwrap();
        mss::clamp(&mut forwarded, 1280);
        let mut fragments = fragmentation::fragment(&forwarded, 600).unwrap().unwrap();
        while fragments.write_next(&mut report).is_some() {}
    });
}
