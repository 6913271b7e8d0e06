//! `registry`.

use crate::config::key;
use crate::config::settings::Node as RegistryNode;
use crate::control::report::{
    FORMAT, RegistryEndpoint, RegistryNode as Entry, RegistryOrganization, RegistryReport,
};
use crate::node::Node;

impl Node {
    pub(in crate::node) fn registry_report(&self) -> RegistryReport {
        let mut organizations: Vec<RegistryOrganization> = Vec::new();
        for node in &self.settings.nodes {
            let name = &node.name.organization;
            let entry = self.registry_entry(node);
            match organizations.iter_mut().find(|organization| organization.organization == *name) {
                Some(organization) => organization.nodes.push(entry),
                None => organizations.push(RegistryOrganization {
                    organization: name.clone(),
                    fingerprint: None,
                    nodes: vec![entry],
                }),
            }
        }
        RegistryReport {
            format: FORMAT,
            source: self.settings.registry.source.to_string(),
            // The driver knows.
            version: None,
            age_seconds: None,
            organizations,
        }
    }

    fn registry_entry(&self, node: &RegistryNode) -> Entry {
        Entry {
            node: node.name.common_name.clone(),
            fingerprint: node.public_keys.first().map(key::fingerprint),
            locator: Some(node.locator.to_string()),
            this_node: node.name == self.settings.name,
            endpoints: node
                .endpoints
                .iter()
                .map(|endpoint| RegistryEndpoint {
                    serial_number: endpoint.serial_number.clone(),
                    address_family: endpoint.family.name().to_owned(),
                    address: endpoint.address.clone(),
                    port: endpoint.port,
                })
                .collect(),
        }
    }
}
