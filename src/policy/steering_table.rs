//! The compiled rules.

use super::axis::{Accepts, Axis};
use super::rule_set::{Interner, RuleSet, RuleSets, SweptSet};
use super::{Class, PolicyIndex, Rule, RuleOutcome};
use ipnet::IpNet;
use srv6::ip::{FlowKey, protocol};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Rules in order, compiled. Cloning shares the table. Looking up allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct SteeringTable(Option<Arc<Compiled>>);

#[derive(Debug)]
struct Compiled {
    rules: Vec<Rule>,
    sets: RuleSets,
    source: AddressAxis,
    destination: AddressAxis,
    protocol: Axis<u8>,
    source_port: PortAxis,
    destination_port: PortAxis,
    dscp: Axis<u8>,
    class: Axis<u8>,
}

/// The parts of a packet in the order in which `explain` names them.
const SOURCE: usize = 0;
const DESTINATION: usize = 1;
const PROTOCOL: usize = 2;
const SOURCE_PORT: usize = 3;
const DESTINATION_PORT: usize = 4;
const DSCP: usize = 5;
const PARTS: usize = 7;

impl SteeringTable {
    /// Compiles rules; the position is the [`PolicyIndex`], so that only the first 65,536 count.
    #[must_use]
    pub fn compile(rules: &[Rule]) -> Self {
        let rules = rules.get(..=usize::from(u16::MAX)).unwrap_or(rules);
        Self((!rules.is_empty()).then(|| Arc::new(Compiled::new(rules))))
    }

    /// The first rule that matches.
    #[inline]
    #[must_use]
    pub fn classify(&self, flow: &FlowKey, class: Class) -> Option<PolicyIndex> {
        self.0.as_deref()?.first_match(flow, class, 0)
    }

    /// The first rule after `previous` that matches.
    #[must_use]
    pub fn classify_after(&self, flow: &FlowKey, class: Class, previous: PolicyIndex) -> Option<PolicyIndex> {
        self.0.as_deref()?.first_match(flow, class, previous.place() + 1)
    }

    /// What each rule says, up to and with the first that matches: the very sets that [`classify`](Self::classify)
    /// intersects, one rule at a time.
    #[must_use]
    pub fn explain(&self, flow: &FlowKey, class: Class) -> Vec<(PolicyIndex, RuleOutcome)> {
        let Some(compiled) = self.0.as_deref() else { return Vec::new() };
        let accepted = compiled.accepted_by(flow, class);
        let mut verdicts = Vec::new();
        for (place, rule) in compiled.rules.iter().enumerate() {
            let outcome = compiled.outcome(&accepted, place, rule);
            let found = outcome.is_match();
            verdicts.extend(PolicyIndex::at(place).map(|index| (index, outcome)));
            if found {
                break;
            }
        }
        verdicts
    }

    /// The rules that the table was compiled from.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        self.0.as_deref().map(|compiled| compiled.rules.as_slice()).unwrap_or_default()
    }
}

impl Compiled {
    fn new(rules: &[Rule]) -> Self {
        let mut interner = Interner::new(rules.len());
        Self {
            rules: rules.to_vec(),
            source: AddressAxis::compile(rules, |rule| &rule.from, &mut interner),
            destination: AddressAxis::compile(rules, |rule| &rule.to, &mut interner),
            protocol: Axis::compile(&each(rules, accepted_protocols), &mut interner),
            source_port: PortAxis::compile(rules, |rule| &rule.source_ports, &mut interner),
            destination_port: PortAxis::compile(rules, |rule| &rule.destination_ports, &mut interner),
            dscp: Axis::compile(&each(rules, accepted_dscp), &mut interner),
            class: Axis::compile(&each(rules, accepted_classes), &mut interner),
            sets: interner.finish(),
        }
    }

    #[inline]
    fn first_match(&self, flow: &FlowKey, class: Class, from: usize) -> Option<PolicyIndex> {
        PolicyIndex::at(self.sets.first_common(&self.accepted_by(flow, class), from)?)
    }

    /// For each part of the packet the rules that accept it.
    #[inline]
    fn accepted_by(&self, flow: &FlowKey, class: Class) -> [RuleSet; PARTS] {
        let source_port = flow.ports.map(|(source, _)| source);
        let destination_port = flow.ports.map(|(_, destination)| destination);
        [
            self.source.lookup(flow.source),
            self.destination.lookup(flow.destination),
            self.protocol.lookup(flow.protocol),
            self.source_port.lookup(source_port, flow),
            self.destination_port.lookup(destination_port, flow),
            self.dscp.lookup(flow.dscp),
            self.class.lookup(class.0),
        ]
    }

