//! What goes over the control socket: one JSON object per line, requests up, replies down.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::report::{
    AssociationsReport, ChangeReport, CountersReport, ExplainReport, FORMAT, FlowDescription,
    NeighboursReport, PingReport, RegistryReport, RoutesReport, StatusReport, Text, TraceReport,
};

/// Version of the protocol. A daemon refuses other versions in words.
pub const VERSION: u32 = 1;

/// Longest request in bytes, its line end included.
pub const MAX_REQUEST: usize = 1024 * 1024;

/// A request's line as it is sent.
#[derive(Debug, Serialize)]
pub(super) struct MessageLine<'a> {
    pub(super) version: u32,
    pub(super) request: &'a Request,
}

/// A request's line as it is received: the version is judged before the request.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope {
    pub(super) version: u32,
    pub(super) request: serde_json::Value,
}

/// A reply's line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReplyLine {
    pub(super) version: u32,
    pub(super) reply: Reply,
    /// Whether other lines follow.
    pub(super) more: bool,
}

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
    /// What happened since the start, in numbers.
    Counters,
    /// Read the configuration again and apply it.
    Reload,
    /// Say what a reload would do, or what another node file would.
    Plan {
        /// The other node file; `None`: the one that the daemon runs on.
        file: Option<NodeText>,
    },
    /// Run on another node file.
    Apply {
        /// It.
        file: NodeText,
        /// Seconds after which it is undone unless confirmed; `None`: it stays.
        confirm_seconds: Option<u32>,
    },
    /// Keep what [`Request::Apply`] brought.
    Confirm,
    /// Go back to the node file before.
    Undo,
    /// Change the log level, for a while.
    Log {
        /// Components with levels, such as `ike=debug,babel=trace`; `None` asks for what is in force.
        filter: Option<String>,
        /// Seconds after which the level returns; at most a day.
        seconds: Option<u32>,
    },
}

impl Request {
    /// Whether it is about changing the configuration.
    pub fn is_change(&self) -> bool {
        matches!(self, Self::Reload | Self::Plan { .. } | Self::Apply { .. } | Self::Confirm | Self::Undo)
    }

    /// How long the daemon may be silent before a command gives up.
    pub fn patience(&self) -> Duration {
        const USUAL: Duration = Duration::from_secs(10);
        match self {
            Self::Trace { count, timeout_ms, .. } => {
                USUAL + Duration::from_millis(u64::from(*timeout_ms)).saturating_mul(*count)
            }
            Self::Ping { interval_ms, timeout_ms, .. } => {
                USUAL + Duration::from_millis(u64::from(*interval_ms) + u64::from(*timeout_ms))
            }
            // A reload reads the registry, perhaps over the network.
            Self::Reload | Self::Plan { .. } | Self::Apply { .. } | Self::Confirm | Self::Undo => {
                Duration::from_secs(60)
            }
            Self::Status { .. }
            | Self::Routes { .. }
            | Self::Neighbours
            | Self::Associations { .. }
            | Self::Explain { .. }
            | Self::Registry
            | Self::Counters
            | Self::Log { .. } => USUAL,
        }
    }
}

/// A node file on its way to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeText {
    /// What messages call it.
    pub name: String,
    /// Its content. Relative paths in it start where the node file is that the daemon runs on.
    pub text: String,
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
    /// To everything that changes the configuration.
    Change(ChangeReport),
    /// To [`Request::Counters`].
    Counters(CountersReport),
    /// Done, with what was done in words.
    Done {
        /// One line.
        text: String,
    },
    /// The daemon cannot or will not.
    Refused(Refusal),
}

impl Reply {
    /// The reply for people.
    pub fn text(&self) -> String {
        match self {
            Self::Status(report) => report.text(),
            Self::Routes(report) => report.text(),
            Self::Neighbours(report) => report.text(),
            Self::Associations(report) => report.text(),
            Self::Explain(report) => report.text(),
            Self::Trace(report) => report.text(),
            Self::Ping(report) => report.text(),
            Self::Registry(report) => report.text(),
            Self::Change(report) => report.text(),
            Self::Counters(report) => report.text(),
            Self::Done { text } | Self::Refused(Refusal { text, .. }) => format!("{text}\n"),
        }
    }

    /// The reply as one JSON document, as `--json` prints it.
    ///
    /// # Errors
    /// Never for the reports of this crate: all their keys are strings.
    pub fn json(&self) -> serde_json::Result<String> {
        match self {
            Self::Status(report) => serde_json::to_string_pretty(report),
            Self::Routes(report) => serde_json::to_string_pretty(report),
            Self::Neighbours(report) => serde_json::to_string_pretty(report),
            Self::Associations(report) => serde_json::to_string_pretty(report),
            Self::Explain(report) => serde_json::to_string_pretty(report),
            Self::Trace(report) => serde_json::to_string_pretty(report),
            Self::Ping(report) => serde_json::to_string_pretty(report),
            Self::Registry(report) => serde_json::to_string_pretty(report),
            Self::Change(report) => serde_json::to_string_pretty(report),
            Self::Done { text } => {
                serde_json::to_string_pretty(&serde_json::json!({ "format": FORMAT, "done": text }))
            }
            Self::Refused(_) => serde_json::to_string_pretty(self),
            Self::Counters(report) => serde_json::to_string_pretty(report),
        }
    }
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
    /// All that is wrong, where that is more than one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

impl Refusal {
    /// A refusal in one sentence.
    pub fn new(exit_code: u8, text: impl Into<String>) -> Self {
        Self { exit_code, text: text.into(), help: None, details: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
