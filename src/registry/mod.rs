//! Registries that are not simply a file: a directory, a signed document on the web, keys in etcd; and word of changes.
//!
//! What a source on another host says counts only after it passed every check that a file would pass. The last good
//! one is kept in the state directory, so that a node starts and runs without the source.

mod etcd;
mod files;
mod http;
mod kept;
pub mod signature;
mod watcher;
mod web;

pub use files::list;
pub use kept::Kept;
pub use watcher::{News, Watcher};

use crate::config::registry_source::{RegistryPlace, RegistrySource, RemoteRegistry};
use http::Client;
use std::path::Path;

/// Why a source has nothing for us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It cannot be reached, or does not say what a registry says.
    #[error("{0}")]
    Unreachable(String),
    /// It answers, and what it says must not be used.
    #[error("{0}")]
    Refused(String),
}

/// The registry of a remote source: the kept copy, or what the source says if there is none.
///
/// # Errors
/// When there is neither.
pub fn kept_or_fetched(place: &RegistryPlace, state_dir: &Path) -> Result<RemoteRegistry, SourceError> {
    match Kept::of(&place.source, state_dir).read() {
        Some(kept) => Ok(kept),
        None => fetch(place),
    }
}

/// Asks a remote source once.
fn fetch(place: &RegistryPlace) -> Result<RemoteRegistry, SourceError> {
    let client = Client::new(place);
    match &place.source {
        RegistrySource::Path(_) => Err(SourceError::Unreachable("not on another host".to_owned())),
        RegistrySource::Web(address) => {
            let fetched = web::fetch(&client, address, place.key.as_ref(), None)?;
            fetched
                .map(|(registry, _)| registry)
                .ok_or_else(|| SourceError::Unreachable("no answer".to_owned()))
        }
        RegistrySource::Etcd { endpoint, prefix } => etcd::read(&client, endpoint, prefix),
    }
}
