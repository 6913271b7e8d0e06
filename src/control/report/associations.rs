//! `viamesh associations`: IKE and ESP.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Text;

/// The answer to `associations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssociationsReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// All IKE SAs, by node.
    pub associations: Vec<IkeAssociation>,
}

/// One IKE SA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IkeAssociation {
    /// The peer.
    pub node: String,
    /// Link in words: `0 > bravo/0`.
    pub link: String,
    /// `established`, `connecting`, `rekeying`, `deleting`.
    pub state: String,
    /// Whether we began it.
    pub initiator: bool,
    /// Our address and port, where known.
    pub local: Option<SocketAddr>,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// Initiator's SPI, 16 hexadecimal digits.
    pub initiator_spi: String,
    /// Responder's SPI.
    pub responder_spi: String,
    /// Cipher of the IKE messages: `aes-256-gcm-16`.
    pub encryption: String,
    /// Pseudo-random function: `hmac-sha2-256`.
    pub prf: String,
    /// Key exchange, additional ones joined by ` + `: `x25519 + ml-kem-768`.
    pub key_exchange: String,
    /// Implementation, as its Vendor ID tells.
    pub vendor: Option<String>,
    /// Seconds since it was established.
    pub age_seconds: u64,
    /// Seconds until we rekey it.
    pub rekey_in_seconds: Option<u64>,
    /// Its ESP SAs.
    pub children: Vec<ChildAssociation>,
}

/// One pair of ESP SAs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildAssociation {
    /// `installed`, `rekeyed` (kept for stragglers), `sending` (the one that we send on).
    pub state: String,
    /// Our inbound SPI, 8 hexadecimal digits.
    pub inbound_spi: String,
    /// Our outbound SPI.
    pub outbound_spi: String,
    /// Cipher.
    pub algorithm: String,
    /// Whether extended sequence numbers are in use.
    pub extended_sequence: bool,
    /// Our traffic selectors.
    pub local_selectors: Vec<String>,
    /// The peer's traffic selectors.
    pub remote_selectors: Vec<String>,
    /// Seconds since it was installed.
    pub age_seconds: u64,
    /// Seconds until we rekey it.
    pub rekey_in_seconds: Option<u64>,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped as replays.
    pub replayed_packets: u64,
    /// Packets dropped because their integrity check failed.
    pub integrity_failures: u64,
    /// Seconds since the last authenticated packet.
    pub idle_seconds: Option<f64>,
}

impl Text for AssociationsReport {
    fn text(&self) -> String {
        String::new()
    }
}
