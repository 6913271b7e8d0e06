//! From what the files say to what it means: names become nodes, defaults are filled in, and everything that can be
//! wrong across fields and files is found.

pub(super) mod authority;
mod candidates;
mod classes;
mod compressed_sids;
mod endpoints;
mod hmac;
mod identity;
mod ike;
mod ike_identity;
mod policies;
mod policy_order;
mod redistribution;
mod registry;
mod sections;
mod shared;

use std::path::{Path, PathBuf};

use ed25519_dalek::VerifyingKey;
use ipnet::{IpNet, Ipv6Net};

use super::code::Code;
use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::node_file::NodeFile;
use super::record::Field;
use super::registry_file::RegistryFile;
use super::registry_source::RegistryPlace;
use super::settings::{DEFAULT_MESH_PREFIX, NodeName, Settings};
use super::source::{SourceId, Spanned};
use registry::Registry;

/// What is known besides the two files.
pub(crate) struct Facts {
    pub(crate) registry_source: SourceId,
    /// Where the node file is.
    pub(crate) node_file: PathBuf,
    /// Where the registry is; `None` if that is not understood.
    pub(crate) registry: Option<RegistryPlace>,
    /// The private key's file and its public half, if it could be read.
    pub(crate) key: Option<(PathBuf, VerifyingKey)>,
    pub(crate) private_key: PathBuf,
    pub(crate) control_socket: Option<PathBuf>,
    pub(crate) has_ipv6: bool,
}

/// Resolves both files. Reports everything that is wrong with them; the result is meaningless after an error.
pub(crate) fn resolve(
    file: &NodeFile,
    registry_file: Option<&RegistryFile>,
    facts: &Facts,
    diagnostics: &mut Diagnostics,
) -> Option<Settings> {
    let mesh_prefix = mesh_prefix(file.mesh_prefix.as_ref(), diagnostics);
    let registry = registry_file.map(|registry| Registry::resolve(registry, mesh_prefix, diagnostics));
    let endpoints = endpoints::resolve(file, facts, diagnostics);
    let sections = sections::resolve(file, &endpoints, diagnostics);
    let announce = announce(file, mesh_prefix, diagnostics);
    let name = NodeName::new(&file.organization.as_ref()?.value, &file.common_name.as_ref()?.value);
    let registry = registry?;
    identity::check(file, &name, &endpoints, &registry, facts, diagnostics);
    registry.report_overlaps(&name, file.announce.as_ref(), diagnostics);
    let addresses = values(file.addresses.as_ref());
    let own_networks: Vec<IpNet> =
        announce.iter().copied().chain(addresses.iter().copied().map(IpNet::from)).collect();
    let policies = policies::resolve(file, &name, &endpoints, &own_networks, &registry, diagnostics);
    let directory = facts.node_file.parent().unwrap_or(Path::new(""));
    let hmac_keys = hmac::keys(file, directory, diagnostics);
    let require_hmac_from = hmac::required_from(file, &registry, diagnostics);
    let ike = ike::resolve(file, directory, &facts.private_key, &registry, diagnostics);
    let locator = registry.find(&name)?.node.locator;
    let mut settings = Settings::new(name, locator);
    settings.mesh_prefix = mesh_prefix;
    settings.endpoints = endpoints.into_iter().map(|endpoint| endpoint.value).collect();
    settings.announce = announce;
    settings.addresses = addresses;
    settings.redistribution = redistribution::resolve(file, &sections.kernel, diagnostics);
    settings.offer_internet = file.offer.as_ref().is_some_and(|offer| !offer.value.is_empty());
    settings.policies = policies;
    settings.hmac_keys = hmac_keys;
    settings.require_hmac_from = require_hmac_from;
    settings.nodes = registry.into_nodes();
    settings.registry = facts.registry.clone().unwrap_or_default();
    settings.kernel = sections.kernel;
    settings.ike = ike;
    settings.timers = sections.timers;
    settings.cost = sections.cost;
    settings.workers = sections.workers;
    settings.metrics = file.metrics.as_ref().map(|metrics| metrics.value.clone());
    settings.page = file.page.as_ref().map(|page| page.value.clone());
    set_paths(&mut settings, file, facts);
    Some(settings)
}

fn set_paths(settings: &mut Settings, file: &NodeFile, facts: &Facts) {
    settings.private_key.clone_from(&facts.private_key);
    if let Some(directory) = &file.state_dir {
        settings.state_dir = PathBuf::from(&directory.value);
    }
    let from_file = file.control_socket.as_ref().map(|socket| PathBuf::from(&socket.value));
    if let Some(socket) = facts.control_socket.clone().or(from_file) {
        settings.control_socket = socket;
    }
}

fn mesh_prefix(field: Option<&Field<Ipv6Net>>, diagnostics: &mut Diagnostics) -> Ipv6Net {
    let Some(field) = field else { return DEFAULT_MESH_PREFIX };
    if field.value.prefix_len() == srv6::sid::MESH_PREFIX_LEN && srv6::sid::is_segment(&field.value.network())
    {
        return field.value;
    }
    let title = format!("the mesh prefix must be a unicast /32, and {} is none", field.value);
    diagnostics.push(
        Diagnostic::at(field.span, Code::InvalidValue, title)
            .label("locators are made from 32 bits of prefix and 32 of the node's name"),
    );
    DEFAULT_MESH_PREFIX
}

fn announce(file: &NodeFile, mesh_prefix: Ipv6Net, diagnostics: &mut Diagnostics) -> Vec<IpNet> {
    let Some(announce) = &file.announce else { return Vec::new() };
    for network in &announce.value {
        if network.value.prefix_len() == 0 {
            let title =
                format!("`{}` is the whole internet, and other nodes do not accept it", network.value);
            let diagnostic = Diagnostic::at(network.span, Code::InvalidValue, title).label("not announced");
            diagnostics
                .push(diagnostic.help("to let others leave to the internet here, write `offer: [internet]`"));
        } else if matches!(network.value, IpNet::V6(network) if mesh_prefix.contains(&network) || network.contains(&mesh_prefix))
        {
            let title = format!("`{}` overlaps the mesh prefix {mesh_prefix}", network.value);
            let diagnostic =
                Diagnostic::at(network.span, Code::InvalidValue, title).label("segments live there");
            diagnostics
                .push(diagnostic.help("announce another network; this node's own /64 is announced anyway"));
        }
    }
    values(Some(announce))
}

/// The values of a list without their places.
fn values<T: Clone>(list: Option<&Field<Vec<Spanned<T>>>>) -> Vec<T> {
    list.map(|field| field.value.iter().map(|item| item.value.clone()).collect()).unwrap_or_default()
}

/// The values of a list with their places.
fn values_placed<T: Clone>(list: Option<&Field<Vec<Spanned<T>>>>) -> Vec<Spanned<T>> {
    list.map(|field| field.value.clone()).unwrap_or_default()
}

/// A warning that a field of ranet's does nothing here.
fn not_used(field: &Field<impl Sized>, name: &str, why: &str) -> Diagnostic {
    Diagnostic::at(field.key, Code::NotUsed, format!("`{name}` is not used"))
        .label(why)
        .severity(Severity::Warning)
}
