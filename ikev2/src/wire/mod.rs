//! The wire format: one payload per file (RFC 7296 §3).
//!
//! Decoding never panics, never allocates more than a small multiple of the input, and bounds every
//! count. What `decode` accepts, `encode` reproduces (reserved octets aside, except those of ID payloads,
//! which AUTH covers).
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

mod configuration;
mod delete;
mod encrypted;
mod header;
mod identification;
mod message;
mod notify;
mod payload;
mod reader;
pub(crate) mod registry;
mod sa;
mod traffic_selector;
mod writer;

pub use configuration::{Configuration, ConfigurationAttribute};
pub use delete::Delete;
pub use encrypted::{Encrypted, EncryptedFragment};
pub use header::{HEADER_LEN, Header};
pub use identification::Identification;
pub use message::Message;
pub use notify::Notify;
pub use payload::{Payload, decode_chain, encode_chain};
pub use registry::ExchangeType;
pub use sa::{Attribute, Proposal, Transform};
pub use traffic_selector::TrafficSelector;
