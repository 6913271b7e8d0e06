//! The registry's nodes.

use std::net::{IpAddr, Ipv6Addr};

use ed25519_dalek::VerifyingKey;
use ipnet::{IpNet, Ipv6Net};

use super::{authority, compressed_sids, ike_identity};
use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::config::key;
use crate::config::node_file::PolicyEntry;
use crate::config::record::{Field, OneOrMany};
use crate::config::registry_file::{
    NodeEntry, NodeRemarks, OrganizationEntry, RegistryFile, RemoteEndpointEntry, SidsEntry,
};
use crate::config::settings::{Family, ForeignSids, Node, NodeName, PeerIdentity, RemoteEndpoint};
use crate::config::source::{Span, Spanned};

/// All nodes of the registry, in its order.
pub(super) struct Registry {
    nodes: Vec<RegistryNode>,
}

/// A node and the places that diagnostics about it point at.
pub(super) struct RegistryNode {
    pub(super) node: Node,
    /// Where its name stands.
    pub(super) name_place: Span,
    /// The field that holds its keys.
    pub(super) key_place: Option<Span>,
    /// Whether the keys are its own and not its organization's.
    pub(super) has_own_key: bool,
    /// Where its locator comes from: `locator`, or its name.
    pub(super) locator_place: Span,
    /// Where its compressed SID stands.
    pub(super) usid_place: Option<Span>,
    /// Policies for it and for their exits.
    pub(super) policies: Vec<Spanned<PolicyEntry>>,
    /// What it says it announces, if it says so.
    pub(super) announce: Option<Vec<Spanned<IpNet>>>,
    /// Whether it says it offers the internet, if it says so.
    pub(super) offer: Option<bool>,
}

impl RegistryNode {
    /// Whether the registry says anything about where it lets packets leave.
    pub(super) fn says_what_it_delivers(&self) -> bool {
        self.announce.is_some() || self.offer.is_some()
    }
}

