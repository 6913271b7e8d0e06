//! `viamesh status`: who is up, which way, how far.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::Text;
use crate::telemetry::Health;

/// The answer to `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// This node, `common_name.organization`.
    pub node: String,
    /// Version of the daemon.
    pub version: String,
    /// Seconds since the daemon started.
    pub uptime_seconds: u64,
    /// UDP ports that we listen on.
    pub listening: Vec<u16>,
    /// Addresses of this node on the TUN.
    pub addresses: Vec<IpAddr>,
    /// The other nodes, or the one that was asked for.
    pub nodes: Vec<NodeStatus>,
    /// Our policies in file order.
    pub policies: Vec<PolicyStatus>,
    /// What is wrong, worst first.
    pub problems: Vec<Health>,
}

/// State of another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// Reachable.
    Up,
    /// Being dialled.
    Connecting,
    /// Not reachable.
    Down,
}

/// Who began the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialled {
    /// We did.
    Us,
    /// The other node did.
    Them,
}

/// The way to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PathStatus {
    /// By a tunnel of our own.
    Direct {
        /// The peer's underlay address and port.
        remote: SocketAddr,
        /// Who dialled.
        dialled: Dialled,
    },
    /// Relayed.
    Through {
        /// The next node on the way.
        node: String,
    },
    /// No way; why.
    None {
        /// Reason in words: `no answer for 4 min`.
        reason: String,
    },
}

/// One line of `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node's name.
    pub node: String,
    /// Reachable or not.
    pub state: NodeState,
    /// Seconds in this state.
    pub since_seconds: u64,
    /// The way to it.
    pub path: PathStatus,
    /// Round trip by that way, as Babel measures it.
    pub rtt_ms: Option<f64>,
    /// Bytes received on its links, since the daemon started.
    pub received_bytes: Option<u64>,
    /// Bytes sent on its links.
    pub sent_bytes: Option<u64>,
    /// Negotiated key exchange; `None` where there is no tunnel.
    pub key_exchange: Option<String>,
    /// Addresses that the node announces for itself.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// The links between us and it.
    #[serde(default)]
    pub links: Vec<LinkStatus>,
}

/// One link: a pair of endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Our endpoint's serial number.
    pub local_endpoint: String,
    /// Their endpoint's serial number.
    pub remote_endpoint: String,
    /// Up, connecting or down.
    pub state: NodeState,
    /// Their address, where known.
    pub remote: Option<SocketAddr>,
    /// Smoothed round trip of the link.
    pub rtt_ms: Option<f64>,
    /// Lost Hellos in percent.
    pub loss_percent: Option<f64>,
    /// Babel cost; `None` is unreachable.
    pub cost: Option<u32>,
    /// Largest inner packet in bytes.
    pub mtu: Option<u32>,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// State of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyState {
    /// Every stop is reachable.
    Up,
    /// Traffic takes another way than written (`any-path`, or a later candidate).
    Degraded,
    /// Traffic is dropped.
    Down,
}

/// One policy line of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// The policy's name.
    pub policy: String,
    /// Up or not.
    pub state: PolicyState,
    /// The journey, this node first.
    pub path: Vec<String>,
    /// Remark on the path: `nearest internet exit`.
    pub remark: Option<String>,
    /// Why it is not up: `echo does not answer`.
    pub reason: Option<String>,
    /// Largest inner packet in bytes.
    pub mtu: Option<u32>,
    /// Packets sent by it.
    pub packets: u64,
    /// Packets dropped by it.
    pub dropped: u64,
}

impl Text for StatusReport {
    fn text(&self) -> String {
        String::new()
    }
}
