//! Journeys over compressed SIDs (RFC 9800), with and without an SRH.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic"
)]
mod support;

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;
use proptest::prelude::*;
use srv6::compressed_sid::{Function, pack};
use srv6::error::{Error, Violation};
use srv6::ip::Ipv6View;
use srv6::ip::icmp_error::IcmpError;
use srv6::{
    Behaviour, CompressedSid, Encapsulation, Flavours, FlowSummary, Form, LocalSids, Outcome, process,
};
use support::{any_inner, echo_request, ipv6, sid, srh, udp};

fn csid(number: u16) -> CompressedSid {
    CompressedSid::new("fd5d:ac::/32".parse().unwrap(), number).unwrap()
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// Nodes 1 to 20, each with the prefix that it announces and its own table.
fn mesh() -> Vec<(Ipv6Net, LocalSids)> {
    (1..=20)
        .map(|number| {
            let sid = csid(number);
            (sid.prefix(), LocalSids::default().with_compressed(&sid, true))
        })
        .collect()
}

/// Routes the packet by the longest announced prefix from node to node, until it leaves its envelope.
fn travel(mut packet: Vec<u8>, nodes: &[(Ipv6Net, LocalSids)]) -> (Vec<u16>, Vec<u8>) {
    let mut visited = Vec::new();
    loop {
        let destination = Ipv6View::parse(&packet).unwrap().destination();
        let at = nodes.iter().position(|(prefix, _)| prefix.contains(&destination)).expect("a route");
        visited.push(at as u16 + 1);
        let behaviour = nodes[at].1.lookup(destination).expect("a SID of the node");
        match process(&mut packet, behaviour).unwrap() {
            Outcome::Forward { packet: place, .. } => packet = packet[place].to_vec(),
            Outcome::Decapsulated { inner } => return (visited, packet[inner].to_vec()),
            other @ Outcome::UpperLayer { .. } => panic!("{other:?}"),
        }
    }
}

fn encapsulate(waypoints: &[u16], exit: u16, inner: &[u8]) -> (Vec<u8>, usize) {
    let waypoints: Vec<_> = waypoints.iter().map(|number| csid(*number)).collect();
    let path = pack(&waypoints, &csid(exit), Function::Dt46).unwrap();
    let encapsulation = Encapsulation::new(sid(9, 1), &path, Form::Reduced).unwrap();
    let mut packet = vec![0; encapsulation.header_len()];
    encapsulation.write(&mut packet, &FlowSummary::parse(inner).unwrap(), inner.len()).unwrap();
    packet.extend(inner);
    (packet, encapsulation.header_len())
}

#[test]
fn five_nodes_cost_one_header() {
    let inner = support::ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &udp(1, 2, b"hello"));
    let (packet, overhead) = encapsulate(&[2, 3, 2], 4, &inner);
    assert_eq!(overhead, 40);
    assert_eq!(travel(packet, &mesh()), (vec![2, 3, 2, 4], inner));
}

proptest! {
    #![proptest_config(support::fixed_seed())]

    /// Any journey is visited in order, however it falls into addresses.
    #[test]
    fn every_journey_is_visited_in_order(
        mut stops in proptest::collection::vec(1_u16..=20, 1..40),
        inner in any_inner(),
    ) {
        let exit = stops.pop().unwrap();
        let (packet, overhead) = encapsulate(&stops, exit, &inner);
        stops.push(exit);
        prop_assert!(overhead <= 48 + stops.len() / 6 * 16 + 16);
        prop_assert_eq!(travel(packet, &mesh()), (stops, inner));
    }
}

const NEXT: Behaviour = Behaviour::EndNext(Flavours::NONE, 32);

#[test]
fn n02_to_n04_counts_the_hop() {
    for hop_limit in [0, 1] {
        let mut packet = ipv6(sid(9, 1), address("fd5d:ac:1:2::"), 4, &[]);
        packet[7] = hop_limit;
        let error = process(&mut packet, NEXT).unwrap_err();
        assert_eq!(error.icmp(), Some(IcmpError::TimeExceeded));
    }
}

#[test]
fn n05_to_n07_moves_the_argument_and_nothing_else() {
    // The SRH is not looked at while C-SIDs are left, not even one that makes no sense.
    let mut chain = srh(4, 200, &[sid(3, 0x46)], &[]);
    chain[4] = 99;
    let mut packet = ipv6(sid(9, 1), address("fd5d:ac:1:2:3:4:5:6"), 43, &chain);
    let mut expected = packet.clone();
    let outcome = process(&mut packet, NEXT).unwrap();
    let destination = address("fd5d:ac:2:3:4:5:6:0");
    assert_eq!(outcome, Outcome::Forward { packet: 0..packet.len(), destination, adjacency: None });
    expected[7] = 63;
    expected[24..40].copy_from_slice(&destination.octets());
    assert_eq!(packet, expected);
}

#[test]
fn n01_an_empty_argument_is_an_ordinary_end() {
    let mut chain = srh(4, 1, &[address("fd5d:ac:7:f046::"), address("fd5d:ac:1::")], &[]);
    chain.extend(support::ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &udp(1, 2, b"")));
    let mut packet = ipv6(sid(9, 1), address("fd5d:ac:1::"), 43, &chain);
    let Ok(Outcome::Forward { destination, .. }) = process(&mut packet, NEXT) else { panic!("no journey") };
    assert_eq!(destination, address("fd5d:ac:7:f046::"));
    assert_eq!(packet[43], 0, "Segments Left");

    let mut packet = ipv6(sid(9, 1), address("fd5d:ac:1::"), 17, &udp(1, 2, b""));
    let refused = Err(Error::Violation(Violation::UpperLayer { pointer: 40 }));
    assert_eq!(process(&mut packet, NEXT), refused);
    let mut ping = echo_request(sid(9, 1), address("fd5d:ac:1::"));
    assert!(matches!(process(&mut ping, NEXT), Ok(Outcome::UpperLayer { protocol: 58, .. })));
}

#[test]
fn usd_ends_the_journey_at_the_last_number() {
    let usd = Flavours { usd: true, ..Flavours::NONE };
    let inner = support::ipv4([10, 0, 0, 1].into(), [10, 9, 0, 1].into(), 17, &udp(1, 2, b""));
    let mut packet = ipv6(sid(9, 1), address("fd5d:ac:1::"), 4, &inner);
    let outcome = process(&mut packet, Behaviour::EndNext(usd, 32));
    assert_eq!(outcome, Ok(Outcome::Decapsulated { inner: 40..40 + inner.len() }));
}
