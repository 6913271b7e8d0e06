//! Nodes in the registry that run other software, and what our nodes prove themselves to them with.

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
    /// How it proves itself.
    pub proof: ForeignProof<'a>,
}

/// How a node that is not ours proves itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignProof<'a> {
    /// By this public key, in PEM.
    PublicKey(&'a str),
    /// By a certificate that leads to this authority, whose own is here in PEM.
    Authority(&'a str),
    /// By a key that it shares with our node.
    SharedKey,
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
        match self.proof {
            ForeignProof::PublicKey(pem) => text.push_str(&block("public_key", pem)),
            ForeignProof::Authority(pem) => text.push_str(&block("authority", pem)),
            ForeignProof::SharedKey => text.push_str("        shared_key: true\n"),
        }
        text
    }
}

fn block(name: &str, pem: &str) -> String {
    let mut text = format!("        {name}: |\n");
    for line in pem.lines() {
        let _ = writeln!(text, "          {line}");
    }
    text
}

/// The section `ike` in the file of one of our nodes.
#[derive(Debug, Clone, Copy, Default)]
pub struct IkeSection<'a> {
    /// Whether it offers hybrid key exchange.
    pub post_quantum: bool,
    /// How it calls itself to nodes that it does not prove itself to by its key: `fqdn:ours.example`.
    pub id: Option<&'a str>,
    /// Files with its certificate and the key of that.
    pub certificate: Option<(&'a str, &'a str)>,
    /// A node, and the file with the key that is shared with it.
    pub shared_key: Option<(&'a str, &'a str)>,
}

impl IkeSection<'_> {
    /// Its lines; none if there is nothing to say.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.post_quantum {
            text.push_str("  post_quantum: true\n");
        }
        if let Some(id) = self.id {
            let _ = writeln!(text, "  id: \"{id}\"");
        }
        if let Some((chain, key)) = self.certificate {
            let _ = writeln!(text, "  certificate: {chain}\n  certificate_key: {key}");
        }
        if let Some((node, file)) = self.shared_key {
            let _ = writeln!(text, "  shared_keys:\n  - {{ node: {node}, file: {file} }}");
        }
        if text.is_empty() { text } else { format!("ike:\n{text}") }
    }
}