impl Registry {
    /// Resolves all entries and reports what is wrong with them.
    pub(super) fn resolve(file: &RegistryFile, mesh_prefix: Ipv6Net, diagnostics: &mut Diagnostics) -> Self {
        let mut registry = Self { nodes: Vec::new() };
        let mut seen = SeenKeys::default();
        for organization in file {
            registry.add_organization(&organization.value, mesh_prefix, &mut seen, diagnostics);
        }
        registry.report_sid_collisions(diagnostics);
        compressed_sids::report(&registry.nodes, mesh_prefix, diagnostics);
        registry
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &RegistryNode> {
        self.nodes.iter()
    }

    pub(super) fn find(&self, name: &NodeName) -> Option<&RegistryNode> {
        self.nodes.iter().find(|node| node.node.name == *name)
    }

    pub(super) fn into_nodes(self) -> Vec<Node> {
        self.nodes.into_iter().map(|node| node.node).collect()
    }

    fn add_organization(
        &mut self,
        entry: &OrganizationEntry,
        mesh_prefix: Ipv6Net,
        seen: &mut SeenKeys,
        diagnostics: &mut Diagnostics,
    ) {
        let Some(name) = &entry.organization else { return };
        let shared = entry.public_key.as_ref().map(|field| KeyField::read(field, diagnostics));
        if let Some(shared) = &shared {
            seen.report(&name.value, &format!("organization `{}`", name.value), shared, diagnostics);
        }
        for node in entry.nodes.iter().flat_map(|nodes| &nodes.value) {
            let Some(resolved) =
                resolve_node(&name.value, shared.as_ref(), &node.value, mesh_prefix, diagnostics)
            else {
                continue;
            };
            if let (true, Some(place)) = (resolved.has_own_key, resolved.key_place) {
                let own = KeyField { keys: resolved.node.public_keys.clone(), place };
                seen.report(
                    &resolved.node.name.to_string(),
                    &format!("node `{}`", resolved.node.name),
                    &own,
                    diagnostics,
                );
            }
            if let Some(first) = self.find(&resolved.node.name) {
                let line = diagnostics.sources.line(first.name_place);
                let title = format!("the node `{}` is in the registry twice", resolved.node.name);
                let diagnostic = Diagnostic::at(resolved.name_place, Code::DuplicateNode, title);
                diagnostics.push(diagnostic.label(format!("the first is on line {line}")));
                continue;
            }
            self.nodes.push(resolved);
        }
    }

    /// Two nodes with one locator or one name among adjacencies, or a foreign SID inside another node's locator.
    fn report_sid_collisions(&self, diagnostics: &mut Diagnostics) {
        for (index, node) in self.nodes.iter().enumerate() {
            let clash = self.nodes.iter().take(index).find(|other| {
                let foreign = |a: &RegistryNode, b: &RegistryNode| {
                    sids(&a.node).any(|sid| b.node.locator.contains(&sid))
                };
                // Equal locators are a case of this: the low half names a node in the SIDs of its neighbours' links.
                let same = adjacency(&other.node) == adjacency(&node.node);
                same || foreign(other, node) || foreign(node, other)
            });
            let Some(other) = clash else { continue };
            let title = format!(
                "`{}` and `{}` would have the same segment identifiers",
                other.node.name, node.node.name
            );
            let line = diagnostics.sources.line(other.locator_place);
            let label = format!("{} belongs to the node on line {line} too", node.node.locator);
            let diagnostic = Diagnostic::at(node.locator_place, Code::SidCollision, title).label(label);
            diagnostics
                .push(diagnostic.help("give one of them another `locator` in `remarks: {viamesh: …}`"));
        }
    }

    /// Networks that two nodes say they announce.
    pub(super) fn report_overlaps(
        &self,
        own: &NodeName,
        own_announce: Option<&Field<Vec<Spanned<IpNet>>>>,
        diagnostics: &mut Diagnostics,
    ) {
        let ours = own_announce.into_iter().flat_map(|field| &field.value).map(|network| (own, network));
        let theirs = self.nodes.iter().filter(|node| node.node.name != *own);
        let theirs =
            theirs.flat_map(|node| node.announce.iter().flatten().map(|network| (&node.node.name, network)));
        let all: Vec<_> = theirs.chain(ours).collect();
        for (index, (name, network)) in all.iter().enumerate() {
            let overlap = all.iter().take(index).find(|(other, earlier)| {
                other != name
                    && (earlier.value.contains(&network.value) || network.value.contains(&earlier.value))
            });
            let Some((other, earlier)) = overlap else { continue };
            let title = format!(
                "`{name}` and `{other}` both say that they announce {}",
                smaller(network.value, earlier.value)
            );
            let label = format!("`{other}` has {}", earlier.value);
            diagnostics
                .push(Diagnostic::at(network.span, Code::OverlappingAnnouncements, title).label(label));
        }
    }
}

fn smaller(one: IpNet, other: IpNet) -> IpNet {
    if one.prefix_len() >= other.prefix_len() { one } else { other }
}

/// What stands for a node in the SIDs of links to it.
fn adjacency(node: &Node) -> u128 {
    node.locator.network().to_bits() >> 64 & 0xffff_ffff
}

/// All SIDs that the registry lists for a node that does not derive them.
fn sids(node: &Node) -> impl Iterator<Item = Ipv6Addr> {
    let sids = node.sids.clone().unwrap_or_default();
    [sids.end, sids.dt4, sids.dt6, sids.dt46, sids.internet].into_iter().flatten()
}

/// A `public_key` field.
struct KeyField {
    keys: Vec<VerifyingKey>,
    place: Span,
}

impl KeyField {
    fn read(field: &Field<OneOrMany<String>>, diagnostics: &mut Diagnostics) -> Self {
        let mut keys = Vec::new();
        for text in &field.value.0 {
            match key::parse_public(&text.value) {
                Ok(found) => keys.extend(found),
                Err(error) => {
                    let diagnostic = Diagnostic::at(text.span, Code::BadPublicKey, error.to_string());
                    diagnostics.push(
                        diagnostic.label("`viamesh key public FILE` prints the block that belongs here"),
                    );
                }
            }
        }
        Self { keys, place: field.key }
    }
}

/// Keys seen so far and their owners.
#[derive(Default)]
struct SeenKeys(Vec<(VerifyingKey, String, String, Span)>);

impl SeenKeys {
    /// Reports keys that someone else has too. `owner` tells owners apart, `shown` is for people.
    fn report(&mut self, owner: &str, shown: &str, field: &KeyField, diagnostics: &mut Diagnostics) {
        for key in &field.keys {
            let first = self.0.iter().find(|(seen, other, ..)| seen == key && other != owner);
            if let Some((_, _, first, place)) = first {
                let line = diagnostics.sources.line(*place);
                let title = format!("{first} and {shown} have the same key");
                let diagnostic = Diagnostic::at(field.place, Code::SharedKey, title);
                diagnostics
                    .push(diagnostic.label(format!("the key on line {line}: each could pose as the other")));
            }
            self.0.push((*key, owner.to_owned(), shown.to_owned(), field.place));
        }
    }
}

fn resolve_node(
    organization: &str,
    shared: Option<&KeyField>,
    entry: &NodeEntry,
    mesh_prefix: Ipv6Net,
    diagnostics: &mut Diagnostics,
) -> Option<RegistryNode> {
    let common_name = entry.common_name.as_ref()?;
    let name = NodeName::new(organization, &common_name.value);
    let remarks =
        entry.remarks.as_ref().and_then(|remarks| remarks.value.viamesh.as_ref()).map(|field| &field.value);
    let own_key = remarks.and_then(|remarks| remarks.public_key.as_ref());
    let own_key = own_key.map(|field| KeyField::read(field, diagnostics));
    let has_own_key = own_key.is_some();
    let keys = own_key.as_ref().or(shared);
    let authorities = remarks.and_then(|remarks| remarks.authority.as_ref());
    let authorities = authorities.map(|field| authority::read(field, diagnostics)).unwrap_or_default();
    let shared_key = remarks.and_then(|remarks| remarks.shared_key.as_ref()).is_some_and(|field| field.value);
    // An organization's key says nothing of a node that proves itself in another way.
    let otherwise = shared_key || remarks.is_some_and(|remarks| remarks.authority.is_some());
    let keys = if otherwise { own_key.as_ref() } else { keys };
    if keys.is_none() && !otherwise {
        report_no_key(&name, common_name.span, diagnostics);
    }
    let (locator, locator_place) = locator(&name, common_name.span, remarks, mesh_prefix, diagnostics)?;
    let announce = remarks.and_then(|remarks| remarks.announce.as_ref()).map(|field| field.value.clone());
    let offer = remarks.and_then(|remarks| remarks.offer.as_ref()).map(|field| !field.value.is_empty());
    let node = Node {
        public_keys: keys.map(|field| field.keys.clone()).unwrap_or_default(),
        authorities,
        shared_key,
        identity: remarks
            .and_then(|remarks| remarks.id.as_ref())
            .and_then(|field| ike_identity::parse(field, diagnostics))
            .unwrap_or(PeerIdentity::Ranet),
        endpoints: endpoints(&name, entry, diagnostics),
        locator,
        sids: remarks.and_then(|remarks| remarks.sids.as_ref()).map(|field| foreign_sids(&field.value)),
        usid: remarks.and_then(|remarks| remarks.usid.as_ref()).map(|field| field.value),
        transit: remarks.and_then(|remarks| remarks.transit.as_ref()).is_none_or(|field| field.value),
        accept: remarks.map(|remarks| super::values(remarks.accept.as_ref())).unwrap_or_default(),
        announce: announce.iter().flatten().map(|network| network.value).collect(),
        offer_internet: offer.unwrap_or(false),
        name,
    };
    let (name_place, key_place) = (common_name.span, keys.map(|field| field.place));
    let policies = remarks.map(|remarks| super::values_placed(remarks.policies.as_ref())).unwrap_or_default();
    let usid_place = remarks.and_then(|remarks| remarks.usid.as_ref()).map(|field| field.span);
    Some(RegistryNode {
        node,
        name_place,
        key_place,
        has_own_key,
        locator_place,
        usid_place,
        policies,
        announce,
        offer,
    })
}

fn report_no_key(name: &NodeName, place: Span, diagnostics: &mut Diagnostics) {
    let title = format!("neither `{name}` nor its organization has a public key");
    let diagnostic = Diagnostic::at(place, Code::NoPublicKey, title).label("nobody can be sure who this is");
    let help = "add `public_key` to the organization, or to `remarks: {viamesh: …}` of the node";
    diagnostics.push(diagnostic.help(help));
}

fn locator(
    name: &NodeName,
    name_place: Span,
    remarks: Option<&NodeRemarks>,
    mesh_prefix: Ipv6Net,
    diagnostics: &mut Diagnostics,
) -> Option<(Ipv6Net, Span)> {
    let Some(field) = remarks.and_then(|remarks| remarks.locator.as_ref()) else {
        let derived = srv6::sid::Locator::derive(mesh_prefix, &name.organization, &name.common_name).ok()?;
        return Some((derived.prefix(), name_place));
    };
    if srv6::sid::Locator::new(field.value).is_err() {
        let title = format!("a locator is a unicast IPv6 /64, and {} is none", field.value);
        diagnostics.push(Diagnostic::at(field.span, Code::BadLocator, title).label("not a /64"));
        return None;
    }
    if !mesh_prefix.contains(&field.value) {
        let title = format!("the locator {} is outside the mesh prefix {mesh_prefix}", field.value);
        let diagnostic = Diagnostic::at(field.span, Code::BadLocator, title).severity(Severity::Warning);
        diagnostics.push(diagnostic.label("nodes drop segments from outside it"));
    }
    Some((field.value, field.span))
}

fn endpoints(name: &NodeName, entry: &NodeEntry, diagnostics: &mut Diagnostics) -> Vec<RemoteEndpoint> {
    let mut endpoints: Vec<RemoteEndpoint> = Vec::new();
    for spanned in entry.endpoints.iter().flat_map(|field| &field.value) {
        let Some(endpoint) = endpoint(&spanned.value, diagnostics) else { continue };
        if endpoints.iter().any(|earlier| earlier.serial_number == endpoint.serial_number) {
            let title =
                format!("two endpoints of `{name}` have the serial number `{}`", endpoint.serial_number);
            let place = spanned.value.serial_number.as_ref().map_or(spanned.span, |field| field.span);
            diagnostics
                .push(Diagnostic::at(place, Code::DuplicateEndpoint, title).label("give it another one"));
        }
        endpoints.push(endpoint);
    }
    endpoints
}

fn endpoint(entry: &RemoteEndpointEntry, diagnostics: &mut Diagnostics) -> Option<RemoteEndpoint> {
    let family = entry.address_family.as_ref()?.value;
    if let Some(address) = &entry.address {
        check_remote_address(address, family, diagnostics);
    }
    Some(RemoteEndpoint {
        serial_number: entry.serial_number.as_ref()?.value.clone(),
        family,
        address: entry.address.as_ref().map(|field| field.value.clone()),
        port: entry.port.as_ref()?.value.0,
    })
}

fn check_remote_address(address: &Field<String>, family: Family, diagnostics: &mut Diagnostics) {
    let text = address.value.as_str();
    if let Ok(ip) = text.parse::<IpAddr>() {
        if Family::of(ip) != family {
            let title = format!("`{text}` is no `{}` address", family.name());
            let diagnostic = Diagnostic::at(address.span, Code::InvalidValue, title);
            diagnostics.push(diagnostic.label(format!("this is `{}`", Family::of(ip).name())));
        }
        return;
    }
    let label = |label: &str| {
        let fits = !label.is_empty() && label.len() <= 63;
        fits && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let bare = text.strip_suffix('.').unwrap_or(text);
    if bare.len() > 253 || !bare.split('.').all(label) {
        let diagnostic = Diagnostic::at(address.span, Code::InvalidValue, format!("`{text}` is no host"));
        diagnostics.push(diagnostic.label("neither an IP address nor a DNS name"));
    }
}

fn foreign_sids(entry: &SidsEntry) -> ForeignSids {
    let value = |field: &Option<Field<Ipv6Addr>>| field.as_ref().map(|field| field.value);
    ForeignSids {
        end: value(&entry.end),
        dt4: value(&entry.dt4),
        dt6: value(&entry.dt6),
        dt46: value(&entry.dt46),
        internet: value(&entry.internet),
    }
}
