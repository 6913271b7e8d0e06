//! The section `ike`.

use std::path::Path;

use super::registry::Registry;
use super::{ike_identity, not_used};
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::load::{NameError, find_name};
use crate::config::node_file::{NodeFile, SharedKeyEntry};
use crate::config::settings::{IkeSettings, NodeName};
use crate::config::source::Spanned;
use crate::config::suggestion::nearest;

/// Fills in defaults, makes nodes of names, and compares with what the registry says.
pub(super) fn resolve(
    file: &NodeFile,
    directory: &Path,
    private_key: &Path,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) -> IkeSettings {
    let section = file.ike.as_ref().map(|field| &field.value);
    let shared_keys: Vec<_> = section
        .and_then(|section| section.shared_keys.as_ref())
        .iter()
        .flat_map(|field| &field.value)
        .filter_map(|entry| shared_key(entry, directory, registry, diagnostics))
        .collect();
    let keyless = registry
        .nodes()
        .filter(|node| node.node.shared_key && !shared_keys.iter().any(|(name, _)| *name == node.node.name));
    for node in keyless.filter(|_| section.is_some_and(|section| section.shared_keys.is_some())) {
        let title = format!("`ike.shared_keys` has no key for `{}`", node.node.name);
        let diagnostic = Diagnostic::at(node.name_place, Code::NoSharedKey, title);
        diagnostics.push(diagnostic.label("it proves itself by a shared key"));
    }
    let Some(section) = section else { return IkeSettings::default() };
    if let (Some(field), None) = (&section.certificate_key, &section.certificate) {
        diagnostics.push(not_used(field, "certificate_key", "there is no `certificate`"));
    }
    IkeSettings {
        post_quantum: section.post_quantum.as_ref().is_some_and(|field| field.value),
        id: section.id.as_ref().and_then(|field| ike_identity::parse(field, diagnostics)),
        certificate: section.certificate.as_ref().map(|field| {
            let key = section.certificate_key.as_ref();
            let key = key.map_or_else(|| private_key.to_owned(), |field| directory.join(&field.value));
            (directory.join(&field.value), key)
        }),
        shared_keys,
    }
}

fn shared_key(
    entry: &Spanned<SharedKeyEntry>,
    directory: &Path,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) -> Option<(NodeName, std::path::PathBuf)> {
    let (wanted, file) = (entry.value.node.as_ref()?, entry.value.file.as_ref()?);
    let names: Vec<&NodeName> = registry.nodes().map(|node| &node.node.name).collect();
    let name = match find_name(&wanted.value, &names) {
        Ok(name) => name.clone(),
        Err(error) => {
            let (code, title) = match error {
                NameError::Unknown => (Code::UnknownNode, format!("there is no node `{}`", wanted.value)),
                NameError::Ambiguous(_) => {
                    (Code::AmbiguousNode, format!("several nodes are called `{}`", wanted.value))
                }
            };
            let diagnostic = Diagnostic::at(wanted.span, code, title).label("with whom is this key shared?");
            let shown: Vec<String> = names.iter().map(ToString::to_string).collect();
            diagnostics.push(match nearest(&wanted.value, shown.iter().map(String::as_str)) {
                Some(meant) => diagnostic.help(format!("did you mean `{meant}`?")),
                None => diagnostic.help("nodes are those of the registry"),
            });
            return None;
        }
    };
    if registry.find(&name).is_some_and(|node| !node.node.shared_key) {
        let title = format!("the registry does not say that `{name}` proves itself by a shared key");
        let diagnostic = Diagnostic::at(wanted.span, Code::NoSharedKey, title).label("not used");
        diagnostics.push(diagnostic.help("write `shared_key: true` in its `remarks: {viamesh: …}`"));
    }
    Some((name, directory.join(&file.value)))
}
