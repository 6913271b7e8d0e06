//! This node's endpoints.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Facts, not_used};
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::config::node_file::{EndpointEntry, NodeFile};
use crate::config::record::Field;
use crate::config::scalar::Mark;
use crate::config::settings::{Bind, Family, LocalEndpoint};
use crate::config::source::Spanned;

/// Bits of a firewall mark that others use on the same host.
const FOREIGN_MARKS: [(u32, &str); 2] = [(0x00ff_0000, "Tailscale"), (0x0001_bd00, "NetBird")];

/// All endpoints that can be understood, with the places of their serial numbers.
pub(super) fn resolve(
    file: &NodeFile,
    facts: &Facts,
    diagnostics: &mut Diagnostics,
) -> Vec<Spanned<LocalEndpoint>> {
    let Some(entries) = &file.endpoints else { return Vec::new() };
    if entries.value.is_empty() {
        let diagnostic = Diagnostic::at(entries.span, Code::InvalidValue, "this node has no endpoint");
        diagnostics.push(diagnostic.label("at least one is needed to send and receive"));
    }
    let mut endpoints: Vec<Spanned<LocalEndpoint>> = Vec::new();
    for entry in &entries.value {
        report_unused(&entry.value, diagnostics);
        let Some(endpoint) = endpoint(&entry.value, diagnostics) else { continue };
        if endpoint.value.family == Family::Ip6 && !facts.has_ipv6 {
            let place = entry.value.address_family.as_ref().map_or(entry.span, |family| family.span);
            let diagnostic = Diagnostic::at(place, Code::NoIpv6, "this host has no IPv6");
            diagnostics.push(diagnostic.label("this endpoint will not come up"));
        }
        report_duplicate(&endpoint, &endpoints, diagnostics);
        endpoints.push(endpoint);
    }
    endpoints
}

fn endpoint(entry: &EndpointEntry, diagnostics: &mut Diagnostics) -> Option<Spanned<LocalEndpoint>> {
    let serial_number = entry.serial_number.as_ref()?;
    let family = entry.address_family.as_ref()?.value;
    let port = entry.port.as_ref()?.value.0;
    let bind = entry.address.as_ref().map_or(Bind::Any, |address| bind(address, family, diagnostics));
    if let Some(mark) = &entry.fwmark {
        report_foreign_mark(mark, diagnostics);
    }
    let fwmark = entry.fwmark.as_ref().map(|mark| mark.value.0);
    let value = LocalEndpoint { serial_number: serial_number.value.clone(), family, bind, port, fwmark };
    Some(Spanned { value, span: serial_number.span })
}

fn bind(address: &Field<String>, family: Family, diagnostics: &mut Diagnostics) -> Bind {
    let text = address.value.trim();
    let bind = match (text.parse::<IpAddr>(), text.parse::<IpNet>()) {
        (Ok(ip), _) if ip.is_unspecified() => Bind::Any,
        (Ok(ip), _) => Bind::Address(ip),
        (_, Ok(network)) if network.prefix_len() == network.max_prefix_len() => Bind::Address(network.addr()),
        (_, Ok(network)) => Bind::Network(network.trunc()),
        _ => {
            // ranet takes a name here and then binds to any address; so do we.
            let diagnostic =
                Diagnostic::at(address.span, Code::NotUsed, format!("`{text}` is no address of this host"));
            let diagnostic =
                diagnostic.label("neither an IP address nor a network; binding to all addresses");
            diagnostics.push(
                diagnostic.help("the registry says where others find this node; here, leave `address` out"),
            );
            Bind::Any
        }
    };
    let found = match bind {
        Bind::Any => family,
        Bind::Address(ip) => Family::of(ip),
        Bind::Network(network) => Family::of(network.addr()),
    };
    if found != family {
        let title = format!("`{text}` is no `{}` address", family.name());
        let diagnostic = Diagnostic::at(address.span, Code::InvalidValue, title);
        diagnostics.push(diagnostic.label(format!("this is `{}`", found.name())));
    }
    bind
}

/// Warns of a mark with bits that other software on the host reads.
pub(super) fn report_foreign_mark(mark: &Field<Mark>, diagnostics: &mut Diagnostics) {
    let Some((bits, owner)) = FOREIGN_MARKS.iter().find(|(bits, _)| mark.value.0 & bits != 0) else { return };
    let title = format!("the mark {:#x} has bits that {owner} uses", mark.value.0);
    let diagnostic = Diagnostic::at(mark.span, Code::ReservedMark, title);
    diagnostics.push(
        diagnostic
            .label(format!("{owner} reads the bits {bits:#x}"))
            .help("choose a mark without them, such as 0x76000000"),
    );
}

fn report_unused(entry: &EndpointEntry, diagnostics: &mut Diagnostics) {
    if let Some(updown) = &entry.updown {
        let why = "accepted for ranet's sake, and not run";
        diagnostics.push(
            not_used(updown, "updown", why)
                .help("routes come from Babel; delete the line when ranet no longer reads this file"),
        );
    }
}

fn report_duplicate(
    endpoint: &Spanned<LocalEndpoint>,
    earlier: &[Spanned<LocalEndpoint>],
    diagnostics: &mut Diagnostics,
) {
    let new = &endpoint.value;
    for old in earlier {
        let line = diagnostics.sources.line(old.span);
        let what = if old.value.serial_number == new.serial_number {
            format!("serial number `{}`", new.serial_number)
        } else if (old.value.family, old.value.port, old.value.bind) == (new.family, new.port, new.bind) {
            format!("family, port and address of endpoint `{}`", old.value.serial_number)
        } else {
            continue;
        };
        let title = format!("two endpoints of this node have one {what}");
        let diagnostic = Diagnostic::at(endpoint.span, Code::DuplicateEndpoint, title);
        diagnostics.push(diagnostic.label(format!("the first is on line {line}")).severity(Severity::Error));
        return;
    }
}
