//! Which hosts a running world has, written to a file so that another process can enter them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// The hosts of a running world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// The process that holds the world.
    pub pid: u32,
    /// The names of its hosts.
    pub hosts: Vec<RosterHost>,
}

/// One host and where its network namespace is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RosterHost {
    /// Its name.
    pub name: String,
    /// The namespace, below `/proc` of the process that holds the world.
    pub namespace: String,
}

impl Roster {
    /// Reads what [`crate::World::publish`] wrote.
    ///
    /// # Errors
    /// When there is no such file or the world is gone.
    pub fn read(path: &Path) -> Result<Self> {
        let _ = path;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Moves this process, which must have one thread, into a host: its user namespace, if that is another one, and
    /// its network namespace.
    ///
    /// # Errors
    /// When there is no such host or the kernel refuses.
    pub fn enter(&self, host: &str) -> Result<()> {
        let _ = host;
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}
