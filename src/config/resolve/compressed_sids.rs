//! Compressed SIDs of the registry: 16 bits, so that each has to be given to one node only.

use ipnet::Ipv6Net;
use srv6::CompressedSid;

use super::registry::RegistryNode;
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};

/// Reports numbers that cannot be one, that two nodes have, or whose prefix holds another node's locator.
pub(super) fn report(nodes: &[RegistryNode], mesh_prefix: Ipv6Net, diagnostics: &mut Diagnostics) {
    for (index, node) in nodes.iter().enumerate() {
        let (Some(usid), Some(place)) = (node.node.usid, node.usid_place) else { continue };
        let Ok(sid) = CompressedSid::new(mesh_prefix, usid) else {
            let last = srv6::compressed_sid::FIRST_LOCAL - 1;
            let diagnostic =
                Diagnostic::at(place, Code::InvalidValue, format!("{usid:#x} is no micro-SID of a node"));
            diagnostics.push(diagnostic.label(format!("0x1 to {last:#x}")));
            continue;
        };
        let same = nodes.iter().take(index).find(|other| other.node.usid == Some(usid));
        if let Some((other, first)) = same.and_then(|other| Some((other, other.usid_place?))) {
            let title = format!("`{}` and `{}` have the same micro-SID", other.node.name, node.node.name);
            let label = format!("{usid:#x} is on line {} too", diagnostics.sources.line(first));
            diagnostics.push(Diagnostic::at(place, Code::SidCollision, title).label(label));
        }
        let prefix = sid.prefix();
        if let Some(other) = nodes.iter().find(|other| prefix.contains(&other.node.locator)) {
            let title =
                format!("the micro-SID of `{}` covers the locator of `{}`", node.node.name, other.node.name);
            let label = format!("{} is in {prefix}", other.node.locator);
            let diagnostic = Diagnostic::at(place, Code::SidCollision, title).label(label);
            diagnostics.push(diagnostic.help("give the node another `usid`"));
        }
    }
}
