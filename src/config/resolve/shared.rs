//! Policies of the registry, which both ends follow: the node that they stand at, and the exit on the way back.

use std::net::Ipv6Addr;

use ipnet::IpNet;

use super::classes;
use super::policies::Context;
use super::registry::RegistryNode;
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::load::find_name;
use crate::config::node_file::PolicyEntry;
use crate::config::settings::{Candidate, Exit, NodeName, Policy, Stop};
use crate::config::source::Spanned;
use crate::config::stop::STRICT;

/// The policies of the registry that this node follows.
pub(super) fn resolve(context: &Context<'_>, diagnostics: &mut Diagnostics) -> Vec<Spanned<Policy>> {
    let mut found = Vec::new();
    for node in context.registry.nodes() {
        for entry in &node.policies {
            let begins = node.node.name == *context.own;
            if !begins && !exits(context, &entry.value).any(|name| name == *context.own) {
                continue;
            }
            let networks = networks(node);
            let theirs =
                Context { own: &node.node.name, own_networks: &networks, own_offer: false, ..*context };
            let seen_from = if begins { context } else { &theirs };
            let Some(mut policy) = seen_from.policy(&entry.value, diagnostics) else { continue };
            policy.value.shared = true;
            let local = classes::report_in_registry(&entry.value, diagnostics);
            if local || report_unmirrorable(&policy, diagnostics) {
                continue;
            }
            if begins {
                report_foreign(context, &policy, diagnostics);
                found.push(policy);
            } else {
                let back = mirrored(&policy.value, &node.node.name, context.own);
                found.push(Spanned { value: back, span: policy.span });
            }
        }
    }
    found
}

/// The nodes where an entry's paths end.
fn exits<'a>(context: &'a Context<'_>, entry: &'a PolicyEntry) -> impl Iterator<Item = NodeName> + 'a {
    let names: Vec<&NodeName> = context.registry.nodes().map(|node| &node.node.name).collect();
    let paths = entry.paths.iter().flat_map(|field| &field.value);
    let fields = paths.filter_map(|path| path.value.exit.as_ref()).chain(entry.exit.as_ref());
    fields.filter_map(move |field| {
        let name = field.value.strip_suffix(STRICT).unwrap_or(&field.value);
        find_name(name.trim(), &names).ok().cloned()
    })
}

fn networks(node: &RegistryNode) -> Vec<IpNet> {
    node.node.announce.clone()
}

/// Whether one end could not know what the other chooses.
fn report_unmirrorable(policy: &Spanned<Policy>, diagnostics: &mut Diagnostics) -> bool {
    let chooses = |candidate: &Candidate| {
        candidate.exit == Exit::Nearest || candidate.via.iter().any(|stop| stop.any_of.len() > 1)
    };
    let found = policy.value.candidates.iter().any(chooses);
    if found {
        let title = format!("the policy `{}` of the registry leaves a choice open", policy.value.name);
        let diagnostic = Diagnostic::at(policy.span, Code::InvalidValue, title);
        let diagnostic = diagnostic.label("the way back could take other stops");
        diagnostics
            .push(diagnostic.help("name each stop and the exit, or put the policy into the node file"));
    }
    found
}

/// The way back at `exit`: what comes from there to the sources, over the same stops in reverse order.
fn mirrored(policy: &Policy, begin: &NodeName, exit: &NodeName) -> Policy {
    let ends_here = |candidate: &&Candidate| candidate.exit == Exit::Node(exit.clone());
    Policy {
        name: format!("{}, back", policy.name),
        from: policy.to.clone(),
        to: policy.from.clone(),
        ports: policy.source_ports.clone(),
        source_ports: policy.ports.clone(),
        candidates: policy.candidates.iter().filter(ends_here).map(|path| reversed(path, begin)).collect(),
        ..policy.clone()
    }
}

/// A direct link that was asked for is the same link from its other side.
fn reversed(path: &Candidate, begin: &NodeName) -> Candidate {
    // Whether the hop behind each stop is a direct one, seen from the beginning.
    let behind = path.via.iter().skip(1).map(|stop| stop.strict).chain([path.exit_strict]);
    let via = path.via.iter().zip(behind).map(|(stop, strict)| Stop { any_of: stop.any_of.clone(), strict });
    let mut via: Vec<Stop> = via.collect();
    via.reverse();
    Candidate {
        exit: Exit::Node(begin.clone()),
        exit_strict: path.via.first().map_or(path.exit_strict, |first| first.strict),
        via,
        ..path.clone()
    }
}

/// An exit that runs other software follows no policy of ours: somebody has to tell its kernel.
fn report_foreign(context: &Context<'_>, policy: &Spanned<Policy>, diagnostics: &mut Diagnostics) {
    let Some(begin) = context.registry.find(context.own) else { return };
    for path in &policy.value.candidates {
        let Exit::Node(name) = &path.exit else { continue };
        let Some(exit) = context.registry.find(name).filter(|node| node.node.sids.is_some()) else {
            continue;
        };
        let back = reversed(path, context.own);
        let stops =
            back.via.iter().flat_map(|stop| &stop.any_of).filter_map(|name| context.registry.find(name));
        let segments: Option<Vec<String>> =
            stops.map(waypoint).chain([last_segment(begin)]).map(|sid| Some(sid?.to_string())).collect();
        let Some(segments) = segments.map(|segments| segments.join(",")) else { continue };
        let commands = policy.value.from.iter().map(|network| {
            let family = if network.addr().is_ipv4() { "-4" } else { "-6" };
            format!(
                "ip {family} route replace {network} encap seg6 mode encap.red segs {segments} dev DEVICE"
            )
        });
        let title = format!(
            "`{}` runs other software: the way back of `{}` has to be set there",
            exit.node.name.common_name, policy.value.name
        );
        let diagnostic =
            Diagnostic::at(policy.span, Code::MirrorByHand, title).label("this node cannot do it");
        diagnostics.push(diagnostic.help(format!("there: `{}`", commands.collect::<Vec<_>>().join("`, `"))));
    }
}

fn waypoint(node: &RegistryNode) -> Option<Ipv6Addr> {
    match &node.node.sids {
        Some(sids) => sids.end,
        None => srv6::Locator::new(node.node.locator).ok().map(|locator| locator.end()),
    }
}

fn last_segment(node: &RegistryNode) -> Option<Ipv6Addr> {
    srv6::Locator::new(node.node.locator).ok().map(|locator| locator.dt46())
}
