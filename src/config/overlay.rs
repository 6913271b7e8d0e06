//! A host on which one file has another content: to check or run a node file before it is in its place.

use std::io;
use std::path::Path;

use super::load::Host;

/// Another host, except for one file.
pub struct Overlay<'a> {
    /// The file.
    pub file: &'a Path,
    /// Its content here.
    pub text: &'a str,
    /// What messages call it.
    pub name: &'a str,
    /// For everything else.
    pub host: &'a dyn Host,
}

impl Host for Overlay<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path == self.file { Ok(self.text.as_bytes().to_vec()) } else { self.host.read(path) }
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
