//! Nodes in the registry that run other software.

use std::fmt::Write as _;
use std::net::IpAddr;

/// A node that is not ours, with one endpoint.
#[derive(Debug, Clone)]
pub struct ForeignNode<'a> {
    /// Its common name.
    pub name: &'a str,
    /// Whether its endpoint is of IPv6.
    pub ipv6: bool,
    /// Where it can be dialled; `None` where it dials.
    pub address: Option<IpAddr>,
    /// Its port for IKE with non-ESP marker.
    pub port: u16,
    /// Its IKE identity, as the registry writes it: `fqdn:peer.example`.
    pub id: &'a str,
    /// Its public key in PEM, if it has one.
    pub public_key: Option<&'a str>,
}

impl ForeignNode<'_> {
    /// Its entry in the `nodes` of an organization.
    pub fn registry_entry(&self) -> String {
        let mut text = format!("  - common_name: {}\n    endpoints:\n", self.name);
        let address = self.address.map_or(String::new(), |address| format!("address: \"{address}\", "));
        let family = if self.ipv6 { "ip6" } else { "ip4" };
        let port = self.port;
        let _ = writeln!(
            text,
            "    - {{ serial_number: \"0\", address_family: {family}, {address}port: {port} }}"
        );
        let _ = writeln!(text, "    remarks:\n      viamesh:\n        id: \"{}\"", self.id);
        if let Some(key) = self.public_key {
            text.push_str("        public_key: |\n");
            for line in key.lines() {
                let _ = writeln!(text, "          {line}");
            }
        }
        text
    }
}
