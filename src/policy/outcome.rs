//! What a rule says to a packet.

use super::Membership;
use ipnet::IpNet;
use std::fmt;
use std::ops::RangeInclusive;

/// What a rule said to a packet, for people: that it takes it, or the first of its parts that does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOutcome {
    /// It takes the packet: the first that matches.
    FirstMatch,
    /// The source is in none of these networks.
    Source(Vec<IpNet>),
    /// The destination is in none of these networks.
    Destination(Vec<IpNet>),
    /// Another protocol.
    Protocol(u8),
    /// A source port outside the ranges, or no port at all.
    SourcePort(Vec<RangeInclusive<u16>>),
    /// A destination port outside the ranges, or no port at all.
    DestinationPort(Vec<RangeInclusive<u16>>),
    /// Another DSCP.
    Dscp(Vec<u8>),
    /// Came in by another interface, or with another mark.
    Class(Membership),
}

impl RuleOutcome {
    /// Whether the rule takes the packet.
    #[must_use]
    pub fn is_match(&self) -> bool {
        *self == Self::FirstMatch
    }
}

impl fmt::Display for RuleOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstMatch => f.write_str("first match"),
            Self::Source(networks) => write!(f, "source is not in {}", list(networks)),
            Self::Destination(networks) => write!(f, "destination is not in {}", list(networks)),
            Self::Protocol(number) => write!(f, "protocol is not {number}"),
            Self::SourcePort(ranges) => write!(f, "source port is not in {}", list_ranges(ranges)),
            Self::DestinationPort(ranges) => write!(f, "port is not in {}", list_ranges(ranges)),
            Self::Dscp(values) => write!(f, "DSCP is not {}", list(values)),
            Self::Class(membership) => write!(f, "did not come in {membership}"),
        }
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn list_ranges(ranges: &[RangeInclusive<u16>]) -> String {
    let texts = ranges.iter().map(|range| match (range.start(), range.end()) {
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start}-{end}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}
