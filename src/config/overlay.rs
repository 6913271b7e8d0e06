//! A host on which one file has another content: to check or run a node file before it is in its place.

use std::io;
use std::path::{Path, PathBuf};

use super::load::Host;
use super::registry_source::RegistryPlace;
use super::registry_source::RemoteRegistry;

/// Another host, except for one file.
pub struct Overlay<'a> {
    /// The file.
    pub file: &'a Path,
    /// Its content here.
    pub text: &'a str,
    /// What messages call it.
    pub name: &'a str,
    /// The registry here, if it is on another host.
    pub registry: Option<&'a RemoteRegistry>,
    /// For everything else.
    pub host: &'a dyn Host,
}

impl Host for Overlay<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == self.file { Ok(self.text.as_bytes().to_vec()) } else { self.host.read(path) }
    }

    fn parts(&self, path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        self.host.parts(path)
    }

    fn remote(&self, place: &RegistryPlace, state_dir: &Path) -> Result<RemoteRegistry, String> {
        self.registry.cloned().map_or_else(|| self.host.remote(place, state_dir), Ok)
    }

    fn mode(&self, path: &Path) -> Option<u32> {
        self.host.mode(path)
    }

    fn has_ipv6(&self) -> bool {
        self.host.has_ipv6()
    }

    fn name(&self, path: &Path) -> String {
        if path == self.file { self.name.to_owned() } else { self.host.name(path) }
    }
}
