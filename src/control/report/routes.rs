//! `viamesh routes`: what Babel knows.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Text;

/// The answer to `routes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutesReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The address that was asked for.
    pub address: Option<IpAddr>,
    /// Routes, by prefix, the selected one first.
    pub routes: Vec<RouteEntry>,
}

/// What becomes of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteStanding {
    /// In use.
    Selected,
    /// Could be used, another is better.
    Feasible,
    /// Would risk a loop (RFC 8966 section 3.5.1).
    Unfeasible,
    /// Withdrawn by its neighbour, kept for a while.
    Retracted,
    /// Not accepted by our import rules.
    Rejected,
    /// Announced by this node.
    Local,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteEntry {
    /// Destination.
    pub prefix: IpNet,
    /// Source prefix of a source-specific route (RFC 9079).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpNet>,
    /// In use or not.
    pub standing: RouteStanding,
    /// Node that announces it, if the registry knows its router-id.
    pub origin: Option<String>,
    /// Neighbour node that we have it from; `None` for our own.
    pub neighbour: Option<String>,
    /// The neighbour's address on the link.
    pub next_hop: Option<IpAddr>,
    /// Link in words: `0 > bravo/0`.
    pub link: Option<String>,
    /// Our metric; `None` is infinite.
    pub metric: Option<u32>,
    /// Metric as the neighbour announced it; `None` is infinite.
    pub announced_metric: Option<u32>,
    /// Babel sequence number.
    pub seqno: u16,
    /// Babel router-id, hexadecimal with colons.
    pub router_id: String,
    /// Smoothed round trip of the link.
    pub rtt_ms: Option<f64>,
    /// Seconds since the last update.
    pub age_seconds: f64,
    /// Why it was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Text for RoutesReport {
    fn text(&self) -> String {
        String::new()
    }
}
