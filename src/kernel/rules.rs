//! Our policy routing rules as netlink messages.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use rtnetlink::packet_route::route::{RouteHeader, RouteProtocol};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};

use super::netlink::{self, Mode, Netlink};
use super::problem::Problem;
use super::routes::LOCAL_TABLE;
use super::state::{Claim, Family, Mark, Rule, Selector};

/// Deleting by netlink takes the first rule that fits, and a rule without `to` fits those with one. What a
/// deletion took by mistake is put back in the next round.
const ROUNDS: usize = 3;

/// The rules that matter to us, as the kernel has them.
#[derive(Debug, Clone, Default)]
pub(super) struct KernelRules {
    /// Rules with our protocol number.
    pub(super) ours: BTreeSet<Rule>,
    /// Rules with our protocol number in a form that we never make.
    odd: Vec<RuleMessage>,
    /// Rules of others that have a form which ours could have.
    others: BTreeSet<Rule>,
    /// First priority of `lookup local`.
    local: BTreeMap<Family, u32>,
}

impl KernelRules {
    /// The problem of a rule for local addresses behind ours, if there is one.
    pub(super) fn late_local(&self, claim: &Claim) -> Option<Problem> {
        let ours = claim.first_priority();
        let late = self.local.values().copied().find(|priority| *priority > ours)?;
        Some(Problem::LateLocalRule { priority: late, ours })
    }
}

/// Reads all rules of both families.
pub(super) async fn dump(netlink: &Netlink, claim: &Claim) -> io::Result<KernelRules> {
    let mut rules = KernelRules::default();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RuleMessage::default();
        request.header.family = family;
        let answers = match netlink.dump(RouteNetlinkMessage::GetRule(request)).await {
            Ok(answers) => answers,
            Err(error) if netlink::is_missing(&error) || error.kind() == io::ErrorKind::Unsupported => {
                continue;
            }
            Err(error) => return Err(error),
        };
        for answer in answers {
            if let RouteNetlinkMessage::NewRule(message) = answer {
                rules.note(message, claim);
            }
        }
    }
    Ok(rules)
}

impl KernelRules {
    fn note(&mut self, message: RuleMessage, claim: &Claim) {
        let ours = message
            .attributes
            .iter()
            .any(|attribute| *attribute == RuleAttribute::Protocol(RouteProtocol::from(claim.protocol)));
        match (parse(&message), ours) {
            (Some(rule), true) => {
                self.ours.insert(rule);
            }
            (Some(rule), false) => {
                if rule.table == LOCAL_TABLE {
                    let first = self.local.entry(rule.family).or_insert(rule.priority);
                    *first = rule.priority.min(*first);
                }
                self.others.insert(rule);
            }
            (None, true) => self.odd.push(message),
            (None, false) => {}
        }
    }
}

/// Makes our rules equal to `wanted`. A rule of somebody else that says the same counts as there.
pub(super) async fn apply(
    netlink: &Netlink,
    claim: &Claim,
    mut observed: KernelRules,
    wanted: &BTreeSet<Rule>,
    problems: &mut Vec<Problem>,
) -> io::Result<KernelRules> {
    for _ in 0..ROUNDS {
        let changes = difference(claim, &observed, wanted);
        if changes.is_empty() {
            return Ok(observed);
        }
        problems.clear();
        for (what, request, mode) in changes {
            match netlink.execute(request, mode).await {
                Ok(()) => {}
                Err(error) if netlink::is_present(&error) || netlink::is_missing(&error) => {}
                Err(error) => problems.push(Problem::refused(what, &error)),
            }
        }
        observed = dump(netlink, claim).await?;
        if !problems.is_empty() {
            break;
        }
    }
    Ok(observed)
}

fn difference(
    claim: &Claim,
    observed: &KernelRules,
    wanted: &BTreeSet<Rule>,
) -> Vec<(String, RouteNetlinkMessage, Mode)> {
    let missing =
        wanted.iter().filter(|rule| !observed.ours.contains(rule) && !observed.others.contains(rule));
    let additions = missing.map(|rule| {
        let request = RouteNetlinkMessage::NewRule(message(claim, rule));
        (format!("rule {} to table {}", rule.priority, rule.table), request, Mode::Create)
    });
    let unwanted = observed.ours.difference(wanted).map(|rule| message(claim, rule));
    let deletions = unwanted.chain(observed.odd.iter().cloned()).map(|message| {
        ("removal of a rule".to_owned(), RouteNetlinkMessage::DelRule(message), Mode::Existing)
    });
    additions.chain(deletions).collect()
}

