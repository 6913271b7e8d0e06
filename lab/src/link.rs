//! A link between two hosts: a segment with two stations.

use std::path::Path;

use crate::capture::Capture;
use crate::error::Result;
use crate::interface::Interface;
use crate::link_model::LinkSettings;
use crate::segment::{Counters, Segment};

/// A link; clones are the same link.
#[derive(Debug, Clone)]
pub struct Link {
    segment: Segment,
    a: (String, Interface),
    b: (String, Interface),
}

impl Link {
    /// The interface of the first host.
    pub fn a(&self) -> &Interface {
        &self.a.1
    }

    /// The interface of the second host.
    pub fn b(&self) -> &Interface {
        &self.b.1
    }

    /// The segment below.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Changes both directions, from now on.
    ///
    /// # Errors
    /// Never for a link whose world lives.
    pub fn set(&self, settings: LinkSettings) -> Result<()> {
        self.segment.set(&self.a.0, &self.b.0, settings)
    }

    /// Changes the direction towards one of the two hosts.
    ///
    /// # Errors
    /// When the host is not at this link.
    pub fn set_towards(&self, host: impl AsRef<str>, settings: LinkSettings) -> Result<()> {
        let _ = (host, settings);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// What the direction towards one of the two hosts did.
    ///
    /// # Errors
    /// When the host is not at this link.
    pub fn counters_towards(&self, host: impl AsRef<str>) -> Result<Counters> {
        let _ = host;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Writes all frames from now on to a pcap file, until the capture is dropped.
    ///
    /// # Errors
    /// When the file can't be created.
    pub fn capture(&self, path: &Path) -> Result<Capture> {
        self.segment.capture(path)
    }
}
