//! `viamesh neighbours`: Babel's view of each link.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Text;

/// The answer to `neighbours`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeighboursReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// One entry per neighbour and link.
    pub neighbours: Vec<NeighbourEntry>,
}

/// One neighbour on one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeighbourEntry {
    /// The node.
    pub node: String,
    /// Link in words: `0 > bravo/0`.
    pub link: String,
    /// Its link-local address.
    pub address: IpAddr,
    /// The last multicast Hellos, newest in bit 15: 1 heard, 0 lost.
    pub hello_history: u16,
    /// The last unicast Hellos; `None` where it sends none.
    pub unicast_history: Option<u16>,
    /// Cost at which we hear it.
    pub rxcost: Option<u32>,
    /// Cost at which it hears us.
    pub txcost: Option<u32>,
    /// Cost of the link; `None` is infinite.
    pub cost: Option<u32>,
    /// Smoothed round trip.
    pub rtt_ms: Option<f64>,
    /// Seconds between its Hellos.
    pub hello_interval_seconds: f64,
    /// Routes that we have from it.
    pub routes: usize,
    /// Whether the peer is a viamesh node.
    pub ours: bool,
    /// Seconds since it was first heard.
    pub since_seconds: u64,
}

impl Text for NeighboursReport {
    fn text(&self) -> String {
        String::new()
    }
}