    fn outcome(&self, accepted: &[RuleSet; PARTS], place: usize, rule: &Rule) -> RuleOutcome {
        match accepted.iter().position(|set| !self.sets.contains(*set, place)) {
            None => RuleOutcome::FirstMatch,
            Some(SOURCE) => RuleOutcome::Source(rule.from.clone()),
            Some(DESTINATION) => RuleOutcome::Destination(rule.to.clone()),
            Some(PROTOCOL) => RuleOutcome::Protocol(rule.protocol.unwrap_or_default()),
            Some(SOURCE_PORT) => RuleOutcome::SourcePort(rule.source_ports.clone()),
            Some(DESTINATION_PORT) => RuleOutcome::DestinationPort(rule.destination_ports.clone()),
            Some(DSCP) => RuleOutcome::Dscp(rule.dscp.clone()),
            Some(_) => RuleOutcome::Class(rule.membership.clone()),
        }
    }
}

/// Source or destination networks of all rules.
#[derive(Debug)]
struct AddressAxis {
    v4: Axis<u32>,
    v6: Axis<u128>,
}

impl AddressAxis {
    fn compile(rules: &[Rule], networks: fn(&Rule) -> &[IpNet], interner: &mut Interner) -> Self {
        let v4 = each(rules, |rule| {
            of_list(networks(rule), |network| match network {
                IpNet::V4(network) => Some((network.network().into(), network.broadcast().into())),
                IpNet::V6(_) => None,
            })
        });
        let v6 = each(rules, |rule| {
            of_list(networks(rule), |network| match network {
                IpNet::V6(network) => Some((network.network().into(), network.broadcast().into())),
                IpNet::V4(_) => None,
            })
        });
        Self { v4: Axis::compile(&v4, interner), v6: Axis::compile(&v6, interner) }
    }

    #[inline]
    fn lookup(&self, address: IpAddr) -> RuleSet {
        match address {
            IpAddr::V4(address) => self.v4.lookup(address.into()),
            IpAddr::V6(address) => self.v6.lookup(address.into()),
        }
    }
}

/// Source or destination ports of all rules.
#[derive(Debug)]
struct PortAxis {
    ports: Axis<u16>,
    /// The rules that don't ask for a port: what a packet without ports is left with.
    indifferent: RuleSet,
    /// All rules: a fragment's ports may be any.
    all: RuleSet,
}

impl PortAxis {
    fn compile(rules: &[Rule], ranges: fn(&Rule) -> &[RangeInclusive<u16>], interner: &mut Interner) -> Self {
        let (mut indifferent, mut all) = (SweptSet::new(rules.len()), SweptSet::new(rules.len()));
        for (place, rule) in rules.iter().enumerate() {
            all.add(place);
            if ranges(rule).is_empty() {
                indifferent.add(place);
            }
        }
        let (indifferent, all) = (interner.intern(indifferent.bits()), interner.intern(all.bits()));
        let ports = each(rules, |rule| of_list(ranges(rule), |range| Some((*range.start(), *range.end()))));
        Self { ports: Axis::compile(&ports, interner), indifferent, all }
    }

    #[inline]
    fn lookup(&self, port: Option<u16>, flow: &FlowKey) -> RuleSet {
        match port {
            Some(port) => self.ports.lookup(port),
            None if flow.fragment && protocol::has_ports(flow.protocol) => self.all,
            None => self.indifferent,
        }
    }
}

fn each<V>(rules: &[Rule], accepts: impl Fn(&Rule) -> Accepts<V>) -> Vec<Accepts<V>> {
    rules.iter().map(accepts).collect()
}

/// An empty list accepts anything; elements of the other family accept nothing here.
fn of_list<T, V>(list: &[T], range: impl Fn(&T) -> Option<(V, V)>) -> Accepts<V> {
    if list.is_empty() { Accepts::Anything } else { Accepts::Ranges(list.iter().filter_map(range).collect()) }
}

fn accepted_protocols(rule: &Rule) -> Accepts<u8> {
    rule.protocol.map_or(Accepts::Anything, |protocol| Accepts::Ranges(vec![(protocol, protocol)]))
}

fn accepted_classes(rule: &Rule) -> Accepts<u8> {
    if rule.membership.is_everything() {
        return Accepts::Anything;
    }
    Accepts::Ranges(rule.classes.iter().map(|class| (class.0, class.0)).collect())
}

fn accepted_dscp(rule: &Rule) -> Accepts<u8> {
    of_list(&rule.dscp, |value| Some((*value, *value)))
}

#[cfg(test)]
#[path = "steering_table_tests.rs"]
mod tests;
