//! IPv4 and IPv6 headers and what hangs on them.
//!
//! A view (`Ipv4View`, `Ipv6View`) can only come from its `parse`, which checks every length once; after that
//! its accessors can't fail.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

pub mod checksum;
pub mod echo;
pub mod ecn;
pub mod flow;
pub mod fragmentation;
pub mod icmp_error;
pub mod icmp_quote;
pub mod ipv4;
pub mod ipv6;
pub mod mss;
pub mod options;
pub mod protocol;
pub mod udp;

mod hop_limit;
mod icmpv4;
mod icmpv6;

pub use flow::FlowKey;
pub use hop_limit::{HopLimit, decrement_hop_limit, hop_limit};
pub use ipv4::Ipv4View;
pub use ipv6::{Ipv6View, UpperLayer};
