//! Policies: what they match, and what cannot match. Their paths are in `candidates`.

use std::time::Duration;

use ipnet::IpNet;

use super::registry::Registry;
use super::sections::tunnel_mtu;
use super::{classes, policy_order, shared};
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::config::node_file::{NodeFile, PolicyEntry, ProbeSection};
use crate::config::record::{Field, OneOrMany};
use crate::config::scalar::PortRange;
use crate::config::settings::{IfUnreachable, LocalEndpoint, NodeName, Policy, PolicyProbe};
use crate::config::source::Spanned;

/// What all policies are checked against.
pub(super) struct Context<'a> {
    pub(super) own: &'a NodeName,
    /// What this node announces, its addresses included.
    pub(super) own_networks: &'a [IpNet],
    pub(super) own_offer: bool,
    pub(super) registry: &'a Registry,
    pub(super) tunnel_mtu: usize,
}

/// All policies that can be understood, in file order, and behind them those of the registry that begin or end here.
pub(super) fn resolve(
    file: &NodeFile,
    own: &NodeName,
    endpoints: &[Spanned<LocalEndpoint>],
    own_networks: &[IpNet],
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) -> Vec<Policy> {
    let context = Context {
        own,
        own_networks,
        own_offer: file.offer.as_ref().is_some_and(|offer| !offer.value.is_empty()),
        registry,
        tunnel_mtu: usize::from(tunnel_mtu(endpoints)),
    };
    let entries = file.policies.iter().flat_map(|field| &field.value);
    let mut policies: Vec<Spanned<Policy>> = Vec::new();
    for entry in entries {
        if let Some(policy) = context.policy(&entry.value, diagnostics) {
            report_duplicate(&policy, &policies, diagnostics);
            policies.push(policy);
        }
    }
    policy_order::report_shadowed(&policies, diagnostics);
    classes::report(file, diagnostics);
    for policy in shared::resolve(&context, diagnostics) {
        report_duplicate(&policy, &policies, diagnostics);
        policies.push(policy);
    }
    policies.into_iter().map(|policy| policy.value).collect()
}

fn report_duplicate(policy: &Spanned<Policy>, earlier: &[Spanned<Policy>], diagnostics: &mut Diagnostics) {
    if let Some(first) = earlier.iter().find(|first| first.value.name == policy.value.name) {
        let title = format!("two policies are called `{}`", policy.value.name);
        let diagnostic = Diagnostic::at(policy.span, Code::DuplicatePolicy, title);
        diagnostics.push(diagnostic.label(format!("the first is on line {}", first.value.line)));
    }
}

impl Context<'_> {
    pub(super) fn policy(
        &self,
        entry: &PolicyEntry,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<Policy>> {
        let name = entry.name.as_ref()?;
        report_families(&name.value, entry, diagnostics);
        report_ports(entry, diagnostics);
        let if_unreachable = entry.if_unreachable.as_ref().map(|field| field.value);
        if if_unreachable.is_none() {
            report_no_fallback(name, diagnostics);
        }
        let candidates = self.candidates(name, entry, diagnostics);
        let ports = |field: &Option<Field<OneOrMany<PortRange>>>| {
            field.iter().flat_map(|list| &list.value.0).map(|range| range.value.0.clone()).collect::<Vec<_>>()
        };
        let value = Policy {
            name: name.value.clone(),
            from: super::values(entry.from.as_ref()),
            to: super::values(entry.to.as_ref()),
            protocol: entry.protocol.as_ref().map(|field| field.value.0),
            ports: ports(&entry.ports),
            source_ports: ports(&entry.source_ports),
            dscp: entry.dscp.iter().flat_map(|field| &field.value.0).map(|dscp| dscp.value.0).collect(),
            membership: classes::membership(entry),
            candidates: candidates?,
            probe: entry.probe.as_ref().map(|field| probe(&field.value, diagnostics)),
            hmac: entry.hmac.as_ref().map(|field| field.value),
            if_unreachable: if_unreachable.unwrap_or(IfUnreachable::Drop),
            shared: false,
            line: diagnostics.sources.line(name.span),
        };
        Some(Spanned { value, span: name.span })
    }
}

