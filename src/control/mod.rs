//! The control socket: requests from the commands, answers from the daemon.

pub mod protocol;
pub mod report;

pub use protocol::{Reply, Request};
