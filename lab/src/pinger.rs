//! ICMP echo with our own code, down to one probe per millisecond.

use std::net::IpAddr;
use std::time::Duration;

use crate::error::Result;
use crate::host::Host;

/// What to ping and how.
#[derive(Debug, Clone)]
pub struct Pinger {
    /// Whom.
    pub target: IpAddr,
    /// From which address; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// Time between probes.
    pub interval: Duration,
    /// How many probes; `None`: until stopped.
    pub count: Option<u32>,
    /// Bytes after the ICMP header, at least 16.
    pub payload: usize,
    /// How long the last answers are waited for.
    pub patience: Duration,
}

/// A pinger at work in a host.
#[derive(Debug)]
pub struct RunningPinger {}

/// What a pinger saw.
#[derive(Debug, Clone, Default)]
pub struct PingReport {
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub received: u64,
    /// Further answers to the same probe.
    pub duplicates: u64,
    /// When each probe left, from the start, and how long its answer took.
    pub probes: Vec<(Duration, Option<Duration>)>,
    /// The longest time between two answers, or between the last answer and the end.
    pub longest_gap: Duration,
}

impl Pinger {
    /// Ten probes, 10 ms apart.
    pub fn new(target: IpAddr) -> Self {
        Self {
            target,
            source: None,
            interval: Duration::from_millis(10),
            count: Some(10),
            payload: 56,
            patience: Duration::from_secs(1),
        }
    }

    /// Pings from a host and returns when done.
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub fn run(&self, host: &Host) -> Result<PingReport> {
        let _ = host;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Pings from a host in the background until stopped, or until `count` is reached.
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub fn start(&self, host: &Host) -> Result<RunningPinger> {
        let _ = host;
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

impl RunningPinger {
    /// Round trip of the newest answered probe.
    pub fn latest(&self) -> Option<Duration> {
        None
    }

    /// Probes answered so far.
    pub fn received(&self) -> u64 {
        0
    }

    /// Sends no more probes, waits for the last answers and reports.
    ///
    /// # Errors
    /// When the kernel refused to send or receive for another reason than a missing route.
    pub fn stop(self) -> Result<PingReport> {
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

impl PingReport {
    /// Share of probes without an answer.
    pub fn loss(&self) -> f64 {
        1.0 - self.received as f64 / (self.sent.max(1)) as f64
    }

    /// All round trips, in the order of sending.
    pub fn round_trips(&self) -> impl Iterator<Item = Duration> + '_ {
        self.probes.iter().filter_map(|(_, rtt)| *rtt)
    }

    /// The shortest round trip.
    pub fn min(&self) -> Option<Duration> {
        self.round_trips().min()
    }

    /// The median round trip.
    pub fn median(&self) -> Option<Duration> {
        let mut all: Vec<_> = self.round_trips().collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}
