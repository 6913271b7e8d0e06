//! What the emulator decides, without devices or threads: who gets a frame, when, or why not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::capture::CaptureTap;
use crate::error::{LabError, Result};
use crate::frame::Frame;
use crate::link_model::{Deliveries, LinkModel, LinkSettings, Lost};
use crate::probe_log::{ProbeLog, Sighting};
use crate::random::Random;
use crate::segment::Counters;

/// The stations of a segment and the paths between each two of them.
#[derive(Debug)]
pub(crate) struct Fabric {
    name: Arc<str>,
    default: LinkSettings,
    stations: Vec<Arc<str>>,
    /// Ethernet addresses of stations, and of bridges and guests behind them as they are heard.
    addresses: BTreeMap<[u8; 6], usize>,
    /// By sender and receiver.
    paths: BTreeMap<(usize, usize), Path>,
    random: Random,
    log: ProbeLog,
    captures: Vec<CaptureTap>,
}

/// One direction between two stations.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) model: LinkModel,
    pub(crate) counters: Counters,
}

/// Takes a frame for a station at a time; false if there is no room for it.
pub(crate) type Deliver<'a> = dyn FnMut(usize, Instant, &[u8]) -> bool + 'a;

impl Fabric {
    pub(crate) fn new(name: &str, default: LinkSettings, seed: u64, log: ProbeLog) -> Self {
        Self {
            name: name.into(),
            default,
            stations: Vec::new(),
            addresses: BTreeMap::new(),
            paths: BTreeMap::new(),
            random: Random::new(seed),
            log,
            captures: Vec::new(),
        }
    }

    /// Adds a station, with paths to and from all others.
    pub(crate) fn add_station(&mut self, name: &str, mac: [u8; 6]) -> Result<usize> {
        if self.stations.iter().any(|known| &**known == name) {
            return Err(LabError::Misuse(format!("{name} is at {} already", self.name)));
        }
        let new = self.stations.len();
        let fresh = || Path { model: LinkModel::new(self.default), counters: Counters::default() };
        for other in 0..new {
            self.paths.insert((new, other), fresh());
            self.paths.insert((other, new), fresh());
        }
        self.stations.push(name.into());
        self.addresses.insert(mac, new);
        Ok(new)
    }

    pub(crate) fn station(&self, name: &str) -> Result<usize> {
        let unknown = || LabError::Misuse(format!("there is no {name} at {}", self.name));
        self.stations.iter().position(|known| &**known == name).ok_or_else(unknown)
    }

    /// The path between two stations, by name.
    pub(crate) fn path(&mut self, from: &str, to: &str) -> Result<&mut Path> {
        let key = (self.station(from)?, self.station(to)?);
        let unknown = || LabError::Misuse(format!("there is no path from {from} to {to}"));
        self.paths.get_mut(&key).ok_or_else(unknown)
    }

    /// All paths that begin or end at a station.
    pub(crate) fn paths_of(&mut self, station: usize) -> impl Iterator<Item = &mut Path> {
        let paths = self.paths.iter_mut();
        paths.filter(move |(ends, _)| ends.0 == station || ends.1 == station).map(|(_, path)| path)
    }

    pub(crate) fn add_capture(&mut self, capture: CaptureTap) {
        self.captures.push(capture);
    }

    /// Brings captures up to date and forgets those that have ended.
    pub(crate) fn flush_captures(&mut self) {
        self.captures.retain(|capture| {
            capture.flush();
            capture.is_open()
        });
    }

    /// Decides about a frame that a station sent, and hands it on as often as it arrives somewhere.
    pub(crate) fn forward(&mut self, from: usize, raw: &[u8], now: Instant, deliver: &mut Deliver<'_>) {
        let Some(frame) = Frame::parse(raw) else { return };
        let receivers = self.receivers(from, &frame);
        for capture in self.captures.iter().filter(|capture| capture.wants(from, &receivers)) {
            capture.write(&frame, now);
        }
        for to in receivers {
            self.forward_to(from, to, &frame, raw, now, deliver);
        }
    }

