//! Policies: names become nodes, and paths that cannot work are found.

use ipnet::IpNet;
use srv6::headend::Form;

use super::policy_order;
use super::registry::{Registry, RegistryNode};
use super::sections::tunnel_mtu;
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::config::load::{NameError, find_name};
use crate::config::node_file::{NodeFile, PolicyEntry};
use crate::config::record::{Field, OneOrMany};
use crate::config::scalar::PortRange;
use crate::config::settings::{Exit, IfUnreachable, LocalEndpoint, NodeName, Policy};
use crate::config::source::{Span, Spanned};
use crate::config::suggestion::{enumerate, nearest};

/// What IPv6 needs to get through (RFC 8200 §5).
const IPV6_MINIMUM_MTU: usize = 1280;

/// What all policies are checked against.
struct Context<'a> {
    own: &'a NodeName,
    /// What this node announces, its addresses included.
    own_networks: &'a [IpNet],
    own_offer: bool,
    registry: &'a Registry,
    tunnel_mtu: usize,
}

/// All policies that can be understood, in file order.
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
    fn policy(&self, entry: &PolicyEntry, diagnostics: &mut Diagnostics) -> Option<Spanned<Policy>> {
        let name = entry.name.as_ref()?;
        report_families(&name.value, entry, diagnostics);
        report_ports(entry, diagnostics);
        let if_unreachable = entry.if_unreachable.as_ref().map(|field| field.value);
        if if_unreachable.is_none() {
            report_no_fallback(name, diagnostics);
        }
        let via = self.via(&name.value, entry, diagnostics);
        let exit = entry.exit.as_ref().and_then(|exit| self.exit(&name.value, exit, entry, diagnostics));
        self.report_repeats(&name.value, &via, exit.as_ref().map(|(exit, span)| (exit, *span)), diagnostics);
        self.report_length(&name.value, entry, diagnostics);
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
            via: via.into_iter().flatten().map(|stop| stop.value).collect(),
            exit: exit?.0,
            if_unreachable: if_unreachable.unwrap_or(IfUnreachable::Drop),
            line: diagnostics.sources.line(name.span),
        };
        Some(Spanned { value, span: name.span })
    }

    /// The stops; `None` for those that could not be understood.
    fn via(
        &self,
        policy: &str,
        entry: &PolicyEntry,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Option<Spanned<NodeName>>> {
        let mut stops = Vec::new();
        for (index, stop) in entry.via.iter().flat_map(|field| &field.value).enumerate() {
            let Some(node) = self.node(policy, "goes via", &stop.value, stop.span, diagnostics) else {
                stops.push(None);
                continue;
            };
            if node.node.name == *self.own {
                report_own_name(policy, index == 0, stop.span, diagnostics);
            }
            if node.node.sids.as_ref().is_some_and(|sids| sids.end.is_none()) {
                let title = format!(
                    "`{}` cannot be a stop of `{policy}`: the registry lists no `end` SID of it",
                    stop.value
                );
                diagnostics.push(
                    Diagnostic::at(stop.span, Code::ForeignStop, title)
                        .label("this node runs other software"),
                );
            }
            stops.push(Some(Spanned { value: node.node.name.clone(), span: stop.span }));
        }
        stops
    }

    fn exit(
        &self,
        policy: &str,
        exit: &Field<String>,
        entry: &PolicyEntry,
        diagnostics: &mut Diagnostics,
    ) -> Option<(Exit, Span)> {
        if exit.value == "nearest" {
            return Some((Exit::Nearest, exit.span));
        }
        let node = self.node(policy, "leaves at", &exit.value, exit.span, diagnostics)?;
        self.report_foreign_exit(policy, node, exit, diagnostics);
        self.report_undeliverable(node, exit, entry, diagnostics);
        Some((Exit::Node(node.node.name.clone()), exit.span))
    }

    /// The node that a policy means.
    fn node(
        &self,
        policy: &str,
        verb: &str,
        wanted: &str,
        place: Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<&RegistryNode> {
        let names: Vec<&NodeName> = self.registry.nodes().map(|node| &node.node.name).collect();
        let error = match find_name(wanted.trim(), &names) {
            Ok(name) => return self.registry.find(name),
            Err(error) => error,
        };
        if let Some(bare) = wanted.strip_suffix('!') {
            let title = format!("policy `{policy}` {verb} `{wanted}`: strict hops are not built yet");
            let diagnostic =
                Diagnostic::at(place, Code::InvalidValue, title).label("`!` is reserved for them");
            diagnostics
                .push(diagnostic.help(format!("write `{bare}`: the mesh finds the way between two stops")));
            return None;
        }
        let what = format!("policy `{policy}` {verb} `{wanted}`");
        diagnostics.push(name_error(&what, wanted, &error, &names, place));
        None
    }

    fn report_foreign_exit(
        &self,
        policy: &str,
        node: &RegistryNode,
        exit: &Field<String>,
        diagnostics: &mut Diagnostics,
    ) {
        let Some(sids) = &node.node.sids else { return };
        if [sids.dt4, sids.dt6, sids.dt46, sids.internet].iter().all(Option::is_none) {
            let title = format!(
                "`{}` cannot be the exit of `{policy}`: the registry lists no SID of it that decapsulates",
                exit.value
            );
            diagnostics.push(
                Diagnostic::at(exit.span, Code::ForeignStop, title).label("this node runs other software"),
            );
        }
    }

    /// Says what the registry's remarks already prove; what Babel says, only the running mesh knows.
    fn report_undeliverable(
        &self,
        node: &RegistryNode,
        exit: &Field<String>,
        entry: &PolicyEntry,
        diagnostics: &mut Diagnostics,
    ) {
        let is_own = node.node.name == *self.own;
        let offers = if is_own { self.own_offer } else { node.node.offer_internet };
        if offers || !(is_own || node.says_what_it_delivers()) {
            return;
        }
        let announce = if is_own { self.own_networks } else { node.node.announce.as_slice() };
        let locator = IpNet::V6(node.node.locator);
        let overlaps = |to: &IpNet, network: &IpNet| network.contains(to) || to.contains(network);
        let delivers = |to: &IpNet| announce.iter().chain([&locator]).any(|network| overlaps(to, network));
        let mut to = entry.to.iter().flat_map(|field| &field.value);
        let Some(to) = to.find(|to| to.value.prefix_len() == 0 || !delivers(&to.value)) else { return };
        let internet = to.value.prefix_len() == 0;
        let title = if internet {
            format!("`{}` does not offer the internet", exit.value)
        } else {
            format!("`{}` does not announce {}", exit.value, to.value)
        };
        let networks = announce.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let label = if networks.is_empty() {
            "it announces nothing".to_owned()
        } else {
            format!("`{}` announces only {networks}", exit.value)
        };
        let diagnostic = Diagnostic::at(exit.span, Code::ExitCannotDeliver, title).label(label);
        diagnostics.push(if internet { diagnostic.help(self.who_offers()) } else { diagnostic });
    }

    /// Where packets to the internet could leave instead.
    fn who_offers(&self) -> String {
        let offering = self.registry.nodes().filter(|node| node.offer == Some(true));
        let names: Vec<_> = offering.map(|node| node.node.name.to_string()).collect();
        if names.is_empty() {
            return "write `exit: nearest` for the nearest node that offers it".to_owned();
        }
        format!("offering it are: {}. Or write `exit: nearest`", names.join(", "))
    }

    fn report_repeats(
        &self,
        policy: &str,
        via: &[Option<Spanned<NodeName>>],
        exit: Option<(&Exit, Span)>,
        diagnostics: &mut Diagnostics,
    ) {
        let exit = exit.and_then(|(exit, span)| match exit {
            Exit::Node(name) => Some(Spanned { value: name.clone(), span }),
            Exit::Nearest => None,
        });
        let stops: Vec<_> = via.iter().map(Option::as_ref).chain([exit.as_ref()]).collect();
        for pair in stops.windows(2) {
            let [Some(before), Some(after)] = pair else { continue };
            if before.value == after.value {
                let title = format!("policy `{policy}` names `{}` twice in a row", after.value.common_name);
                let diagnostic = Diagnostic::at(after.span, Code::RepeatedStop, title)
                    .label("the packet is there already");
                diagnostics.push(diagnostic.help("name it once; a node may come again later in the list"));
            }
        }
    }

    fn report_length(&self, policy: &str, entry: &PolicyEntry, diagnostics: &mut Diagnostics) {
        let Some(via) = &entry.via else { return };
        let stops = via.value.len().saturating_add(1);
        let left = |stops| self.tunnel_mtu.saturating_sub(srv6::overhead::of_path(stops, Form::Reduced));
        if left(stops) >= IPV6_MINIMUM_MTU {
            return;
        }
        let fitting = (1..stops).rev().find(|stops| left(*stops) >= IPV6_MINIMUM_MTU).unwrap_or(0);
        let cost = srv6::overhead::of_path(stops, Form::Reduced);
        let title = format!(
            "policy `{policy}` leaves {} bytes per packet, IPv6 needs {IPV6_MINIMUM_MTU}",
            left(stops)
        );
        let label = format!("{stops} stops cost {cost} of the tunnel's {} bytes", self.tunnel_mtu);
        let what =
            if stops - fitting == 1 { "drop one".to_owned() } else { format!("drop {}", stops - fitting) };
        let diagnostic = Diagnostic::at(via.span, Code::PathTooLong, title).label(label);
        diagnostics.push(diagnostic.help(format!(
            "at most {fitting} stops fit (exit included); {what}, or raise the MTU of the underlay"
        )));
    }
}

fn name_error(
    what: &str,
    wanted: &str,
    error: &NameError<'_>,
    names: &[&NodeName],
    place: Span,
) -> Diagnostic {
    match error {
        NameError::Unknown => {
            let title = format!("{what}, which is not in the registry");
            let diagnostic = Diagnostic::at(place, Code::UnknownNode, title).label("no such node");
            let short = names.iter().map(|name| name.common_name.as_str());
            let full: Vec<String> = names.iter().map(ToString::to_string).collect();
            let all = "`viamesh registry` lists all nodes";
            match nearest(wanted, short.chain(full.iter().map(String::as_str))) {
                Some(meant) => diagnostic.help(format!("did you mean `{meant}`? {all}")),
                None => diagnostic.help(all),
            }
        }
        NameError::Ambiguous(found) => {
            let title = format!("{what}, and several nodes are called so");
            let full: Vec<String> = found.iter().map(ToString::to_string).collect();
            let diagnostic = Diagnostic::at(place, Code::AmbiguousNode, title).label("which one?");
            diagnostic.help(format!("there are {}", enumerate(full.iter().map(String::as_str))))
        }
    }
}

fn report_no_fallback(name: &Field<String>, diagnostics: &mut Diagnostics) {
    let title = format!("policy `{}` does not say what happens while its path is down", name.value);
    let diagnostic = Diagnostic::at(name.span, Code::NoFallback, title).label("`drop` is in force");
    diagnostics.push(diagnostic.help("write `if_unreachable: drop` to keep it so, or `any-path` or `next`"));
}

fn report_own_name(policy: &str, first: bool, place: Span, diagnostics: &mut Diagnostics) {
    let title = format!("policy `{policy}` goes via this node itself");
    let diagnostic = Diagnostic::at(place, Code::OwnName, title);
    diagnostics.push(if first {
        let diagnostic = diagnostic.severity(Severity::Error).label("the packet is here already");
        diagnostic.help("the list is the journey after leaving this node: begin with the next stop")
    } else {
        diagnostic.label("the packet comes back here")
    });
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
