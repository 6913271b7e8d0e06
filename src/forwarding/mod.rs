//! The data path: pure functions over packets and one immutable [`Forwarding`] snapshot.
//!
//! Nothing here opens a socket, reads a clock or takes a lock that another packet could hold.
//! `src/node` builds the snapshot, `src/runtime` moves the bytes.

mod address;
mod coalesce;
pub mod counters;
pub mod decision;
pub mod drop_reason;
pub mod egress;
mod fragment;
mod icmp;
mod inbound;
mod inner;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "lengths of packets that the tests build")]
mod offload_tests;
mod outbound;
mod outbox;
mod packet;
pub mod pipeline;
mod policy_path;
pub mod prefix_table;
mod relay_run;
pub mod ring;
pub mod snapshot;
pub mod spi_table;
mod sum;
mod super_packet;
pub mod virtio;

pub use coalesce::Offload;
pub use counters::{LinkCounters, PolicyCounters, WorkerCounters};
pub use decision::{Decision, Origin, decide, route};
pub use drop_reason::DropReason;
pub use egress::{Egress, Sent, TrainRoute, Transmit};
pub use inbound::Received;
pub use pipeline::{Pipeline, Turn};
pub use policy_path::{CandidatePath, IfUnreachable, PolicyPath, Share, Steered};
pub use prefix_table::PrefixTable;
pub use ring::{Down, Heard, Punt, Rings, Stranger};
pub use snapshot::{Forwarding, LinkId, LinkPath, Local, LocalAddresses, NextHop, SidSpace, SocketIndex};
pub use spi_table::{InboundEntry, SpiTable};