    /// The station of the destination address; all others if that is unknown or a group.
    fn receivers(&mut self, from: usize, frame: &Frame<'_>) -> Vec<usize> {
        let is_group = |mac: [u8; 6]| mac[0] & 1 != 0;
        if !is_group(frame.source()) {
            self.addresses.entry(frame.source()).or_insert(from);
        }
        match self.addresses.get(&frame.destination()) {
            Some(station) if *station == from => Vec::new(),
            Some(station) => vec![*station],
            None => (0..self.stations.len()).filter(|station| *station != from).collect(),
        }
    }

    fn forward_to(
        &mut self,
        from: usize,
        to: usize,
        frame: &Frame<'_>,
        raw: &[u8],
        now: Instant,
        deliver: &mut Deliver<'_>,
    ) {
        let Some(path) = self.paths.get_mut(&(from, to)) else { return };
        path.counters.submit(frame);
        // A slow or dead path is slow or dead between routers; the resolution of addresses on the first metre isn't.
        if frame.is_resolution() {
            deliver(to, now, raw);
            return;
        }
        let single = frame.count() == 1;
        if !single && path.model.settings().judges_single_frames() {
            for part in frame.split() {
                let Some(frame) = Frame::parse(&part) else { continue };
                let fate = self.submit(from, to, &frame, &part, now, deliver);
                self.log(from, to, &frame, now, fate);
            }
        } else {
            let fate = self.submit(from, to, frame, raw, now, deliver);
            self.log(from, to, frame, now, fate);
        }
    }

    /// Asks the model about one frame (or a super-frame that shares one fate) and carries out what it says.
    fn submit(
        &mut self,
        from: usize,
        to: usize,
        frame: &Frame<'_>,
        raw: &[u8],
        now: Instant,
        deliver: &mut Deliver<'_>,
    ) -> Option<Lost> {
        let path = self.paths.get_mut(&(from, to))?;
        let deliveries = path.model.submit(frame.wire_bytes(), now, &mut self.random);
        let mut lost = match deliveries {
            Deliveries::Lost(why) => Some(why),
            Deliveries::Once(_) | Deliveries::Twice(..) => None,
        };
        for at in deliveries.iter() {
            if !deliver(to, at, raw) {
                lost = Some(Lost::QueueFull);
            }
        }
        if let Some(why) = lost {
            path.counters.lose(frame, why);
        }
        lost
    }

    fn log(&self, from: usize, to: usize, frame: &Frame<'_>, at: Instant, lost: Option<Lost>) {
        if !self.log.is_active() {
            return;
        }
        let (Some(from), Some(to)) = (self.stations.get(from), self.stations.get(to)) else { return };
        for (frame_length, udp_payload) in frame.lengths() {
            let (link, from, to) = (self.name.clone(), from.clone(), to.clone());
            self.log.record(Sighting { at, link, from, to, frame_length, udp_payload, lost });
        }
    }
}

impl Counters {
    fn submit(&mut self, frame: &Frame<'_>) {
        self.frames += frame.count() as u64;
        self.bytes += frame.wire_bytes() as u64;
        self.super_frames += u64::from(frame.count() > 1);
        self.longest = self.longest.max(frame.length() as u64);
    }

