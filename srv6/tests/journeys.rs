//! Whole journeys: a packet goes from the headend over all waypoints to the exit, in the order of its policy, however
//! often a node stands in it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use std::net::Ipv6Addr;

use proptest::prelude::*;
use srv6::error::{Error, Violation};
use srv6::headend::MAX_HEADER_LEN;
use srv6::{Encapsulation, FlowSummary, Form, LocalSids, Locator, Outcome, SegmentPath, process};
use support::{any_inner, sid};

/// What the journey of one packet looked like.
struct Journey {
    visited: Vec<Ipv6Addr>,
    arrived: Vec<u8>,
    hop_limit: u8,
}

fn encapsulate(path: &[Ipv6Addr], form: Form, inner: &[u8]) -> Vec<u8> {
    let path = SegmentPath::new(path).unwrap();
    let encapsulation = Encapsulation::new(sid(0xaaaa, 1), &path, form).unwrap();
    let mut packet = vec![0xff; encapsulation.header_len()];
    let summary = FlowSummary::parse(inner).unwrap();
    encapsulation.write(&mut packet, &summary, inner.len()).unwrap();
    packet.extend(inner);
    packet
}

/// Delivers the packet to the node that its destination names, until it leaves its envelope.
fn travel(mut packet: Vec<u8>, nodes: &LocalSids) -> Result<Journey, Error> {
    let mut visited = Vec::new();
    loop {
        let here = srv6::ip::Ipv6View::parse(&packet).unwrap().destination();
        visited.push(here);
        let hop_limit = packet[7];
        match process(&mut packet, nodes.lookup(here).expect("a SID of the mesh"))? {
            Outcome::Forward { packet: place, destination, .. } => {
                assert_eq!(&packet[24..40], destination.octets());
                packet = packet[place].to_vec();
            }
            Outcome::Decapsulated { inner } => {
                return Ok(Journey { visited, arrived: packet[inner].to_vec(), hop_limit });
            }
            other @ Outcome::UpperLayer { .. } => panic!("{other:?}"),
        }
    }
}

/// Every node of a small mesh in one table.
fn mesh() -> LocalSids {
    LocalSids::new((1..=6).flat_map(|node| {
        let prefix = format!("fd5d:ac:0:{node:x}::/64").parse().unwrap();
        let locator = Locator::new(prefix).unwrap();
        LocalSids::of_locator(&locator, true).iter().collect::<Vec<_>>()
    }))
}

#[test]
fn a_b_c_b_d() {
    let path = [sid(1, 0xe), sid(2, 0xe), sid(1, 0xe), sid(3, 0x46)];
    let inner = support::ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &support::udp(1, 2, b"hello"));
    for form in [Form::Reduced, Form::Full] {
        let journey = travel(encapsulate(&path, form, &inner), &mesh()).unwrap();
        assert_eq!(journey.visited, path, "{form:?}");
        assert_eq!(journey.arrived, inner, "{form:?}");
        assert_eq!(journey.hop_limit, 61, "three waypoints counted one hop each");
    }
}

#[test]
fn one_node_again_and_again_ends() {
    let mut path = [sid(1, 0xe); 16];
    path[15] = sid(1, 0xf);
    let inner = support::ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &support::udp(1, 2, b""));
    assert_eq!(travel(encapsulate(&path, Form::Reduced, &inner), &mesh()).unwrap().visited, path);
}

#[test]
fn a_journey_without_hops_left_ends_in_time_exceeded() {
    let path = [sid(1, 0xe), sid(2, 0xe), sid(1, 0xe), sid(3, 0x46)];
    let inner = support::ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &support::udp(1, 2, b""));
    let mut packet = encapsulate(&path, Form::Reduced, &inner);
    packet[7] = 2;
    let error = travel(packet, &mesh()).err();
    assert_eq!(error, Some(Error::Violation(Violation::HopLimitExceeded)));
}

fn any_path() -> impl Strategy<Value = Vec<Ipv6Addr>> {
    let waypoints = proptest::collection::vec(1_u16..=6, 0..=15);
    (waypoints, 1_u16..=6, prop_oneof![Just(0x46), Just(0xf)]).prop_map(|(waypoints, exit, function)| {
        waypoints.into_iter().map(|node| sid(node, 0xe)).chain([sid(exit, function)]).collect()
    })
}

proptest! {
    #![proptest_config(support::fixed_seed())]

    /// Any path, any inner packet, both forms: the visits are the path and the packet arrives as it left.
    #[test]
    fn every_path_is_visited_in_order(path in any_path(), inner in any_inner(), full in any::<bool>()) {
        let form = if full { Form::Full } else { Form::Reduced };
        let packet = encapsulate(&path, form, &inner);
        prop_assert_eq!(packet.len(), inner.len() + srv6::overhead::of_path(path.len(), form));
        prop_assert!(packet.len() - inner.len() <= MAX_HEADER_LEN);
        let journey = travel(packet, &mesh()).unwrap();
        prop_assert_eq!(journey.visited, path);
        prop_assert_eq!(journey.arrived, inner);
    }

    /// DSCP and ECN of the envelope are those of the inner packet; the flow label is the same for the whole flow.
    #[test]
    fn the_envelope_wears_the_inner_marks(inner in any_inner()) {
        let packet = encapsulate(&[sid(1, 0xe), sid(2, 0x46)], Form::Reduced, &inner);
        let view = srv6::ip::Ipv6View::parse(&packet).unwrap();
        let class = if inner[0] >> 4 == 4 { inner[1] } else { (inner[0] << 4) | (inner[1] >> 4) };
        prop_assert_eq!(view.traffic_class(), class);
        prop_assert_ne!(view.flow_label(), 0);
        let key = srv6::FlowKey::parse(&inner).unwrap();
        prop_assert_eq!(view.flow_label(), key.flow_label());
    }
}

#[test]
fn flow_labels_spread() {
    let labels: std::collections::BTreeSet<u32> = (0..1000_u16)
        .map(|port| {
            let inner =
                support::ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 6, &support::udp(port, 443, b""));
            FlowSummary::parse(&inner).unwrap().flow_label
        })
        .collect();
    assert!(labels.len() > 990, "only {} labels for 1000 flows", labels.len());
    let low_bits: std::collections::BTreeSet<u32> = labels.iter().map(|label| label & 0x3f).collect();
    assert_eq!(low_bits.len(), 64, "the low bits alone spread too");
}
