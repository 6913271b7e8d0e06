//! Who sent what to whom: the emulator's own record of frames, by which a path is proved.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::link_model::Lost;
use crate::spawner::lock;

/// No more entries are kept than this.
const CAPACITY: usize = 1_000_000;

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
    pub link: Arc<str>,
    /// The sending station.
    pub from: Arc<str>,
    /// The receiving station.
    pub to: Arc<str>,
    /// Its length, Ethernet header included; of a part of a super-frame, as it would be on a wire.
    pub frame_length: usize,
    /// Bytes of UDP payload, if it is UDP.
    pub udp_payload: Option<usize>,
    /// Set if the emulator loses it.
    pub lost: Option<Lost>,
}

/// The log of a world; clones are the same log. It is idle until [`ProbeLog::start`].
#[derive(Debug, Clone, Default)]
pub struct ProbeLog {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Lets the emulator pass by without taking the lock while nobody looks.
    active: AtomicBool,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    filter: Option<ProbeFilter>,
    sightings: Vec<Sighting>,
}

impl ProbeLog {
    /// Forgets everything and logs what matches from now on.
    pub fn start(&self, filter: ProbeFilter) {
        *lock(&self.shared.entries) = Entries { filter: Some(filter), sightings: Vec::new() };
        self.shared.active.store(true, Ordering::Release);
    }

    /// Stops logging; the entries stay.
    pub fn stop(&self) {
        self.shared.active.store(false, Ordering::Release);
    }

    /// All entries so far, in the order of time.
    pub fn sightings(&self) -> Vec<Sighting> {
        let mut sightings = lock(&self.shared.entries).sightings.clone();
        // Several emulators write here, each in order.
        sightings.sort_by_key(|sighting| sighting.at);
        sightings
    }

    /// The stations that a single probe visited: the sender of the first sighting, then every receiver.
    pub fn journey(&self) -> Vec<String> {
        let sightings = self.sightings();
        let start = sightings.first().map(|first| &first.from).into_iter();
        start.chain(sightings.iter().map(|sighting| &sighting.to)).map(|name| name.to_string()).collect()
    }

    /// Whether anybody looks.
    pub(crate) fn is_active(&self) -> bool {
        self.shared.active.load(Ordering::Acquire)
    }

    /// Keeps a sighting if the filter wants it.
    pub(crate) fn record(&self, sighting: Sighting) {
        let mut entries = lock(&self.shared.entries);
        let wanted = match &entries.filter {
            None => false,
            Some(ProbeFilter::All) => true,
            Some(ProbeFilter::FrameLength(range)) => range.contains(&sighting.frame_length),
            Some(ProbeFilter::UdpPayload(range)) => {
                sighting.udp_payload.is_some_and(|length| range.contains(&length))
            }
        };
        if wanted && entries.sightings.len() < CAPACITY {
            entries.sightings.push(sighting);
        }
    }
}
