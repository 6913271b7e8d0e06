use super::*;
use crate::policy::{ClassTable, Membership};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The meaning of a rule, one comparison after the other.
fn reference(rule: &Rule, flow: &FlowKey, packet: &Membership) -> bool {
    let within = |networks: &[IpNet], address: IpAddr| {
        networks.is_empty() || networks.iter().any(|network| network.contains(&address))
    };
    let hidden = flow.fragment && protocol::has_ports(flow.protocol);
    let port_fits = |ranges: &[RangeInclusive<u16>], port: Option<u16>| {
        ranges.is_empty()
            || hidden
            || port.is_some_and(|port| ranges.iter().any(|range| range.contains(&port)))
    };
    within(&rule.from, flow.source)
        && within(&rule.to, flow.destination)
        && rule.protocol.is_none_or(|protocol| protocol == flow.protocol)
        && port_fits(&rule.source_ports, flow.ports.map(|ports| ports.0))
        && port_fits(&rule.destination_ports, flow.ports.map(|ports| ports.1))
        && (rule.dscp.is_empty() || rule.dscp.contains(&flow.dscp))
        && rule.membership.includes(packet)
}

/// Few bits, so that random networks and addresses meet.
fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0_u32..64).prop_map(|low| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | low))),
        (0_u32..8).prop_map(|high| IpAddr::V4(Ipv4Addr::from(high << 29))),
        (0_u128..64).prop_map(|low| IpAddr::V6(Ipv6Addr::from(0xfd5d << 112 | low))),
        prop_oneof![Just(0), Just(u128::MAX)].prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits))),
    ]
}

fn any_network() -> impl Strategy<Value = IpNet> {
    (any_address(), prop_oneof![Just(0_u8), Just(1), 0_u8..8, Just(64)]).prop_map(|(address, host_bits)| {
        let full = if address.is_ipv4() { 32 } else { 128 };
        let len = if host_bits == 64 { 0 } else { full - host_bits };
        IpNet::new(address, len).expect("a length of the family")
    })
}

fn any_ranges() -> impl Strategy<Value = Vec<RangeInclusive<u16>>> {
    let port = || prop_oneof![0_u16..8, Just(u16::MAX)];
    prop_oneof![
        3 => Just(Vec::new()),
        1 => proptest::collection::vec((port(), port()).prop_map(|(a, b)| a.min(b)..=a.max(b)), 1..3),
    ]
}

fn any_protocol() -> impl Strategy<Value = u8> {
    prop_oneof![Just(6_u8), Just(17), Just(1), Just(255)]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let networks = || proptest::collection::vec(any_network(), 0..4);
    let dscp = prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(0_u8..4, 1..3)];
    let parts = (proptest::option::of(any_protocol()), any_ranges(), any_ranges(), dscp);
    (networks(), networks(), parts, any_membership()).prop_map(
        |(from, to, (protocol, source_ports, destination_ports, dscp), membership)| Rule {
            name: String::new(),
            from,
            to,
            protocol,
            source_ports,
            destination_ports,
            dscp,
            membership,
            classes: Vec::new(),
        },
    )
}

/// Two interfaces and two marks, and neither in most rules.
fn any_membership() -> impl Strategy<Value = Membership> {
    let ingress = prop_oneof![4 => Just(None), 1 => Just(Some("lan0")), 1 => Just(Some("lan1"))];
    let fwmark = prop_oneof![4 => Just(None), 1 => Just(Some(0x20)), 1 => Just(Some(0x30))];
    (ingress, fwmark).prop_map(|(ingress, fwmark)| Membership { ingress: ingress.map(str::to_owned), fwmark })
}

fn any_flow() -> impl Strategy<Value = FlowKey> {
    let port = || prop_oneof![0_u16..8, Just(u16::MAX)];
    (any_address(), any_address(), any_protocol(), (port(), port()), 0_u8..4, any::<bool>()).prop_map(
        |(source, destination, protocol, ports, dscp, fragment)| FlowKey {
            source,
            destination,
            protocol,
            ports: (protocol::has_ports(protocol) && !fragment).then_some(ports),
            dscp,
            fragment,
        },
    )
}

fn fixed_seed() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(fixed_seed())]

    /// The compiled table chooses what a linear walk over the rules chooses, and `explain` tells the same story.
    #[test]
    fn the_table_agrees_with_a_linear_walk(rules in proptest::collection::vec(any_rule(), 0..150),
                                           flows in proptest::collection::vec((any_flow(), any_membership()), 1..60)) {
        let classes = ClassTable::default().updated(rules.iter().map(|rule| &rule.membership));
        let mut rules = rules;
        for rule in &mut rules {
            rule.classes = classes.within(&rule.membership);
        }
        let table = SteeringTable::compile(&rules);
        for (flow, packet) in &flows {
            let class = classes.class_of(packet);
            let matching: Vec<PolicyIndex> = (0..)
                .zip(&rules)
                .filter(|(_, rule)| reference(rule, flow, packet))
                .map(|(place, _)| PolicyIndex(place))
                .collect();
            prop_assert_eq!(table.classify(flow, class), matching.first().copied());
            for pair in matching.windows(2) {
                prop_assert_eq!(table.classify_after(flow, class, pair[0]), Some(pair[1]));
            }
            if let Some(last) = matching.last() {
                prop_assert_eq!(table.classify_after(flow, class, *last), None);
            }
            let verdicts = table.explain(flow, class);
            let chosen = verdicts.iter().find(|(_, outcome)| outcome.is_match()).map(|(index, _)| *index);
            prop_assert_eq!(chosen, table.classify(flow, class));
            prop_assert_eq!(verdicts.len(), chosen.map_or(rules.len(), |index| index.place() + 1));
        }
    }
}

