//! The paths of a policy: names become nodes, and what cannot work is found.

use ipnet::IpNet;
use srv6::headend::Form;

use super::policies::Context;
use super::registry::RegistryNode;
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::config::load::{NameError, find_name};
use crate::config::node_file::{PathEntry, PolicyEntry};
use crate::config::record::Field;
use crate::config::settings::{Candidate, Exit, NodeName, Stop};
use crate::config::source::{Span, Spanned};
use crate::config::stop::{STRICT, StopEntry};
use crate::config::suggestion::{enumerate, nearest};

/// What IPv6 needs to get through (RFC 8200 §5).
const IPV6_MINIMUM_MTU: usize = 1280;
/// Paths of one policy.
const MAX_PATHS: usize = 16;
/// The largest share.
const MAX_WEIGHT: u8 = 100;

/// What one path says, or the policy in its place.
struct Way<'a> {
    via: Option<&'a Field<Vec<Spanned<StopEntry>>>>,
    exit: Option<&'a Field<String>>,
    priority: u16,
    weight: u8,
    /// Whether the list is signed.
    signed: bool,
}

impl Context<'_> {
    /// The paths of a policy in order; `None` if one cannot be understood.
    pub(super) fn candidates(
        &self,
        name: &Field<String>,
        entry: &PolicyEntry,
        diagnostics: &mut Diagnostics,
    ) -> Option<Vec<Candidate>> {
        let signed = entry.hmac.is_some();
        let own = Way { via: entry.via.as_ref(), exit: entry.exit.as_ref(), priority: 1, weight: 1, signed };
        let Some(paths) = &entry.paths else {
            return self.candidate(name, entry, &own, diagnostics).map(|candidate| vec![candidate]);
        };
        if paths.value.is_empty() || paths.value.len() > MAX_PATHS {
            let title = format!("policy `{}` has {} paths", name.value, paths.value.len());
            let diagnostic = Diagnostic::at(paths.span, Code::InvalidValue, title);
            diagnostics.push(diagnostic.label(format!("1 to {MAX_PATHS} belong here")));
            return None;
        }
        let candidates: Vec<Option<Candidate>> = (1..)
            .zip(&paths.value)
            .map(|(place, path)| {
                let way = Way {
                    via: path.value.via.as_ref().or(own.via),
                    exit: path.value.exit.as_ref().or(own.exit),
                    priority: path.value.priority.as_ref().map_or(place, |field| field.value),
                    weight: weight(&path.value, diagnostics),
                    signed,
                };
                self.candidate(name, entry, &way, diagnostics)
            })
            .collect();
        candidates.into_iter().collect()
    }

    fn candidate(
        &self,
        name: &Field<String>,
        entry: &PolicyEntry,
        way: &Way<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Candidate> {
        let via = self.via(&name.value, way, diagnostics);
        let Some(exit) = way.exit else {
            let title = "a policy lacks `exit`";
            let diagnostic = Diagnostic::at(name.span, Code::MissingField, title);
            diagnostics.push(diagnostic.label("`exit` is needed here, or in each of its `paths`"));
            return None;
        };
        let found = self.exit(&name.value, exit, entry, diagnostics);
        report_repeats(&name.value, &via, found.as_ref().map(|exit| (exit, exit_span(way))), diagnostics);
        self.report_strict(&name.value, &via, exit, diagnostics);
        self.report_length(&name.value, way, diagnostics);
        Some(Candidate {
            via: via.into_iter().flatten().map(|stop| stop.value).collect(),
            exit: found?,
            exit_strict: exit.value.ends_with(STRICT),
            priority: way.priority,
            weight: way.weight,
        })
    }

    /// The stops; `None` for those that could not be understood.
    fn via(&self, policy: &str, way: &Way<'_>, diagnostics: &mut Diagnostics) -> Vec<Option<Spanned<Stop>>> {
        let entries = way.via.into_iter().flat_map(|field| &field.value).enumerate();
        entries
            .map(|(index, entry)| {
                let nodes: Vec<Option<NodeName>> = entry
                    .value
                    .any_of
                    .iter()
                    .map(|stop| self.stop(policy, stop, index == 0, diagnostics))
                    .collect();
                let any_of = nodes.into_iter().collect::<Option<Vec<NodeName>>>()?;
                let stop = Stop { any_of, strict: entry.value.strict };
                Some(Spanned { value: stop, span: entry.span })
            })
            .collect()
    }

    /// Whether all stops have compressed SIDs and none asks for a direct link: then several share a segment, and even the
    /// longest list fits.
    fn is_compressed(&self, way: &Way<'_>) -> bool {
        let has = |name: &str| {
            let names: Vec<&NodeName> = self.registry.nodes().map(|node| &node.node.name).collect();
            let found = find_name(name.trim(), &names).ok().and_then(|name| self.registry.find(name));
            found.is_some_and(|node| node.node.usid.is_some())
        };
        let stops = way.via.into_iter().flat_map(|field| &field.value);
        let mut stops = stops.map(|stop| &stop.value);
        let exit = way.exit.is_some_and(|exit| has(&exit.value));
        !way.signed
            && exit
            && stops.all(|stop| !stop.strict && stop.any_of.iter().all(|name| has(&name.value)))
    }

    /// A direct link from one stop to the next has a segment of its own, which only nodes of ours have for all of
    /// their links.
    fn report_strict(
        &self,
        policy: &str,
        via: &[Option<Spanned<Stop>>],
        exit: &Field<String>,
        diagnostics: &mut Diagnostics,
    ) {
        let strict = via.iter().skip(1).map(|stop| stop.as_ref().filter(|stop| stop.value.strict));
        let strict = strict.map(|stop| stop.map(|stop| stop.span));
        let exit = exit.value.ends_with(STRICT).then_some(exit.span);
        for (before, place) in via.iter().zip(strict.chain([exit])) {
            let (Some(before), Some(place)) = (before, place) else { continue };
            let nodes = before.value.any_of.iter().filter_map(|name| self.registry.find(name));
            for foreign in nodes.filter(|node| node.node.sids.is_some()) {
                let title =
                    format!("`{}` cannot be told its next hop by `{policy}`", foreign.node.name.common_name);
                let diagnostic = Diagnostic::at(place, Code::ForeignStop, title);
                let diagnostic = diagnostic.label("the stop before runs other software");
                diagnostics
                    .push(diagnostic.help("leave the `!` away: the mesh finds the way between the two"));
            }
        }
    }

    /// One node that may be a stop.
    fn stop(
        &self,
        policy: &str,
        stop: &Spanned<String>,
        first: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<NodeName> {
        let node = self.node(policy, "goes via", &stop.value, stop.span, diagnostics)?;
        if node.node.name == *self.own {
            report_own_name(policy, first, stop.span, diagnostics);
        }
        if node.node.sids.as_ref().is_some_and(|sids| sids.end.is_none()) {
            let title = format!(
                "`{}` cannot be a stop of `{policy}`: the registry lists no `end` SID of it",
                stop.value
            );
            let diagnostic = Diagnostic::at(stop.span, Code::ForeignStop, title);
            diagnostics.push(diagnostic.label("this node runs other software"));
        }
        Some(node.node.name.clone())
    }

    fn exit(
        &self,
        policy: &str,
        exit: &Field<String>,
        entry: &PolicyEntry,
        diagnostics: &mut Diagnostics,
    ) -> Option<Exit> {
        if exit.value == "nearest" {
            return Some(Exit::Nearest);
        }
        let name = exit.value.strip_suffix(STRICT).unwrap_or(&exit.value);
        let node = self.node(policy, "leaves at", name, exit.span, diagnostics)?;
        self.report_foreign_exit(policy, node, exit, diagnostics);
        self.report_undeliverable(node, exit, entry, diagnostics);
        Some(Exit::Node(node.node.name.clone()))
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

    fn report_length(&self, policy: &str, way: &Way<'_>, diagnostics: &mut Diagnostics) {
        let Some(via) = way.via else { return };
        let stops = via.value.len().saturating_add(1);
        if self.is_compressed(way) {
            return;
        }
        let cost = |stops| match way.signed {
            true => srv6::overhead::with_hmac(stops, Form::Reduced),
            false => srv6::overhead::of_path(stops, Form::Reduced),
        };
        let left = |stops| self.tunnel_mtu.saturating_sub(cost(stops));
        if left(stops) >= IPV6_MINIMUM_MTU {
            return;
        }
        let fitting = (1..stops).rev().find(|stops| left(*stops) >= IPV6_MINIMUM_MTU).unwrap_or(0);
        let cost = cost(stops);
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

/// Where the exit of a path stands.
fn exit_span(way: &Way<'_>) -> Option<Span> {
    way.exit.map(|field| field.span)
}

fn weight(path: &PathEntry, diagnostics: &mut Diagnostics) -> u8 {
    let Some(field) = &path.weight else { return 1 };
    if field.value == 0 || field.value > MAX_WEIGHT {
        let title = format!("{} is no share", field.value);
        let diagnostic = Diagnostic::at(field.span, Code::InvalidValue, title);
        diagnostics.push(diagnostic.label(format!("1 to {MAX_WEIGHT}")));
    }
    field.value.clamp(1, MAX_WEIGHT)
}

fn report_repeats(
    policy: &str,
    via: &[Option<Spanned<Stop>>],
    exit: Option<(&Exit, Option<Span>)>,
    diagnostics: &mut Diagnostics,
) {
    let exit = exit.and_then(|(exit, span)| match exit {
        Exit::Node(name) => Some(Spanned { value: Stop::at(name.clone()), span: span? }),
        Exit::Nearest => None,
    });
    let stops: Vec<_> = via.iter().map(Option::as_ref).chain([exit.as_ref()]).collect();
    for pair in stops.windows(2) {
        let [Some(before), Some(after)] = pair else { continue };
        let ([before], [stop]) = (before.value.any_of.as_slice(), after.value.any_of.as_slice()) else {
            continue;
        };
        if before == stop {
            let title = format!("policy `{policy}` names `{}` twice in a row", stop.common_name);
            let diagnostic =
                Diagnostic::at(after.span, Code::RepeatedStop, title).label("the packet is there already");
            diagnostics.push(diagnostic.help("name it once; a node may come again later in the list"));
        }
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
