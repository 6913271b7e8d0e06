//! Whether the registry knows this node as the node file describes it.

use super::Facts;
use super::registry::{Registry, RegistryNode};
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::config::key::fingerprint;
use crate::config::node_file::NodeFile;
use crate::config::settings::{LocalEndpoint, NodeName};
use crate::config::source::Spanned;
use crate::config::suggestion::{enumerate, nearest};

/// Compares names, endpoints and keys.
pub(super) fn check(
    file: &NodeFile,
    name: &NodeName,
    endpoints: &[Spanned<LocalEndpoint>],
    registry: &Registry,
    facts: &Facts,
    diagnostics: &mut Diagnostics,
) {
    let Some(own) = registry.find(name) else {
        report_absence(file, name, registry, facts, diagnostics);
        return;
    };
    for endpoint in endpoints {
        check_endpoint(endpoint, own, diagnostics);
    }
    check_key(own, facts, diagnostics);
}

fn report_absence(
    file: &NodeFile,
    name: &NodeName,
    registry: &Registry,
    facts: &Facts,
    diagnostics: &mut Diagnostics,
) {
    let siblings = || {
        registry.nodes().map(|node| &node.node.name).filter(|other| other.organization == name.organization)
    };
    let known_organization = siblings().next().is_some();
    let (field, what) = if known_organization {
        (&file.common_name, format!("`{name}`"))
    } else {
        (&file.organization, format!("the organization `{}`", name.organization))
    };
    let Some(field) = field else { return };
    let registry_name =
        diagnostics.sources.get(facts.registry_source).map(|source| source.name.clone()).unwrap_or_default();
    let title = format!("{what} is not in the registry {registry_name}");
    let diagnostic = Diagnostic::at(field.span, Code::NotInRegistry, title).label("no peer knows this node");
    let meant = if known_organization {
        nearest(&name.common_name, siblings().map(|other| other.common_name.as_str()))
    } else {
        nearest(&name.organization, registry.nodes().map(|node| node.node.name.organization.as_str()))
    };
    diagnostics.push(match meant {
        Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
        None => diagnostic.help("add the block that `viamesh init` printed to the registry, on all nodes"),
    });
}

fn check_endpoint(endpoint: &Spanned<LocalEndpoint>, own: &RegistryNode, diagnostics: &mut Diagnostics) {
    let local = &endpoint.value;
    let listed = &own.node.endpoints;
    let Some(remote) = listed.iter().find(|remote| remote.serial_number == local.serial_number) else {
        let title =
            format!("the registry lists no endpoint `{}` of `{}`", local.serial_number, own.node.name);
        let diagnostic =
            Diagnostic::at(endpoint.span, Code::UnlistedEndpoint, title).label("peers would refuse it");
        let serials = enumerate(listed.iter().map(|remote| remote.serial_number.as_str()));
        diagnostics.push(if listed.is_empty() {
            diagnostic
        } else {
            diagnostic.help(format!("it lists {serials}"))
        });
        return;
    };
    if remote.family != local.family {
        let title = format!(
            "the registry says that endpoint `{}` is `{}`",
            local.serial_number,
            remote.family.name()
        );
        let diagnostic = Diagnostic::at(endpoint.span, Code::UnlistedEndpoint, title);
        diagnostics.push(diagnostic.label(format!("here it is `{}`", local.family.name())));
    } else if remote.port != local.port && remote.address.is_some() {
        let title = format!("the registry names port {} for endpoint `{}`", remote.port, local.serial_number);
        let diagnostic =
            Diagnostic::at(endpoint.span, Code::UnlistedEndpoint, title).severity(Severity::Warning);
        let diagnostic = diagnostic.label(format!("here it is {}", local.port));
        diagnostics
            .push(diagnostic.help("right only if something in front of this host translates the port"));
    }
}

fn check_key(own: &RegistryNode, facts: &Facts, diagnostics: &mut Diagnostics) {
    let Some((path, key)) = &facts.key else { return };
    let Some(place) = own.key_place else { return };
    if own.node.public_keys.is_empty() || own.node.public_keys.contains(key) {
        return;
    }
    let owner = if own.has_own_key { own.node.name.to_string() } else { own.node.name.organization.clone() };
    let listed = own.node.public_keys.iter().map(fingerprint).collect::<Vec<_>>().join(" or ");
    let path = path.display();
    let title = format!("the private key is not the one the registry names for `{owner}`");
    let label = format!("fingerprint {listed}, but {path} has {}", fingerprint(key));
    let diagnostic = Diagnostic::at(place, Code::KeyMismatch, title).label(label);
    diagnostics
        .push(diagnostic.help(format!("`viamesh key public {path}` prints the block that belongs here")));
}
