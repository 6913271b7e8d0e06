//! `viamesh trace` and `viamesh ping`: what probes found.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Text;

/// The answer to `trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The destination.
    pub destination: IpAddr,
    /// The policy that takes the probes.
    pub policy: Option<String>,
    /// Stops in order.
    pub hops: Vec<TraceHop>,
    /// Whether the last stop was reached.
    pub complete: bool,
    /// Why not, or another remark.
    pub remark: Option<String>,
}

/// One stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceHop {
    /// 1 is the first stop after this node.
    pub hop: u8,
    /// Node's name, or `None` if nobody answered or the address is not in the registry.
    pub node: Option<String>,
    /// Address that answered.
    pub address: Option<IpAddr>,
    /// Median round trip.
    pub rtt_ms: Option<f64>,
    /// Probes sent.
    pub sent: u32,
    /// Answers received.
    pub received: u32,
    /// `second visit`.
    pub remark: Option<String>,
}

/// The answer to `ping`, and its progress: a report with the replies so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PingReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The node, or the address that was given.
    pub node: String,
    /// Its address.
    pub address: IpAddr,
    /// Stops of a hand-written path.
    #[serde(default)]
    pub via: Vec<String>,
    /// Probes sent.
    pub sent: u32,
    /// Answers, by sequence number.
    pub replies: Vec<PingReply>,
}

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PingReply {
    /// Sequence number, from 1.
    pub sequence: u32,
    /// Round trip; `None` is lost.
    pub rtt_ms: Option<f64>,
}

impl Text for TraceReport {
    fn text(&self) -> String {
        String::new()
    }
}

impl Text for PingReport {
    fn text(&self) -> String {
        String::new()
    }
}
