//! A network that any number of hosts join: an internet in small, with its own properties between each two of them.

use std::path::Path;

use ipnet::{Ipv4Net, Ipv6Net};

use crate::capture::Capture;
use crate::error::Result;
use crate::host::Host;
use crate::interface::Interface;
use crate::link_model::LinkSettings;

/// How a segment is set up.
#[derive(Debug, Clone)]
pub struct SegmentConfig {
    /// Its name in logs.
    pub name: String,
    /// The settings between two stations until they are set for that pair.
    pub settings: LinkSettings,
    /// The MTU of the interfaces.
    pub mtu: u32,
    /// The IPv4 network that stations get addresses from, .1 first; `None`: no IPv4.
    pub v4: Option<Ipv4Net>,
    /// The IPv6 network that stations get addresses from, ::1 first; `None`: no IPv6.
    pub v6: Option<Ipv6Net>,
}

/// What one direction between two stations did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames sent into it; a super-frame counts as the frames that it stands for.
    pub frames: u64,
    /// Bytes of these frames, Ethernet headers included.
    pub bytes: u64,
    /// Frames that were lost, for whatever reason.
    pub lost: u64,
    /// Of these, lost because the queue was full.
    pub queue_full: u64,
    /// Super-frames among the submitted ones.
    pub super_frames: u64,
    /// The longest frame, headers included.
    pub longest: u64,
}

/// A network segment; clones are the same segment.
///
/// Stations are named by `&Host` or by name.
#[derive(Debug, Clone)]
pub struct Segment {}

impl Segment {
    /// Joins a host: a new interface with an address of each family.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&self, host: &Host) -> Result<Interface> {
        let _ = host;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Joins a host under another station name: for a second interface of the same host.
    ///
    /// # Errors
    /// When the kernel refuses or the name is taken.
    pub fn attach_as(&self, host: &Host, station: &str) -> Result<Interface> {
        let _ = (host, station);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Changes both directions between two stations, from now on.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn set(&self, a: impl AsRef<str>, b: impl AsRef<str>, settings: LinkSettings) -> Result<()> {
        self.set_one_way(&a, &b, settings)?;
        self.set_one_way(&b, &a, settings)
    }

    /// Changes one direction, from now on.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn set_one_way(
        &self,
        from: impl AsRef<str>,
        to: impl AsRef<str>,
        settings: LinkSettings,
    ) -> Result<()> {
        let _ = (from, to, settings);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Changes all directions to and from one station: for example [`LinkSettings::DEAD`].
    ///
    /// # Errors
    /// When the station is unknown.
    pub fn set_station(&self, station: impl AsRef<str>, settings: LinkSettings) -> Result<()> {
        let _ = (station, settings);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// The present settings of one direction.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn settings(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<LinkSettings> {
        let _ = (from, to);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// What one direction did so far.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn counters(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<Counters> {
        let _ = (from, to);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Writes all frames that stations send from now on to a pcap file, until the capture is dropped.
    ///
    /// # Errors
    /// When the file can't be created.
    pub fn capture(&self, path: &Path) -> Result<Capture> {
        let _ = path;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Like [`Segment::capture`], only for frames between two stations.
    ///
    /// # Errors
    /// When the file can't be created or a station is unknown.
    pub fn capture_between(&self, a: impl AsRef<str>, b: impl AsRef<str>, path: &Path) -> Result<Capture> {
        let _ = (a, b, path);
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}
