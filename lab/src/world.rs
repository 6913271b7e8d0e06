//! A world: hosts, the links between them, and a folder for what they write.

use std::path::Path;

use crate::capability::Capability;
use crate::error::Result;
use crate::host::Host;
use crate::link::Link;
use crate::link_model::LinkSettings;
use crate::probe_log::ProbeLog;
use crate::segment::{Segment, SegmentConfig};
use crate::veth::Veth;

/// A world; when it is dropped, its processes end and its namespaces vanish.
#[derive(Debug)]
pub struct World {
    log: ProbeLog,
}

impl World {
    /// What this process may do, and what a person should run if it may not.
    pub fn probe() -> Capability {
        Capability::probe()
    }

    /// An empty world.
    ///
    /// # Errors
    /// [`crate::LabError::Impossible`] with advice where worlds can't be built.
    pub fn new() -> Result<Self> {
        Self::with_seed(1)
    }

    /// An empty world whose losses and jitter follow from `seed`.
    ///
    /// # Errors
    /// As [`World::new`].
    pub fn with_seed(seed: u64) -> Result<Self> {
        let _ = seed;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Adds a host: a network namespace with `lo` up, forwarding on, `rp_filter`, duplicate address detection and
    /// router solicitations off.
    ///
    /// # Errors
    /// When the kernel refuses or the name is taken.
    pub fn host(&self, name: &str) -> Result<Host> {
        let _ = name;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// The host of that name, if it exists.
    pub fn find(&self, name: &str) -> Option<Host> {
        let _ = name;
        None
    }

    /// Joins two hosts by an emulated link, with an address of each family on each side
    /// (198.18.*n*.1 and .2, 2001:db8:*n*::1 and ::2).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn link(&self, a: &Host, b: &Host, settings: LinkSettings) -> Result<Link> {
        let _ = (a, b, settings);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// A segment without stations, MTU 1500, perfect until told otherwise, addresses as for [`World::link`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn segment(&self, name: &str) -> Result<Segment> {
        let _ = name;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// The configuration that [`World::segment`] would use: to change some of it.
    pub fn segment_config(&self, name: &str) -> SegmentConfig {
        let _ = name;
        SegmentConfig {
            name: name.to_owned(),
            settings: LinkSettings::PERFECT,
            mtu: 1500,
            v4: None,
            v6: None,
        }
    }

    /// A segment without stations.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn segment_with(&self, config: SegmentConfig) -> Result<Segment> {
        let _ = config;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Joins two hosts by a veth pair: no emulation, no delay.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn veth(&self, a: &Host, b: &Host) -> Result<Veth> {
        let _ = (a, b);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// The log of frames of all links and segments.
    pub fn probe_log(&self) -> &ProbeLog {
        &self.log
    }

    /// The folder that logs go to and that a test may use; it is removed with the world, unless a test panics.
    pub fn directory(&self) -> &Path {
        Path::new("")
    }

    /// Writes the [`crate::Roster`] of this world to a file.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn publish(&self, path: &Path) -> Result<()> {
        let _ = path;
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}