/// What is asked of a policy's paths.
fn probe(section: &ProbeSection, diagnostics: &mut Diagnostics) -> PolicyProbe {
    const SHORTEST: Duration = Duration::from_millis(100);
    let mut probe = PolicyProbe { interval: Duration::from_secs(5), max_rtt: None, max_loss: 30 };
    if let Some(interval) = &section.interval {
        if interval.value < SHORTEST {
            let diagnostic = Diagnostic::at(interval.span, Code::InvalidValue, "these probes come too often");
            diagnostics.push(diagnostic.label("at least 100ms"));
        }
        probe.interval = interval.value.max(SHORTEST);
    }
    if let Some(max_loss) = &section.max_loss {
        if max_loss.value > 100 {
            let title = format!("{} percent is more than all", max_loss.value);
            diagnostics.push(Diagnostic::at(max_loss.span, Code::InvalidValue, title).label("0 to 100"));
        }
        probe.max_loss = max_loss.value.min(100);
    }
    probe.max_rtt = section.max_rtt.as_ref().map(|field| field.value);
    probe
}

fn report_no_fallback(name: &Field<String>, diagnostics: &mut Diagnostics) {
    let title = format!("policy `{}` does not say what happens while its path is down", name.value);
    let diagnostic = Diagnostic::at(name.span, Code::NoFallback, title).label("`drop` is in force");
    diagnostics.push(diagnostic.help("write `if_unreachable: drop` to keep it so, or `any-path` or `next`"));
}

/// `from` and `to` without a common family match nothing; a single entry without its family on the other side is
/// only in vain.
fn report_families(policy: &str, entry: &PolicyEntry, diagnostics: &mut Diagnostics) {
    let (Some(from), Some(to)) = (&entry.from, &entry.to) else { return };
    for (name, list) in [("from", from), ("to", to)] {
        if list.value.is_empty() {
            let title = format!("policy `{policy}` can match no packet");
            let diagnostic =
                Diagnostic::at(list.span, Code::InvalidValue, title).label(format!("`{name}` is empty"));
            diagnostics.push(diagnostic.help("for everything, write `[0.0.0.0/0, \"::/0\"]`"));
        }
    }
    let is_v4 = |network: &Spanned<IpNet>| matches!(network.value, IpNet::V4(_));
    for v4 in [true, false] {
        let in_from = from.value.iter().any(|network| is_v4(network) == v4);
        let stray = to.value.iter().find(|network| is_v4(network) == v4);
        let (Some(stray), false) = (stray, in_from || from.value.is_empty()) else { continue };
        let (this, other) = if v4 { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
        let whole = to.value.iter().all(|network| is_v4(network) == v4);
        let line = diagnostics.sources.line(from.span);
        let title = if whole {
            format!("policy `{policy}` can match no packet")
        } else {
            format!("policy `{policy}` can match no packet to `{}`", stray.value)
        };
        let article = if v4 { "an IPv4" } else { "an IPv6" };
        let opposite = if v4 { "an IPv6" } else { "an IPv4" };
        let label = format!("{this} destination, but `from` on line {line} is {other} only");
        let diagnostic = Diagnostic::at(stray.span, Code::MixedFamilies, title).label(label);
        let diagnostic = diagnostic.help(format!("give `from` {article} network, or `to` {opposite} one"));
        diagnostics.push(diagnostic.severity(if whole { Severity::Error } else { Severity::Warning }));
    }
}

fn report_ports(entry: &PolicyEntry, diagnostics: &mut Diagnostics) {
    let Some(ports) = entry.ports.as_ref().or(entry.source_ports.as_ref()) else { return };
    if entry.protocol.as_ref().is_some_and(|protocol| protocol.value.has_ports()) {
        return;
    }
    let title = "ports mean nothing without a protocol that has them";
    let diagnostic =
        Diagnostic::at(ports.key, Code::PortsWithoutProtocol, title).label("which protocol's ports?");
    diagnostics.push(diagnostic.help("add `protocol: tcp` or `protocol: udp`"));
}
