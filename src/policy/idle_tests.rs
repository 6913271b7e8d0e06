use super::*;

fn rule(from: &str, to: &str) -> Rule {
    let networks =
        |text: &str| text.split_whitespace().map(|network| network.parse().expect("a network")).collect();
    Rule { from: networks(from), to: networks(to), ..Rule::default() }
}

fn with_ports(mut rule: Rule, ports: RangeInclusive<u16>) -> Rule {
    rule.destination_ports.push(ports);
    rule
}

/// Why the last rule never matches.
fn last(rules: &[Rule]) -> Option<IdleReason> {
    let last = PolicyIndex::at(rules.len() - 1)?;
    idle_rules(rules).into_iter().find(|idle| idle.rule == last).map(|idle| idle.reason)
}

fn shadowed_by(place: u16) -> Option<IdleReason> {
    Some(IdleReason::Shadowed { by: PolicyIndex(place) })
}

#[test]
fn an_earlier_rule_takes_all() {
    let anything = rule("", "");
    assert_eq!(last(&[anything.clone(), rule("10.0.0.0/8", "")]), shadowed_by(0));
    assert_eq!(last(&[rule("10.0.0.0/8", ""), anything.clone()]), None);
    assert_eq!(last(&[anything.clone(), anything]), shadowed_by(0), "its own twin");
    let (wide, narrow) = (rule("10.0.0.0/8", "0.0.0.0/0"), rule("10.1.0.0/16", "192.0.2.0/24"));
    assert_eq!(last(&[rule("fd00::/8", ""), wide, narrow]), shadowed_by(1));
}

#[test]
fn each_part_must_be_covered() {
    let base = rule("10.0.0.0/8", "");
    let udp = Rule { protocol: Some(17), ..base.clone() };
    let marked = Rule { dscp: vec![46, 34], ..base.clone() };
    let web = with_ports(base.clone(), 80..=443);
    for narrow in [&udp, &marked, &web] {
        assert_eq!(last(&[base.clone(), narrow.clone()]), shadowed_by(0));
        assert_eq!(last(&[narrow.clone(), base.clone()]), None);
    }
    assert_eq!(last(&[udp, Rule { protocol: Some(6), ..base.clone() }]), None);
    assert_eq!(last(&[marked.clone(), Rule { dscp: vec![46], ..base.clone() }]), shadowed_by(0));
    assert_eq!(last(&[marked, Rule { dscp: vec![46, 0], ..base.clone() }]), None);
    assert_eq!(last(&[web.clone(), with_ports(base.clone(), 100..=200)]), shadowed_by(0));
    assert_eq!(last(&[web, with_ports(base.clone(), 400..=444)]), None);
    assert_eq!(last(&[with_ports(base.clone(), 0..=65_535), base]), None, "ICMP is left");
}

#[test]
fn neighbouring_networks_and_ports_cover_together() {
    let halves = rule("0.0.0.0/1 128.0.0.0/1", "");
    assert_eq!(last(&[halves.clone(), rule("0.0.0.0/0", "")]), shadowed_by(0));
    assert_eq!(last(&[halves, rule("", "")]), None, "IPv6 is left");
    let both = rule("0.0.0.0/0 ::/0", "");
    assert_eq!(last(&[both, rule("", "")]), shadowed_by(0));
    let ports = with_ports(with_ports(rule("", ""), 1..=10), 11..=20);
    assert_eq!(last(&[ports, with_ports(rule("", ""), 5..=15)]), shadowed_by(0));
}

#[test]
fn a_family_that_a_rule_cannot_take_needs_no_cover() {
    // Its IPv6 sources go nowhere, since all of its destinations are IPv4.
    let mixed = rule("10.0.0.0/8 fd00::/8", "192.0.2.0/24");
    assert_eq!(last(&[rule("10.0.0.0/8", "192.0.0.0/16"), mixed]), shadowed_by(0));
}

#[test]
fn some_rules_are_impossible_alone() {
    assert_eq!(last(&[rule("10.0.0.0/8", "fd00::/8")]), Some(IdleReason::Families));
    assert_eq!(last(&[rule("10.0.0.0/8 fd00::/8", "fd00::/8")]), None);
    let ping = Rule { protocol: Some(1), ..with_ports(rule("", ""), 80..=80) };
    assert_eq!(last(&[ping]), Some(IdleReason::NoPorts { protocol: 1 }));
}
