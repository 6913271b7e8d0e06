//! `viamesh associations`: IKE and ESP.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Text;
use crate::control::quantity::{ago, ahead, bytes, count, or_dash, whole_span};

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
        if self.associations.is_empty() {
            return "no associations\n".to_owned();
        }
        self.associations.iter().map(IkeAssociation::text).collect::<Vec<_>>().join("\n")
    }
}

impl IkeAssociation {
    fn text(&self) -> String {
        let dialled = if self.initiator { "we dialled" } else { "they dialled" };
        let local = or_dash(self.local.map(|local| local.to_string()));
        let vendor = self.vendor.as_deref().unwrap_or("unknown implementation");
        let mut lines = vec![
            format!(
                "{}   link {}   {} for {}",
                self.node,
                self.link,
                self.state,
                whole_span(self.age_seconds)
            ),
            format!("  path  {local} - {}, {dialled}, {vendor}", self.remote),
            format!(
                "  ike   {}:{}   {}, {}, {}{}",
                self.initiator_spi,
                self.responder_spi,
                self.encryption,
                self.prf,
                self.key_exchange,
                rekey(self.rekey_in_seconds)
            ),
        ];
        lines.extend(self.children.iter().flat_map(ChildAssociation::lines));
        lines.join("\n") + "\n"
    }
}

impl ChildAssociation {
    fn lines(&self) -> [String; 2] {
        let sequence = if self.extended_sequence { ", 64-bit sequence numbers" } else { "" };
        let idle = self.idle_seconds.map_or_else(|| "nothing yet".to_owned(), ago);
        [
            format!(
                "  esp   in {} out {}   {}{sequence}, {} for {}{}",
                self.inbound_spi,
                self.outbound_spi,
                self.algorithm,
                self.state,
                whole_span(self.age_seconds),
                rekey(self.rekey_in_seconds)
            ),
            format!(
                "        received {} in {} packets ({} replayed, {} forged; last: {idle}), sent {} in {} packets",
                bytes(self.received_bytes),
                count(self.received_packets),
                count(self.replayed_packets),
                count(self.integrity_failures),
                bytes(self.sent_bytes),
                count(self.sent_packets)
            ),
        ]
    }
}

fn rekey(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(", rekey {}", ahead(seconds))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;

    #[test]
    fn an_association_shows_path_keys_and_traffic() {
        let child = ChildAssociation {
            state: "sending".to_owned(),
            inbound_spi: "c0ffee01".to_owned(),
            outbound_spi: "deadbeef".to_owned(),
            algorithm: "aes-256-gcm-16".to_owned(),
            extended_sequence: true,
            local_selectors: vec!["0.0.0.0/0".to_owned()],
            remote_selectors: vec!["0.0.0.0/0".to_owned()],
            age_seconds: 180,
            rekey_in_seconds: Some(3240),
            received_packets: 1_203_331,
            received_bytes: 1_288_490_189,
            sent_packets: 40_000,
            sent_bytes: 325_058_560,
            replayed_packets: 2,
            integrity_failures: 0,
            idle_seconds: Some(0.3),
        };
        let report = AssociationsReport {
            format: FORMAT,
            associations: vec![IkeAssociation {
                node: "bravo".to_owned(),
                link: "0 > bravo/0".to_owned(),
                state: "established".to_owned(),
                initiator: true,
                local: Some("198.51.100.1:13000".parse().unwrap()),
                remote: "198.51.100.2:13000".parse().unwrap(),
                initiator_spi: "a1b2c3d4e5f60718".to_owned(),
                responder_spi: "0123456789abcdef".to_owned(),
                encryption: "aes-256-gcm-16".to_owned(),
                prf: "hmac-sha2-256".to_owned(),
                key_exchange: "x25519 + ml-kem-768".to_owned(),
                vendor: Some("viamesh 0.1.0".to_owned()),
                age_seconds: 7200,
                rekey_in_seconds: Some(7200),
                children: vec![child],
            }],
        };
        insta::assert_snapshot!(report.text(), @"
        bravo   link 0 > bravo/0   established for 2 h
          path  198.51.100.1:13000 - 198.51.100.2:13000, we dialled, viamesh 0.1.0
          ike   a1b2c3d4e5f60718:0123456789abcdef   aes-256-gcm-16, hmac-sha2-256, x25519 + ml-kem-768, rekey in 2 h
          esp   in c0ffee01 out deadbeef   aes-256-gcm-16, 64-bit sequence numbers, sending for 3 min, rekey in 54 min
                received 1.2 GiB in 1,203,331 packets (2 replayed, 0 forged; last: 0.3 s ago), sent 310 MiB in 40,000 packets
        ");
    }
}
