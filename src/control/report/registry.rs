//! `viamesh registry`: whom the registry names.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Text;
use crate::control::quantity::{or_dash, whole_span};
use crate::control::table::{Align, Table};

/// The answer to `registry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Where it was read from.
    pub source: String,
    /// Version of what is in force, where the source has versions.
    #[serde(default)]
    pub version: Option<u64>,
    /// Seconds since it was changed here.
    #[serde(default)]
    pub age_seconds: Option<u64>,
    /// Organizations in file order.
    pub organizations: Vec<RegistryOrganization>,
}

/// One organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryOrganization {
    /// Name.
    pub organization: String,
    /// Fingerprint of its key, `SHA256:…`.
    pub fingerprint: Option<String>,
    /// Its nodes.
    pub nodes: Vec<RegistryNode>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryNode {
    /// `common_name`.
    pub node: String,
    /// Fingerprint of its own key, where it has one.
    pub fingerprint: Option<String>,
    /// Its SRv6 locator.
    pub locator: Option<String>,
    /// Whether this is us.
    pub this_node: bool,
    /// Endpoints.
    pub endpoints: Vec<RegistryEndpoint>,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryEndpoint {
    /// Serial number.
    pub serial_number: String,
    /// `ip4` or `ip6`.
    pub address_family: String,
    /// Address or host name; `None` behind NAT.
    pub address: Option<String>,
    /// UDP port.
    pub port: u16,
}

impl Text for RegistryReport {
    fn text(&self) -> String {
        let version = self.version.map(|version| format!(", version {version}")).unwrap_or_default();
        let age =
            self.age_seconds.map(|age| format!(", changed {} ago", whole_span(age))).unwrap_or_default();
        let nodes: usize = self.organizations.iter().map(|organization| organization.nodes.len()).sum();
        let noun = if nodes == 1 { "node" } else { "nodes" };
        let head = format!("{nodes} {noun} from {}{version}{age}\n", self.source);
        let organizations = self.organizations.iter().map(RegistryOrganization::text);
        std::iter::once(head).chain(organizations).collect::<Vec<_>>().join("\n")
    }
}

impl RegistryOrganization {
    fn text(&self) -> String {
        let mut text = match &self.fingerprint {
            Some(fingerprint) => format!("{}   {fingerprint}\n", self.organization),
            None => format!("{}\n", self.organization),
        };
        let mut table = Table::new(&[
            ("  NODE", Align::Left),
            ("ENDPOINTS", Align::Left),
            ("LOCATOR", Align::Left),
            ("OWN KEY", Align::Left),
        ]);
        for node in &self.nodes {
            let mark = if node.this_node { " (this node)" } else { "" };
            let endpoints: Vec<String> = node.endpoints.iter().map(RegistryEndpoint::to_string).collect();
            table.row([
                format!("  {}{mark}", node.node),
                endpoints.join(", "),
                or_dash(node.locator.clone()),
                or_dash(node.fingerprint.clone()),
            ]);
        }
        text.push_str(&table.text());
        text
    }
}

impl fmt::Display for RegistryEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { serial_number, address_family, address, port } = self;
        match address {
            Some(address) if address.contains(':') => {
                write!(formatter, "{serial_number}: [{address}]:{port}")
            }
            Some(address) => write!(formatter, "{serial_number}: {address}:{port}"),
            None => write!(formatter, "{serial_number}: {address_family}, dials out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;

    #[test]
    fn organizations_have_their_nodes_below_them() {
        let endpoint = |address: Option<&str>| RegistryEndpoint {
            serial_number: "0".to_owned(),
            address_family: "ip4".to_owned(),
            address: address.map(str::to_owned),
            port: 13000,
        };
        let node = |node: &str, this_node: bool, address: Option<&str>| RegistryNode {
            node: node.to_owned(),
            fingerprint: None,
            locator: Some("fd5d:ac:1:2::/64".to_owned()),
            this_node,
            endpoints: vec![endpoint(address)],
        };
        let report = RegistryReport {
            format: FORMAT,
            source: "/etc/viamesh/registry.yaml".to_owned(),
            version: Some(7),
            age_seconds: Some(120),
            organizations: vec![RegistryOrganization {
                organization: "acme".to_owned(),
                fingerprint: Some("SHA256:9f1c".to_owned()),
                nodes: vec![
                    node("alpha", true, Some("alpha.acme.example")),
                    node("bravo", false, Some("2001:db8::2")),
                    node("charlie", false, None),
                ],
            }],
        };
        insta::assert_snapshot!(report.text(), @"
        3 nodes from /etc/viamesh/registry.yaml, version 7, changed 2 min ago

        acme   SHA256:9f1c
          NODE                ENDPOINTS                     LOCATOR            OWN KEY
          alpha (this node)   0: alpha.acme.example:13000   fd5d:ac:1:2::/64   -
          bravo               0: [2001:db8::2]:13000        fd5d:ac:1:2::/64   -
          charlie             0: ip4, dials out             fd5d:ac:1:2::/64   -
        ");
    }
}
