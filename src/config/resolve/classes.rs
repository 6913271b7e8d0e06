//! Policies for packets of one interface, or with one firewall mark: what the host must make possible.

use super::sections::tun_name;
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::node_file::{NodeFile, PolicyEntry};
use crate::config::record::Field;
use crate::config::scalar::Mark;
use crate::config::settings::KernelSettings;
use crate::policy::{Class, Membership, count_classes};

/// The longest name of an interface, in octets.
const LONGEST_NAME: usize = 15;

/// What a policy asks of how its packets came.
pub(super) fn membership(entry: &PolicyEntry) -> Membership {
    Membership {
        ingress: entry.ingress.as_ref().map(|field| field.value.clone()),
        fwmark: entry.fwmark.as_ref().map(|field| field.value.0),
    }
}

/// Reports what can't work in the policies of the node file.
pub(super) fn report(file: &NodeFile, diagnostics: &mut Diagnostics) {
    let entries: Vec<&PolicyEntry> =
        file.policies.iter().flat_map(|field| &field.value).map(|entry| &entry.value).collect();
    for entry in &entries {
        if let Some(ingress) = &entry.ingress {
            report_ingress(file, ingress, diagnostics);
        }
        if let Some(mark) = &entry.fwmark {
            report_mark(file, mark, diagnostics);
        }
    }
    let memberships: Vec<Membership> = entries.iter().map(|entry| membership(entry)).collect();
    let Some(last) = entries.iter().rev().find_map(|entry| place(entry)) else { return };
    let count = count_classes(&memberships);
    if count > Class::MOST {
        let title = format!("these policies make {count} classes of traffic");
        let label = format!("each takes a TUN, and {} are the most", Class::MOST);
        let help = "each interface and each mark is a class, and so is each pair of them";
        diagnostics.push(Diagnostic::at(last, Code::InvalidValue, title).label(label).help(help));
    }
    let tun = tun_name(file);
    let longest = LONGEST_NAME - "-16".len();
    if tun.len() > longest {
        let title = "classes of traffic have TUNs of their own, for whose names there is no room";
        let label = format!("`{tun}-1` and so on: at most {longest} characters may stand before the dash");
        let diagnostic = Diagnostic::at(last, Code::InvalidValue, title).label(label);
        diagnostics.push(diagnostic.help("give `kernel.tun` a shorter name"));
    }
    report_priorities(file, last, diagnostics);
}

/// Policies of the registry are followed at both their ends, of which only one has the interface or the mark.
pub(super) fn report_in_registry(entry: &PolicyEntry, diagnostics: &mut Diagnostics) -> bool {
    let Some(place) = place(entry) else { return false };
    let title = "a policy of the registry cannot ask for an interface or a mark";
    let diagnostic = Diagnostic::at(place, Code::InvalidValue, title).label("means nothing at the other end");
    diagnostics.push(diagnostic.help("put the policy into the node file"));
    true
}

fn place(entry: &PolicyEntry) -> Option<crate::config::source::Span> {
    entry.ingress.as_ref().map(|field| field.span).or(entry.fwmark.as_ref().map(|field| field.span))
}

fn report_ingress(file: &NodeFile, ingress: &Field<String>, diagnostics: &mut Diagnostics) {
    let name = &ingress.value;
    let bad = name.is_empty()
        || name.len() > LONGEST_NAME
        || name.contains(|letter: char| letter == '/' || letter.is_whitespace());
    if bad {
        let title = format!("`{name}` is no name of an interface");
        let label = "1 to 15 characters without slash and space";
        diagnostics.push(Diagnostic::at(ingress.span, Code::InvalidValue, title).label(label));
    } else if *name == tun_name(file) {
        let title = "what comes out of the mesh is not steered again";
        let diagnostic = Diagnostic::at(ingress.span, Code::InvalidValue, title).label("this is our own TUN");
        diagnostics.push(diagnostic.help("name the interface by which the packets come to this host"));
    }
}

fn report_mark(file: &NodeFile, mark: &Field<Mark>, diagnostics: &mut Diagnostics) {
    let own = file.kernel.as_ref().and_then(|section| section.value.fwmark.as_ref());
    let own = own.map_or(KernelSettings::default().fwmark, |field| field.value.0);
    let endpoints = file.endpoints.iter().flat_map(|field| &field.value);
    let mut marks =
        endpoints.filter_map(|entry| entry.value.fwmark.as_ref()).map(|field| field.value.0).chain([own]);
    if mark.value.0 == 0 {
        let diagnostic = Diagnostic::at(mark.span, Code::InvalidValue, "0 is the mark of unmarked packets");
        diagnostics.push(diagnostic.label("1 or more"));
    } else if marks.any(|own| own == mark.value.0) {
        let title = format!("{:#x} is the mark of our own encrypted packets", mark.value.0);
        let diagnostic = Diagnostic::at(mark.span, Code::InvalidValue, title);
        diagnostics.push(diagnostic.label("they would be sent into the mesh again").help("take another one"));
    }
}

/// The rules of classes stand between ours for encrypted packets and those for mesh routes.
fn report_priorities(file: &NodeFile, place: crate::config::source::Span, diagnostics: &mut Diagnostics) {
    let default = KernelSettings::default();
    let section = file.kernel.as_ref().map(|field| &field.value);
    let value = |field: Option<&Field<u32>>, default: u32| field.map_or(default, |field| field.value);
    let underlay =
        value(section.and_then(|kernel| kernel.underlay_priority.as_ref()), default.underlay_priority);
    let overlay =
        value(section.and_then(|kernel| kernel.overlay_priority.as_ref()), default.overlay_priority);
    if underlay == 0 || overlay.saturating_sub(underlay) < 2 {
        let title = "there is no room for the rules of this policy";
        let label = "they stand right before and right behind `underlay_priority`";
        let help = "`overlay_priority` must be greater by at least 2, and `underlay_priority` at least 1";
        diagnostics.push(Diagnostic::at(place, Code::InvalidValue, title).label(label).help(help));
    }
}
