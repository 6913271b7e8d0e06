//! What goes over the control socket: one JSON object per line, requests up, replies down.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::report::{
    AssociationsReport, ExplainReport, FlowDescription, NeighboursReport, PingReport, RegistryReport, RoutesReport,
    StatusReport, TraceReport,
};

/// Version of the protocol. A daemon refuses other versions in words.
pub const VERSION: u32 = 1;

/// What a command asks the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// State of all nodes, or of one.
    Status {
        /// Name of a node.
        node: Option<String>,
    },
    /// Babel's routes, or those that cover an address.
    Routes {
        /// The address.
        address: Option<IpAddr>,
    },
    /// Babel's neighbours.
    Neighbours,
    /// IKE and ESP SAs, or those with one node.
    Associations {
        /// Name of a node.
        node: Option<String>,
    },
    /// What becomes of a packet.
    Explain {
        /// The packet.
        flow: FlowDescription,
    },
    /// Probes along the way of a packet. Answered by progress and a final report.
    Trace {
        /// The packet; its source may be unspecified (`::`, `0.0.0.0`) for the node's own address.
        flow: FlowDescription,
        /// Probes per stop.
        count: u32,
        /// Longest wait for one answer in milliseconds.
        timeout_ms: u32,
    },
    /// Probes to a node. Answered by progress and a final report.
    Ping {
        /// Name of a node, or an address.
        node: String,
        /// Stops on the way there; empty: as the mesh routes.
        via: Vec<String>,
        /// Number of probes.
        count: u32,
        /// Milliseconds between probes.
        interval_ms: u32,
        /// Longest wait for one answer in milliseconds.
        timeout_ms: u32,
    },
    /// The registry in force.
    Registry,
    /// Read the configuration again and apply it.
    Reload,
    /// Change the log level, for a while.
    Log {
        /// A filter such as `ikev2=debug,info`; `None` asks for the one in force.
        filter: Option<String>,
        /// Seconds after which the level returns; `None` keeps it.
        seconds: Option<u32>,
    },
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Status`].
    Status(StatusReport),
    /// To [`Request::Routes`].
    Routes(RoutesReport),
    /// To [`Request::Neighbours`].
    Neighbours(NeighboursReport),
    /// To [`Request::Associations`].
    Associations(AssociationsReport),
    /// To [`Request::Explain`].
    Explain(ExplainReport),
    /// To [`Request::Trace`].
    Trace(TraceReport),
    /// To [`Request::Ping`].
    Ping(PingReport),
    /// To [`Request::Registry`].
    Registry(RegistryReport),
    /// Done, with what was done in words.
    Done {
        /// One line.
        text: String,
    },
    /// The daemon cannot or will not.
    Refused(Refusal),
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Exit code that the command should end with (1, 2, 78 …).
    pub exit_code: u8,
    /// What is wrong.
    pub text: String,
    /// What to do, if anything.
    pub help: Option<String>,
}
