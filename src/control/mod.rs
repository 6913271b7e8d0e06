//! The control socket: requests from the commands, answers from the daemon, and their text for people.

pub mod client;
pub mod protocol;
pub mod quantity;
pub mod report;
pub mod server;
mod table;
#[cfg(test)]
mod tests;

pub use client::{Client, ClientError};
pub use protocol::{Reply, Request};
pub use server::{Incoming, Responder, Server};
