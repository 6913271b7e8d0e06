//! Babel daemons of others: what they are told, and what they tell.
//!
//! The recipes use our own default cost map, so that metrics can be compared to the unit: rxcost 8, round-trip time 0 at
//! 1 ms and 4,000 at 1,001 ms.

use std::net::Ipv6Addr;
use std::time::Duration;

use ipnet::IpNet;

/// The cost of a link without length.
pub(super) const RXCOST: u16 = 8;

/// What a daemon is told.
#[derive(Debug, Clone, Default)]
pub struct BabelSetup {
    /// Its point-to-point interfaces.
    pub interfaces: Vec<String>,
    /// The key of all packets.
    pub mac: Option<BabelMac>,
    /// Prefixes to announce beside the addresses of `lo`.
    pub announce: Vec<IpNet>,
}

/// A key of RFC 8967.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BabelMac {
    /// HMAC-SHA256.
    HmacSha256([u8; 32]),
    /// BLAKE2s with 128 bits.
    Blake2s([u8; 32]),
}

/// A route in a daemon's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BabelRoute {
    /// Where it leads.
    pub prefix: IpNet,
    /// The neighbour's address.
    pub next_hop: Ipv6Addr,
    /// The interface towards it.
    pub interface: String,
    /// The total metric.
    pub metric: u32,
}

/// A neighbour of a daemon.
#[derive(Debug, Clone, PartialEq)]
pub struct BabelNeighbour {
    /// Its link-local address.
    pub address: Ipv6Addr,
    /// The interface towards it.
    pub interface: String,
    /// What its routes cost in addition.
    pub cost: u32,
    /// The smoothed round trip.
    pub rtt: Option<Duration>,
}

impl BabelMac {
    /// The 32 octets of the key.
    pub const fn key(&self) -> &[u8; 32] {
        match self {
            Self::HmacSha256(key) | Self::Blake2s(key) => key,
        }
    }

    /// The key in hexadecimal digits.
    pub(super) fn hex(&self, separator: &str) -> String {
        let digits: Vec<String> = self.key().iter().map(|octet| format!("{octet:02x}")).collect();
        digits.join(separator)
    }
}

/// Milliseconds with a fraction, as both daemons print them.
pub(super) fn milliseconds(text: &str) -> Option<Duration> {
    let milliseconds: f64 = text.parse().ok()?;
    (milliseconds >= 0.0).then(|| Duration::from_secs_f64(milliseconds / 1000.0))
}
