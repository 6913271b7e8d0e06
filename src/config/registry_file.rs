//! The registry: ranet's `registry.json`, with our facts in `remarks`, which ranet ignores.

use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};

use super::diagnostic::Diagnostics;
use super::node_file::PolicyEntry;
use super::record::{Field, FieldInfo, Fields, FromYaml, OneOrMany, RecordInfo, Shape, record};
use super::scalar::{Offer, Port};
use super::settings::Family;
use super::source::Spanned;
use super::yaml;

/// The whole file: organizations.
pub(crate) type RegistryFile = Vec<Spanned<OrganizationEntry>>;

record! {
    /// One organization of the registry, `/etc/viamesh/registry.yaml`. The file is a list of these, the same on all nodes.
    pub(crate) struct OrganizationEntry called "an organization", unknown: Error {
        /// Its name.
        required organization: String,
        /// Its Ed25519 public key in PEM, which all its nodes share. ranet needs it; without ranet, nodes with keys of their own in `remarks` can do without. Old and new key may stand one after the other.
        optional public_key: OneOrMany<String>,
        /// Its nodes.
        required nodes: Vec<Spanned<NodeEntry>>,
    }
}

record! {
    /// One node.
    pub(crate) struct NodeEntry called "a node", unknown: Error {
        /// Its name, unique within the organization.
        required common_name: String,
        /// Where it can be reached.
        required endpoints: Vec<Spanned<RemoteEndpointEntry>>,
        /// Anything; viamesh reads what stands under `viamesh`.
        optional remarks: RemarksEntry,
    }
}

record! {
    /// One endpoint of a node.
    pub(crate) struct RemoteEndpointEntry called "an endpoint", unknown: Error {
        /// Distinguishes the endpoints of a node; part of its identity.
        required serial_number: String,
        /// `ip4` or `ip6`.
        required address_family: Family,
        /// IP address or DNS name. None where the node sits behind NAT: it dials the others.
        optional address: String,
        /// Its UDP port.
        required port: Port,
    }
}

record! {
    /// What viamesh needs to know of a node and ranet does not.
    pub(crate) struct NodeRemarks called "`remarks.viamesh`", unknown: Warning {
        /// The node's own Ed25519 public key in PEM, instead of its organization's. Old and new key may stand one after the other.
        optional public_key: OneOrMany<String>,
        /// Certificates in PEM of the authorities that vouch for a node which proves itself by X.509. Its certificate must name its `id`.
        optional authority: OneOrMany<String>,
        /// Whether it proves itself by a key that it shares with each node that it talks to (`ike.shared_keys` there).
        optional shared_key: bool = "false",
        /// How a node that is no ranet or viamesh names itself in IKE: `fqdn:`, `email:`, `ip:`, `keyid:` (hexadecimal) or `dn:` (DER in hexadecimal).
        optional id: String,
        /// Whether others may be reached through it. `false` limits it to `accept`, its addresses and its locator.
        optional transit: bool = "true",
        /// Networks that may come from it where `transit` is `false`.
        optional accept: Vec<Spanned<IpNet>> = "[]",
        /// Its /64 for segment identifiers, instead of the one derived from its name.
        optional locator: Ipv6Net,
        /// Segment identifiers of a node that runs other software.
        optional sids: SidsEntry,
        /// Its 16-bit micro-SID, 0x1 to 0xdfff. Where all stops of a path have one, the whole list stands in one address and the packets need no routing header. Never derived: 16 bits collide.
        optional usid: u16,
        /// Networks that it announces. For checks only: what counts is what it announces by Babel.
        optional announce: Vec<Spanned<IpNet>>,
        /// Policies that both ends follow: this node's, and the way back at each exit, over the same stops in reverse order. They come after those of the node files.
        optional policies: Vec<Spanned<PolicyEntry>>,
        /// What it offers. For checks only, as `announce`.
        optional offer: Vec<Spanned<Offer>>,
    }
}

record! {
    /// Segment identifiers of a node that runs other software, such as a Linux kernel with seg6local routes.
    pub(crate) struct SidsEntry called "`sids`", unknown: Warning {
        /// End: a stop on the way.
        optional end: Ipv6Addr,
        /// End.DT4: last stop for IPv4 packets.
        optional dt4: Ipv6Addr,
        /// End.DT6: last stop for IPv6 packets.
        optional dt6: Ipv6Addr,
        /// End.DT46: last stop for packets of both families.
        optional dt46: Ipv6Addr,
        /// Last stop for packets to the internet.
        optional internet: Ipv6Addr,
    }
}

/// `remarks`: anything, of which we read `viamesh`.
#[derive(Clone, Debug)]
pub(crate) struct RemarksEntry {
    /// Our part.
    pub(crate) viamesh: Option<Field<NodeRemarks>>,
}

impl FromYaml for RemarksEntry {
    fn from_yaml(value: &yaml::Value, diagnostics: &mut Diagnostics) -> Option<Self> {
        // ranet lets anything stand here, so anything that is no group of fields is none of our business.
        let yaml::Kind::Mapping(_) = value.kind else { return Some(Self { viamesh: None }) };
        let mut fields = Fields::of(value, "`remarks`", diagnostics)?;
        Some(Self { viamesh: fields.optional("viamesh", diagnostics) })
    }

    fn shape() -> Shape {
        Shape::Record(|| RecordInfo {
            about: "Facts about a node. ranet lets anything stand here.".to_owned(),
            fields: vec![FieldInfo {
                name: "viamesh",
                about: "What viamesh needs to know.".to_owned(),
                required: false,
                default: None,
                shape: <NodeRemarks as FromYaml>::shape(),
            }],
            strict: false,
        })
    }
}
