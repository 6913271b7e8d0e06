//! Keys of signed segment lists, and who must use them.

use std::path::Path;

use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::load::find_name;
use crate::config::node_file::NodeFile;
use crate::config::settings::{HmacKeyFile, NodeName};

use super::registry::Registry;

/// The keys of the node file; relative paths start at `directory`.
pub(super) fn keys(file: &NodeFile, directory: &Path, diagnostics: &mut Diagnostics) -> Vec<HmacKeyFile> {
    let mut keys: Vec<HmacKeyFile> = Vec::new();
    for entry in file.hmac_keys.iter().flat_map(|field| &field.value) {
        let (Some(id), Some(path)) = (&entry.value.id, &entry.value.file) else { continue };
        if id.value == 0 {
            let diagnostic = Diagnostic::at(id.span, Code::InvalidValue, "0 is the number of no key");
            diagnostics.push(diagnostic.label("1 or more"));
        } else if keys.iter().any(|key| key.id == id.value) {
            let title = format!("two keys have the number {}", id.value);
            diagnostics.push(Diagnostic::at(id.span, Code::InvalidValue, title).label("give it another one"));
        } else {
            keys.push(HmacKeyFile { id: id.value, file: directory.join(&path.value) });
        }
    }
    for policy in file.policies.iter().flat_map(|field| &field.value) {
        let Some(hmac) = &policy.value.hmac else { continue };
        if !keys.iter().any(|key| key.id == hmac.value) {
            let title = format!("no key has the number {}", hmac.value);
            let diagnostic =
                Diagnostic::at(hmac.span, Code::InvalidValue, title).label("not among `hmac_keys`");
            diagnostics.push(diagnostic.help("add it: `hmac_keys: [{ id: …, file: … }]`"));
        }
    }
    let required = file.require_hmac_from.as_ref().filter(|field| !field.value.is_empty());
    if let (Some(required), true) = (required, keys.is_empty()) {
        let diagnostic =
            Diagnostic::at(required.span, Code::InvalidValue, "there is no key to check signatures with");
        diagnostics.push(diagnostic.label("nothing from these nodes would be taken").help("add `hmac_keys`"));
    }
    keys
}

/// The peers from which only signed lists are taken.
pub(super) fn required_from(
    file: &NodeFile,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) -> Vec<NodeName> {
    let names: Vec<&NodeName> = registry.nodes().map(|node| &node.node.name).collect();
    let mut required = Vec::new();
    for wanted in file.require_hmac_from.iter().flat_map(|field| &field.value) {
        match find_name(wanted.value.trim(), &names) {
            Ok(name) => required.push(name.clone()),
            Err(_) => {
                let title = format!(
                    "`require_hmac_from` names `{}`, which is not one node of the registry",
                    wanted.value
                );
                let diagnostic = Diagnostic::at(wanted.span, Code::UnknownNode, title).label("no such node");
                diagnostics.push(diagnostic.help("`viamesh registry` lists all nodes"));
            }
        }
    }
    required
}
