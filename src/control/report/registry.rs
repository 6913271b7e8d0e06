//! `viamesh registry`: whom the registry names.

use serde::{Deserialize, Serialize};

use super::Text;

/// The answer to `registry`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Where it was read from.
    pub source: String,
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
        String::new()
    }
}
