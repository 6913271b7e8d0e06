//! Nodes by name, by address and by router-id.

use super::{Node, routing::router_id};
use crate::config::settings::{Node as RegistryNode, NodeName};
use babel::RouterId;
use std::net::{IpAddr, Ipv6Addr};

impl Node {
    /// The registry's node that a person means: `bravo`, or `partner/bravo`.
    pub(super) fn find_node(&self, text: &str) -> Result<&RegistryNode, String> {
        let nodes = &self.settings.nodes;
        if let Some((organization, common_name)) = text.split_once('/') {
            let wanted = NodeName::new(organization, common_name);
            return self.settings.node(&wanted).ok_or_else(|| self.no_such_node(text));
        }
        let named: Vec<&RegistryNode> = nodes.iter().filter(|node| node.name.common_name == text).collect();
        let own = named.iter().find(|node| node.name.organization == self.settings.name.organization);
        match (own, named.as_slice()) {
            (Some(node), _) => Ok(node),
            (None, [only]) => Ok(only),
            (None, []) => Err(self.no_such_node(text)),
            (None, several) => {
                let names: Vec<String> = several.iter().map(|node| node.name.to_string()).collect();
                Err(format!("`{text}` can mean {}: write one of them", names.join(" or ")))
            }
        }
    }

    fn no_such_node(&self, text: &str) -> String {
        let names = self.settings.nodes.iter().map(|node| self.settings.display_name(&node.name));
        let likely = names
            .map(|name| (strsim::jaro_winkler(&name, text), name))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        match likely {
            Some((_, name)) => format!("no node `{text}` in the registry: did you mean `{name}`?"),
            None => format!("no node `{text}` in the registry: `viamesh registry` lists all nodes"),
        }
    }

    /// The node whose locator or own address contains `address`.
    pub(super) fn node_at(&self, address: IpAddr) -> Option<&RegistryNode> {
        let IpAddr::V6(address) = address else { return None };
        self.settings.nodes.iter().find(|node| node.locator.contains(&address))
    }

    /// The node with this router-id.
    pub(super) fn node_of(&self, id: RouterId) -> Option<&RegistryNode> {
        self.settings.nodes.iter().find(|node| router_id(&node.name) == id)
    }

    /// A node's name as people write it.
    pub(super) fn display(&self, node: &RegistryNode) -> String {
        self.settings.display_name(&node.name)
    }
}

/// The address of a node itself.
pub(super) fn node_address(node: &RegistryNode) -> Option<Ipv6Addr> {
    srv6::Locator::new(node.locator).ok().map(|locator| locator.node_address())
}
