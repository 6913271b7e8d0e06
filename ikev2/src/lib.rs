//! IKEv2 as a deterministic state machine: datagrams, time and randomness go in; datagrams, events and
//! the next deadline come out.
//!
//! The crate opens no socket, reads no clock, spawns nothing and stores no key at rest. It negotiates
//! keys; it never touches an ESP packet. One [`Endpoint`] serves all sockets of a node.
//!
//! Supported standards: RFC 7296 (IKEv2), 7427 (digital signatures), 8420 (Ed25519), 7670 (raw public
//! keys), 7383 (fragmentation), 6023 (childless initiation), 9242 (IKE_INTERMEDIATE), 9370 (multiple key
//! exchanges), 5282 (AEAD for IKE), 8031 (X25519).
//!
//! # Driving an endpoint
//!
//! After every call of a `handle_…` method (or any other that takes `now`): drain [`Endpoint::poll_event`],
//! then [`Endpoint::poll_transmit`], then arm a timer for [`Endpoint::poll_timeout`] and call
//! [`Endpoint::handle_timeout`] when it fires. Every method that depends on time takes `now` last.
#![forbid(unsafe_code)]

mod admission;
pub mod authentication;
mod cbc_hmac;
mod certificate;
mod child_sa;
mod collision;
mod config;
mod connection;
mod cookie;
mod deadlines;
mod duplicates;
mod endpoint;
mod error;
mod event;
mod exchange;
pub mod fragmentation;
mod identity;
mod ike_sa;
mod ike_sa_timers;
mod inbound;
pub mod key_exchange;
pub mod key_schedule;
mod lost_state;
mod nat_detection;
mod pending_key_exchange;
pub mod proposal;
mod request_window;
mod retransmission;
pub mod sealed_payload;
mod secret;
mod shared;
mod signature;
mod signer;
pub mod traffic_selectors;
mod trust;
mod verifying_key;
pub mod wire;

pub use authentication::{
    EcdsaSigner, Ed25519Signer, KeyKind, SignatureHash, Signer, SignerUnavailable, VerifyingKey,
    signer_from_pkcs8_der,
};
pub use certificate::{Authority, OwnCertificate, WallClock};
pub use config::{Config, ConnectionConfig, ConnectionId, Limits, Path, SpiPlacement, Timers};
pub use endpoint::Endpoint;
pub use error::{Malformed, Misuse, Unsupported, Violation};
pub use event::{
    ChildDownReason, ChildReport, ChildSa, DialFailure, EspAlgorithm, Event, IkeDownReason, IkeSaReport,
    IkeSpis, KeyLogTable, Rejection,
};
pub use identity::Identity;
pub use pending_key_exchange::{FinishedKeyExchange, PendingKeyExchange};
pub use secret::SecretBytes;
