//! What a node tells its driver, for the log.

use crate::forwarding::LinkId;
use std::fmt;

/// How loud an event is. See the meanings in `telemetry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A departure from the happy path.
    Debug,
    /// A state that the user cares about changed.
    Info,
    /// Somebody would want to know.
    Warn,
}

/// Something that happened in a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEvent {
    /// A link has its first security association.
    LinkUp {
        /// The link.
        link: LinkId,
        /// The node at its other end.
        peer: String,
        /// Where that node is.
        remote: String,
        /// The negotiated key exchange.
        key_exchange: &'static str,
    },
    /// A link lost its last security association.
    LinkDown {
        /// The link.
        link: LinkId,
        /// The node at its other end.
        peer: String,
        /// Why.
        reason: &'static str,
    },
    /// A security association was replaced.
    Rekeyed {
        /// The node at the other end.
        peer: String,
        /// `ike` or `child`.
        kind: &'static str,
    },
    /// A dial failed.
    DialFailed {
        /// The node that was dialled.
        peer: String,
        /// What went wrong.
        what: String,
        /// Attempts since the last success.
        tries: u32,
    },
    /// A stranger's message was refused.
    Rejected {
        /// Where it came from.
        remote: String,
        /// Why.
        reason: String,
    },
    /// The peer sends from another address now.
    PeerMoved {
        /// The peer.
        peer: String,
        /// Its address now.
        remote: String,
    },
    /// A Babel neighbour can be reached both ways, or no longer.
    Neighbour {
        /// The node.
        peer: String,
        /// Reachable both ways.
        up: bool,
    },
    /// The best way to a prefix changed.
    RouteChanged {
        /// The prefix.
        prefix: String,
        /// The neighbour, if there is a way.
        via: Option<String>,
        /// The metric, if there is a way.
        metric: Option<u16>,
    },
    /// A policy's path became usable, or unusable with the stop that fails.
    Policy {
        /// The policy.
        name: String,
        /// What is the matter; `None` if it is up.
        problem: Option<String>,
    },
    /// Something that the operator should look at.
    Trouble {
        /// One sentence.
        text: String,
    },
    /// A line for a packet analyser (only if asked for).
    KeyLog {
        /// The analyser's table.
        table: ikev2::KeyLogTable,
        /// The line.
        line: String,
    },
    /// Babel's sequence number changed: keep it over a restart.
    Seqno(u16),
}

impl NodeEvent {
    /// How loud the event is in the log.
    pub fn level(&self) -> Level {
        match self {
            Self::LinkUp { .. } | Self::LinkDown { .. } | Self::Policy { .. } | Self::PeerMoved { .. } => Level::Info,
            Self::Trouble { .. } => Level::Warn,
            Self::DialFailed { tries, .. } if *tries == 1 => Level::Info,
            Self::Rekeyed { .. }
            | Self::DialFailed { .. }
            | Self::Rejected { .. }
            | Self::Neighbour { .. }
            | Self::RouteChanged { .. }
            | Self::KeyLog { .. }
            | Self::Seqno(_) => Level::Debug,
        }
    }
}

impl fmt::Display for NodeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkUp { peer, remote, key_exchange, .. } => write!(f, "{peer} is up at {remote} ({key_exchange})"),
            Self::LinkDown { peer, reason, .. } => write!(f, "{peer} is down: {reason}"),
            Self::Rekeyed { peer, kind } => write!(f, "{kind} SA with {peer} rekeyed"),
            Self::DialFailed { peer, what, tries } => write!(f, "cannot reach {peer}: {what} (attempt {tries})"),
            Self::Rejected { remote, reason } => write!(f, "refused a message from {remote}: {reason}"),
            Self::PeerMoved { peer, remote } => write!(f, "{peer} moved to {remote}"),
            Self::Neighbour { peer, up: true } => write!(f, "{peer} is a Babel neighbour"),
            Self::Neighbour { peer, up: false } => write!(f, "{peer} is no longer a Babel neighbour"),
            Self::RouteChanged { prefix, via: Some(via), metric } => {
                write!(f, "{prefix} via {via}, metric {}", metric.unwrap_or(u16::MAX))
            }
            Self::RouteChanged { prefix, via: None, .. } => write!(f, "{prefix} is unreachable"),
            Self::Policy { name, problem: None } => write!(f, "policy {name} is up"),
            Self::Policy { name, problem: Some(problem) } => write!(f, "policy {name} is down: {problem}"),
            Self::Trouble { text } => f.write_str(text),
            Self::KeyLog { .. } => f.write_str("key material written to the key log"),
            Self::Seqno(seqno) => write!(f, "sequence number {seqno}"),
        }
    }
}