fn rule(from: &str, to: &str) -> Rule {
    let networks =
        |text: &str| text.split_whitespace().map(|network| network.parse().expect("a network")).collect();
    Rule { from: networks(from), to: networks(to), ..Rule::default() }
}

fn tcp(source: &str, destination: &str, port: u16) -> FlowKey {
    FlowKey {
        source: source.parse().expect("an address"),
        destination: destination.parse().expect("an address"),
        protocol: protocol::TCP,
        ports: Some((50_000, port)),
        dscp: 0,
        fragment: false,
    }
}

#[test]
fn an_empty_table_takes_nothing() {
    let flow = tcp("10.0.0.1", "10.0.0.2", 80);
    for table in [SteeringTable::default(), SteeringTable::compile(&[])] {
        assert_eq!(table.classify(&flow, Class::NONE), None);
        assert!(table.explain(&flow, Class::NONE).is_empty());
        assert!(table.rules().is_empty());
    }
}

#[test]
fn the_first_rule_wins_not_the_longest_prefix() {
    let table = SteeringTable::compile(&[rule("", "0.0.0.0/0"), rule("", "10.9.0.0/16"), rule("", "::/0")]);
    assert_eq!(table.classify(&tcp("10.0.0.1", "10.9.1.1", 80), Class::NONE), Some(PolicyIndex(0)));
    assert_eq!(
        table.classify_after(&tcp("10.0.0.1", "10.9.1.1", 80), Class::NONE, PolicyIndex(0)),
        Some(PolicyIndex(1))
    );
    assert_eq!(table.classify(&tcp("fd00::1", "2001:db8::1", 80), Class::NONE), Some(PolicyIndex(2)));
}

#[test]
fn explain_names_the_part_that_does_not_match() {
    let mut ports = rule("10.0.0.0/8", "0.0.0.0/0");
    ports.destination_ports = vec![443..=443, 8000..=8999];
    let mut dscp = rule("", "");
    dscp.dscp = vec![46];
    let mut udp = rule("", "");
    udp.protocol = Some(protocol::UDP);
    let mut lan = rule("", "");
    lan.membership = Membership { ingress: Some("lan0".into()), fwmark: Some(0x20) };
    lan.classes = vec![Class(1)];
    let (net, any) = (rule("192.168.0.0/16", ""), rule("", ""));
    let rules = [net, rule("", "10.9.0.0/16"), udp, ports, dscp, lan, any.clone(), any];
    let table = SteeringTable::compile(&rules);
    let verdicts = table.explain(&tcp("10.0.0.1", "192.0.2.1", 80), Class(2));
    let texts: Vec<String> = verdicts.iter().map(|(_, outcome)| outcome.to_string()).collect();
    let expected = [
        "source is not in 192.168.0.0/16",
        "destination is not in 10.9.0.0/16",
        "protocol is not 17",
        "port is not in 443, 8000-8999",
        "DSCP is not 46",
        "did not come in by lan0 with mark 0x20",
        "first match",
    ];
    assert_eq!(texts, expected, "and the rule behind the first match is not asked");
}

/// A fragment hides its ports: it goes with the rule that may be meant, so that nothing leaks past it.
#[test]
fn fragments_go_with_rules_that_name_ports() {
    let mut dns = rule("", "");
    dns.destination_ports = vec![53..=53];
    let table = SteeringTable::compile(&[dns]);
    let whole = FlowKey { protocol: protocol::UDP, ..tcp("10.0.0.1", "192.0.2.1", 53) };
    let fragment = FlowKey { ports: None, fragment: true, ..whole };
    assert_eq!(table.classify(&whole, Class::NONE), Some(PolicyIndex(0)));
    assert_eq!(table.classify(&fragment, Class::NONE), Some(PolicyIndex(0)));
    assert_eq!(table.classify(&FlowKey { ports: Some((1, 54)), ..whole }, Class::NONE), None);
    let icmp = FlowKey { protocol: protocol::ICMP, ..fragment };
    assert_eq!(table.classify(&icmp, Class::NONE), None, "ICMP has no ports to hide");
    let short = FlowKey { ports: None, ..whole };
    assert_eq!(table.classify(&short, Class::NONE), None, "a whole packet without ports has none");
}

/// A thousand rules with ten networks each, and every one of them is found.
#[test]
fn a_large_table_finds_every_rule() {
    let network = |number: u32| IpNet::V4(ipnet::Ipv4Net::new_assert((number << 8).into(), 24));
    let rules: Vec<Rule> = (0..1000_u32)
        .map(|place| Rule {
            to: (0..10).map(|part| network(0x0a_0000 + place * 10 + part)).collect(),
            ..Rule::default()
        })
        .collect();
    let table = SteeringTable::compile(&rules);
    for place in 0..1000_u16 {
        for network in &rules[usize::from(place)].to {
            let flow = FlowKey { destination: network.addr(), ..tcp("10.0.0.1", "10.0.0.2", 80) };
            assert_eq!(table.classify(&flow, Class::NONE), Some(PolicyIndex(place)));
        }
    }
    assert_eq!(table.classify(&tcp("10.0.0.1", "192.0.2.1", 80), Class::NONE), None);
}

#[test]
fn rules_beyond_the_index_are_left_out() {
    let mut rules = vec![rule("10.0.0.0/8", ""); 65_536];
    rules.push(rule("", ""));
    let table = SteeringTable::compile(&rules);
    assert_eq!(table.rules().len(), 65_536);
    assert_eq!(table.classify(&tcp("192.0.2.1", "192.0.2.2", 80), Class::NONE), None);
    assert_eq!(table.classify(&tcp("10.0.0.1", "192.0.2.2", 80), Class::NONE), Some(PolicyIndex(0)));
}
