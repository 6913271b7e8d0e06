//! What a policy matches.

use super::{Class, Membership};
use ipnet::IpNet;
use std::ops::RangeInclusive;

/// A policy: its place in the node file, from 0, and its index in `Forwarding::policies`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyIndex(pub u16);

impl PolicyIndex {
    /// The index of the rule at this place, as long as indices reach.
    pub(super) fn at(place: usize) -> Option<Self> {
        u16::try_from(place).ok().map(Self)
    }

    /// The place as a number.
    pub(super) fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// What a policy matches. All parts must match; an empty list matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// The policy's name.
    pub name: String,
    /// Source networks.
    pub from: Vec<IpNet>,
    /// Destination networks.
    pub to: Vec<IpNet>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// Source ports. Packets without ports don't match, but for fragments, which hide theirs.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// Destination ports, likewise.
    pub destination_ports: Vec<RangeInclusive<u16>>,
    /// DSCP values.
    pub dscp: Vec<u8>,
    /// By which interface and with which mark packets must have come.
    pub membership: Membership,
    /// The classes of these packets. Not looked at where the membership is everything.
    pub classes: Vec<Class>,
}
