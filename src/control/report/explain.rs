//! `viamesh explain`: which policy takes a packet, and which way it goes.

use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::Text;

/// The answer to `explain`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The packet.
    pub flow: FlowDescription,
    /// Each policy in order, up to the one that matches.
    pub rules: Vec<RuleVerdict>,
    /// Nodes on the way, this one first; without a policy as far as known.
    pub path: Vec<String>,
    /// SIDs on the way, first stop first; empty without a policy.
    pub segments: Vec<Ipv6Addr>,
    /// Why it leaves where it leaves: `partner/delta announces 10.4.0.0/16 (learned 2 s ago)`.
    pub exit: Option<String>,
    /// Sizes.
    pub size: Option<SizeBudget>,
    /// State of the way in words: `every stop is reachable; last packet 0.3 s ago`.
    pub now: Option<String>,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// The packet that is explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowDescription {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// `tcp`, `udp`, `icmp` or a number.
    pub protocol: Option<String>,
    /// Source port.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
}

/// What one policy says to the packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleVerdict {
    /// Whether it matches.
    pub matched: bool,
    /// The policy's name.
    pub policy: String,
    /// `node.yaml:9`.
    pub position: String,
    /// `first match`, `source is not in 10.1.99.0/24`.
    pub reason: String,
}

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeBudget {
    /// Largest inner packet in bytes.
    pub mtu: u32,
    /// Bytes of outer IPv6 and routing header.
    pub routing_header: u32,
    /// Largest packet in the tunnel in bytes.
    pub tunnel_mtu: u32,
}

/// Where a packet that is not dropped goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// To this host or a network behind it.
    Local,
    /// Into the tunnel to a node.
    Link {
        /// The next node.
        node: String,
    },
    /// Not by the mesh: the host's own routes decide.
    Outside,
}

/// What becomes of the packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It goes on.
    Forwarded(Delivery),
    /// It is dropped.
    Dropped {
        /// Stable name of the drop reason: metric label and heading in the manual.
        reason: String,
        /// The same in words.
        text: String,
    },
}

impl Text for ExplainReport {
    fn text(&self) -> String {
        String::new()
    }
}
