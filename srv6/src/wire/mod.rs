//! The segment routing header as it stands on the wire.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

pub mod segment_routing_header;
pub mod tlv;

pub use segment_routing_header::{SegmentRoutingHeader, SrhView};
