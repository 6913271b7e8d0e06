//! A link between two hosts: a segment with two stations.

use std::path::Path;

use crate::capture::Capture;
use crate::error::{LabError, Result};
use crate::host::Host;
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
    /// Joins both hosts to a segment that has no other stations.
    pub(crate) fn join(segment: Segment, a: &Host, b: &Host) -> Result<Self> {
        let first = (a.name().to_owned(), segment.attach(a)?);
        let second = (b.name().to_owned(), segment.attach(b)?);
        Ok(Self { segment, a: first, b: second })
    }

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
    /// Never: both stations exist.
    pub fn set(&self, settings: LinkSettings) -> Result<()> {
        self.segment.set(&self.a.0, &self.b.0, settings)
    }

    /// Changes the direction towards one of the two hosts.
    ///
    /// # Errors
    /// When the host is not at this link.
    pub fn set_towards(&self, host: impl AsRef<str>, settings: LinkSettings) -> Result<()> {
        self.segment.set_one_way(self.other_end(host.as_ref())?, host, settings)
    }

    /// What the direction towards one of the two hosts did.
    ///
    /// # Errors
    /// When the host is not at this link.
    pub fn counters_towards(&self, host: impl AsRef<str>) -> Result<Counters> {
        self.segment.counters(self.other_end(host.as_ref())?, host)
    }

    /// Writes all frames from now on to a pcap file, until the capture is dropped.
    ///
    /// # Errors
    /// When the file can't be created.
    pub fn capture(&self, path: &Path) -> Result<Capture> {
        self.segment.capture(path)
    }

    fn other_end(&self, host: &str) -> Result<&str> {
        match host {
            _ if host == self.a.0 => Ok(&self.b.0),
            _ if host == self.b.0 => Ok(&self.a.0),
            _ => Err(LabError::Misuse(format!("{host} is not at the link {}", self.segment.name()))),
        }
    }
}
