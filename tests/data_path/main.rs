//! The data path from TUN to TUN, over real security associations, in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation, reason = "test code")]

mod hostile;
mod journey;
mod offload;
mod packets;
mod relay;
mod rig;
mod traffic;
mod trouble;
