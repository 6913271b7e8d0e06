//! What a node tells its driver, for the log.

use crate::forwarding::LinkId;

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
    /// A neighbour told where it sees a peer that cannot be dialled otherwise; it is tried there.
    Introduced {
        /// The peer.
        peer: String,
        /// The neighbour.
        by: String,
        /// The address.
        remote: String,
    },
    /// A Babel neighbour can be reached both ways, or no longer.
    Neighbour {
        /// The node.
        peer: String,
        /// Reachable both ways.
        up: bool,
    },
    /// The path of a link carries longer or shorter packets than was known.
    PathMtu {
        /// The node at the other end.
        peer: String,
        /// The longest packet in the tunnel, in octets.
        mtu: u16,
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
    /// A policy's packets take other stops than before.
    PolicyPath {
        /// The policy.
        name: String,
        /// The ways that carry now, each as `bravo > delta`.
        paths: Vec<String>,
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
            Self::LinkUp { .. }
            | Self::LinkDown { .. }
            | Self::Policy { .. }
            | Self::PolicyPath { .. }
            | Self::PeerMoved { .. }
            | Self::PathMtu { .. } => Level::Info,
            Self::Trouble { .. } => Level::Warn,
            Self::DialFailed { tries, .. } if *tries == 1 => Level::Info,
            Self::Rekeyed { .. }
            | Self::DialFailed { .. }
            | Self::Rejected { .. }
            | Self::Introduced { .. }
            | Self::Neighbour { .. }
            | Self::RouteChanged { .. }
            | Self::KeyLog { .. }
            | Self::Seqno(_) => Level::Debug,
        }
    }
}
