//! Bulk transfer by TCP, one stream or several.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::Result;
use crate::host::Host;

/// A transfer to run.
#[derive(Debug, Clone)]
pub struct TcpPump {
    /// Where the receiver listens.
    pub target: SocketAddr,
    /// From which address; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// How many connections at once.
    pub streams: usize,
    /// For how long.
    pub duration: Duration,
}

/// What arrived.
#[derive(Debug, Clone, Copy, Default)]
pub struct PumpReport {
    /// Bytes that the receiver read.
    pub bytes: u64,
    /// From its first byte to its last.
    pub duration: Duration,
}

impl TcpPump {
    /// One stream for two seconds.
    pub fn new(target: SocketAddr) -> Self {
        Self { target, source: None, streams: 1, duration: Duration::from_secs(2) }
    }

    /// Runs the transfer and returns when it is over.
    ///
    /// # Errors
    /// When a connection can't be made or breaks.
    pub fn run(&self, from: &Host, to: &Host) -> Result<PumpReport> {
        let _ = (from, to);
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

impl PumpReport {
    /// Gigabits of payload per second.
    pub fn gbps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.duration.as_secs_f64().max(1e-9) / 1e9
    }
}
