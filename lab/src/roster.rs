//! Which hosts a running world has, written to a file so that another process can enter them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::namespace::enter_paths;

/// The hosts of a running world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// The process that holds the world.
    pub pid: u32,
    /// Its hosts.
    pub hosts: Vec<RosterHost>,
}

/// One host and where its network namespace is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RosterHost {
    /// Its name.
    pub name: String,
    /// The namespace, below `/proc` of the process that holds the world.
    pub namespace: PathBuf,
}

impl Roster {
    /// The hosts of a world of this process.
    pub(crate) fn of<'a>(hosts: impl Iterator<Item = &'a Host>) -> Self {
        let entry =
            |host: &Host| RosterHost { name: host.name().to_owned(), namespace: host.namespace().path() };
        Self { pid: std::process::id(), hosts: hosts.map(entry).collect() }
    }

    /// Writes the roster to a file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::from);
        text.and_then(|text| std::fs::write(path, text + "\n"))
            .trying(|| format!("writing the roster {}", path.display()))
    }

    /// Reads what [`crate::World::publish`] wrote.
    ///
    /// # Errors
    /// When there is no such file or the world is gone.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).trying(|| format!("reading the roster {}", path.display()))?;
        let roster: Self = serde_json::from_str(&text)
            .map_err(std::io::Error::from)
            .trying(|| format!("reading the roster {}", path.display()))?;
        if !Path::new(&format!("/proc/{}", roster.pid)).exists() {
            return Err(LabError::Misuse(format!("the world of process {} is gone", roster.pid)));
        }
        Ok(roster)
    }

    /// Moves this process, which must have one thread, into a host: its user namespace, if that is another one, and
    /// its network namespace.
    ///
    /// # Errors
    /// When there is no such host or the kernel refuses.
    pub fn enter(&self, host: &str) -> Result<()> {
        let Some(found) = self.hosts.iter().find(|known| known.name == host) else {
            let names: Vec<_> = self.hosts.iter().map(|known| known.name.as_str()).collect();
            return Err(LabError::Misuse(format!("there is no host {host}; there are {}", names.join(", "))));
        };
        enter_paths(Path::new(&format!("/proc/{}/ns/user", self.pid)), &found.namespace)
    }
}
