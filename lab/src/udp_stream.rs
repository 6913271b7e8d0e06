//! A stream of numbered datagrams from one host to another: loss, duplicates, order, gaps, one-way delay.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::Result;
use crate::host::Host;

/// A stream to send.
#[derive(Debug, Clone)]
pub struct UdpStream {
    /// Where the receiver listens.
    pub target: SocketAddr,
    /// From which address; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// Datagrams per second.
    pub packets_per_second: f64,
    /// Bytes of payload, at least 16.
    pub payload: usize,
}

/// A stream on its way.
#[derive(Debug)]
pub struct RunningUdpStream {}

/// What the receiver counted.
#[derive(Debug, Clone, Default)]
pub struct UdpReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Different datagrams received.
    pub received: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Datagrams that came after a later one.
    pub reordered: u64,
    /// The longest time between two datagrams at the receiver.
    pub longest_gap: Duration,
    /// One-way delays of the received ones: shortest, median, longest.
    pub delay: Option<(Duration, Duration, Duration)>,
    /// Sends that the kernel refused, for example without a route.
    pub refused: u64,
}

impl UdpStream {
    /// A stream of so many bits of payload per second.
    pub fn with_bit_rate(target: SocketAddr, bits_per_second: f64, payload: usize) -> Self {
        Self { target, source: None, packets_per_second: bits_per_second / (payload as f64 * 8.0), payload }
    }

    /// Starts the receiver at `to`, then the sender at `from`.
    ///
    /// # Errors
    /// When the kernel refuses a socket.
    pub fn start(&self, from: &Host, to: &Host) -> Result<RunningUdpStream> {
        let _ = (from, to);
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

impl RunningUdpStream {
    /// Datagrams received so far.
    pub fn received(&self) -> u64 {
        0
    }

    /// Stops sending, waits so long for stragglers, and reports.
    ///
    /// # Errors
    /// When a thread of the stream failed.
    pub fn stop(self, patience: Duration) -> Result<UdpReport> {
        let _ = patience;
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

impl UdpReport {
    /// Datagrams that never came.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}