    fn lose(&mut self, frame: &Frame<'_>, why: Lost) {
        self.lost += frame.count() as u64;
        if why == Lost::QueueFull {
            self.queue_full += frame.count() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Fabric;
    use crate::frame::tests::udp_train;
    use crate::link_model::LinkSettings;
    use crate::probe_log::{ProbeFilter, ProbeLog};

    /// Three stations whose addresses end in 0, 1 and 2.
    fn fabric(settings: LinkSettings) -> (Fabric, ProbeLog) {
        let log = ProbeLog::default();
        let mut fabric = Fabric::new("net", settings, 5, log.clone());
        for (index, name) in (0..).zip(["a", "b", "c"]) {
            fabric.add_station(name, [2, 0, 0, 0, 0, index]).unwrap();
        }
        (fabric, log)
    }

    fn send(fabric: &mut Fabric, from: usize, raw: &[u8], now: Instant) -> Vec<(usize, Duration, usize)> {
        let mut seen = Vec::new();
        fabric.forward(from, raw, now, &mut |to, at, frame| {
            seen.push((to, at - now, frame.len()));
            true
        });
        seen
    }

    #[test]
    fn each_pair_has_its_own_delay() {
        let (mut fabric, _) = fabric(LinkSettings::PERFECT);
        let now = Instant::now();
        fabric.path("a", "b").unwrap().model.set(LinkSettings::with_rtt_ms(80));
        let seen = send(&mut fabric, 0, &udp_train(1, 0, 100, 0), now);
        assert_eq!(seen, [(1, Duration::from_millis(40), 152)]);
        let seen = send(&mut fabric, 0, &udp_train(2, 0, 100, 0), now);
        assert_eq!(seen, [(2, Duration::ZERO, 152)]);
    }

    #[test]
    fn unknown_addresses_are_flooded_but_not_back() {
        let (mut fabric, _) = fabric(LinkSettings::PERFECT);
        let seen = send(&mut fabric, 1, &udp_train(77, 1, 10, 0), Instant::now());
        assert_eq!(seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn trains_pass_whole_unless_single_frames_may_be_lost() {
        let (mut fabric, log) = fabric(LinkSettings::PERFECT);
        log.start(ProbeFilter::UdpPayload(500..=500));
        let train = udp_train(1, 0, 10_500, 1000);
        assert_eq!(send(&mut fabric, 0, &train, Instant::now()).len(), 1);
        assert_eq!(log.sightings().len(), 1);
        fabric.path("a", "b").unwrap().model.set(LinkSettings { loss: 0.5, ..LinkSettings::PERFECT });
        let arrived = send(&mut fabric, 0, &train, Instant::now()).len() as u64;
        let counters = fabric.path("a", "b").unwrap().counters;
        assert_eq!(arrived + counters.lost, 11);
        assert!((1..11).contains(&arrived), "{arrived} of 11 arrived");
        assert_eq!((counters.frames, counters.super_frames), (22, 2));
    }

    #[test]
    fn the_log_tells_a_journey() {
        let (mut fabric, log) = fabric(LinkSettings::PERFECT);
        log.start(ProbeFilter::UdpPayload(333..=333));
        let start = Instant::now();
        for (step, (from, to)) in (0..).zip([(0, 1), (1, 2), (2, 1)]) {
            let now = start + Duration::from_millis(step);
            send(&mut fabric, from.into(), &udp_train(to, from, 333, 0), now);
            send(&mut fabric, from.into(), &udp_train(to, from, 334, 0), now);
        }
        assert_eq!(log.journey(), ["a", "b", "c", "b"]);
    }

    #[test]
    fn address_resolution_passes_a_dead_path() {
        let (mut fabric, _) = fabric(LinkSettings::DEAD);
        let mut arp = vec![0; 10];
        arp.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 8, 6]);
        arp.extend([0; 28]);
        assert_eq!(send(&mut fabric, 0, &arp, Instant::now()).len(), 1);
        assert!(send(&mut fabric, 0, &udp_train(1, 0, 10, 0), Instant::now()).is_empty());
    }

    #[test]
    fn stations_are_known_by_one_name() {
        let (mut fabric, _) = fabric(LinkSettings::PERFECT);
        assert!(fabric.add_station("a", [2, 0, 0, 0, 0, 9]).is_err());
        assert!(fabric.path("a", "nobody").is_err());
        assert!(fabric.path("a", "a").is_err());
    }
}