/// The message that adds or deletes `rule`.
fn message(claim: &Claim, rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = match rule.family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    };
    message.header.action = RuleAction::ToTable;
    message.header.table = u8::try_from(rule.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    let attributes = &mut message.attributes;
    attributes.push(RuleAttribute::Table(rule.table));
    attributes.push(RuleAttribute::Priority(rule.priority));
    attributes.push(RuleAttribute::Protocol(RouteProtocol::from(claim.protocol)));
    if let Some(mark) = rule.selector.mark {
        attributes.push(RuleAttribute::FwMark(mark.value));
        attributes.push(RuleAttribute::FwMask(mark.mask));
    }
    if let Some(name) = &rule.selector.incoming {
        attributes.push(RuleAttribute::Iifname(name.clone()));
    }
    if let Some(from) = rule.selector.from {
        message.header.src_len = from.prefix_len();
        attributes.push(RuleAttribute::Source(from.network()));
    }
    if let Some(to) = rule.selector.to {
        message.header.dst_len = to.prefix_len();
        attributes.push(RuleAttribute::Destination(to.network()));
    }
    message
}

/// Reads a dumped rule; `None` if it says something that [`Rule`] cannot.
fn parse(message: &RuleMessage) -> Option<Rule> {
    let family = match message.header.family {
        AddressFamily::Inet => Family::V4,
        AddressFamily::Inet6 => Family::V6,
        _ => return None,
    };
    let plain = message.header.action == RuleAction::ToTable
        && message.header.tos == 0
        && !message.header.flags.contains(RuleFlags::Invert);
    if !plain {
        return None;
    }
    let mut rule =
        Rule { family, priority: 0, selector: Selector::default(), table: u32::from(message.header.table) };
    for attribute in &message.attributes {
        note(&mut rule, message, attribute)?;
    }
    Some(rule)
}

fn note(rule: &mut Rule, message: &RuleMessage, attribute: &RuleAttribute) -> Option<()> {
    let selector = &mut rule.selector;
    match attribute {
        RuleAttribute::Table(table) => rule.table = *table,
        RuleAttribute::Priority(priority) => rule.priority = *priority,
        RuleAttribute::FwMark(value) => {
            selector.mark =
                Some(Mark { value: *value, mask: selector.mark.map_or(u32::MAX, |mark| mark.mask) });
        }
        RuleAttribute::FwMask(mask) => {
            let value = selector.mark.map_or(0, |mark| mark.value);
            selector.mark = Some(Mark { value, mask: *mask });
        }
        RuleAttribute::Iifname(name) => selector.incoming = Some(name.clone()),
        RuleAttribute::Source(address) => selector.from = Some(prefix(*address, message.header.src_len)?),
        RuleAttribute::Destination(address) => selector.to = Some(prefix(*address, message.header.dst_len)?),
        // "No suppression" is shown as all ones.
        RuleAttribute::Protocol(_) | RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
        RuleAttribute::SuppressIfGroup(u32::MAX) => {}
        RuleAttribute::L3MDev(false) => {}
        _ => return None,
    }
    Some(())
}

fn prefix(address: IpAddr, length: u8) -> Option<IpNet> {
    IpNet::new(address, length).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::{KernelState, Tun};

    fn wanted(claim: &Claim) -> BTreeSet<Rule> {
        let mut state = KernelState::new(claim, Tun::new("viamesh0", 1400));
        state.add_steering("10.1.99.0/24".parse().unwrap(), "0.0.0.0/0".parse().unwrap(), true);
        state.add_steering("fd00:1::/48".parse().unwrap(), "2001:db8::/32".parse().unwrap(), false);
        state.rules.insert(Rule {
            family: Family::V4,
            priority: 91,
            selector: Selector { incoming: Some("eth1".into()), ..Selector::default() },
            table: 1181,
        });
        state.rules
    }

    #[test]
    fn a_rule_survives_the_way_to_the_kernel_and_back() {
        let claim = Claim::default();
        for rule in wanted(&claim) {
            assert_eq!(parse(&message(&claim, &rule)), Some(rule));
        }
    }

    #[test]
    fn nothing_is_done_when_all_is_there_even_if_others_made_it() {
        let claim = Claim::default();
        let wanted = wanted(&claim);
        let mut observed = KernelRules { ours: wanted.clone(), ..KernelRules::default() };
        assert!(difference(&claim, &observed, &wanted).is_empty());
        std::mem::swap(&mut observed.ours, &mut observed.others);
        assert!(difference(&claim, &observed, &wanted).is_empty());
    }

    #[test]
    fn an_inverted_rule_is_not_taken_for_its_opposite() {
        let claim = Claim::default();
        let rule = wanted(&claim).pop_first().unwrap();
        let mut inverted = message(&claim, &rule);
        inverted.header.flags = RuleFlags::Invert;
        assert_eq!(parse(&inverted), None);
    }
}
