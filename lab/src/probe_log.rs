//! Who sent what to whom: the emulator's own record of frames, by which a path is proved.

use std::ops::RangeInclusive;
use std::time::Instant;

use crate::link_model::Lost;

/// Which frames to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeFilter {
    /// All of them (at most a million are kept).
    All,
    /// Frames of these lengths, Ethernet header included.
    FrameLength(RangeInclusive<usize>),
    /// UDP datagrams, on the link, with so many bytes of payload.
    UdpPayload(RangeInclusive<usize>),
}

/// One frame, seen when its sender handed it to the link.
#[derive(Debug, Clone)]
pub struct Sighting {
    /// When.
    pub at: Instant,
    /// The link or segment.
    pub link: String,
    /// The sending station.
    pub from: String,
    /// The receiving station.
    pub to: String,
    /// Its length, Ethernet header included.
    pub frame_length: usize,
    /// Bytes of UDP payload, if it is UDP.
    pub udp_payload: Option<usize>,
    /// Set if the emulator loses it.
    pub lost: Option<Lost>,
}

/// The log of a world; clones are the same log. It is idle until [`ProbeLog::start`].
#[derive(Debug, Clone, Default)]
pub struct ProbeLog {}

impl ProbeLog {
    /// Forgets everything and logs what matches from now on.
    pub fn start(&self, filter: ProbeFilter) {
        let _ = filter;
    }

    /// Stops logging; the entries stay.
    pub fn stop(&self) {}

    /// All entries so far, in the order of time.
    pub fn sightings(&self) -> Vec<Sighting> {
        Vec::new()
    }

    /// The stations that a single probe visited: the sender of the first sighting, then every receiver.
    pub fn journey(&self) -> Vec<String> {
        Vec::new()
    }
}
