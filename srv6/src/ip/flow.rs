//! The flow key: what policies match and flow labels are made of.

use std::net::IpAddr;

use super::protocol;
use super::{Ipv4View, Ipv6View};
use crate::error::Malformed;

/// The fields of a packet that policies match and that tell flows apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The protocol behind all IPv6 extension headers; in a non-first fragment the one that the fragment header
    /// names.
    pub protocol: u8,
    /// Source and destination port, where the protocol has ports and this packet shows them. Never set in a
    /// fragment, not even in the first: all fragments of a datagram must have one key, or they would part ways.
    pub ports: Option<(u16, u16)>,
    /// Differentiated services code point, 0–63.
    pub dscp: u8,
    /// Whether the packet is a fragment of a larger datagram, the first one included.
    pub fragment: bool,
}

impl FlowKey {
    /// Reads the key from a whole IPv4 or IPv6 packet.
    ///
    /// Unknown protocols and transports too short for their ports are no errors: they have no ports.
    ///
    /// # Errors
    /// [`Malformed`] when the IP header or the chain of extension headers does not fit the packet.
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        match packet.first().map(|octet| octet >> 4) {
            Some(4) => Ok(Self::of_ipv4(&Ipv4View::parse(packet)?)),
            Some(6) => Self::of_ipv6(&Ipv6View::parse(packet)?),
            Some(_) => Err(Malformed::Version),
            None => Err(Malformed::Truncated),
        }
    }

    /// Reads the key of an IPv4 packet.
    #[must_use]
    pub fn of_ipv4(packet: &Ipv4View<'_>) -> Self {
        let fragment = packet.is_fragment();
        Self {
            source: packet.source().into(),
            destination: packet.destination().into(),
            protocol: packet.protocol(),
            ports: ports(packet.protocol(), packet.payload(), fragment),
            dscp: packet.traffic_class() >> 2,
            fragment,
        }
    }

    /// Reads the key of an IPv6 packet.
    ///
    /// # Errors
    /// [`Malformed`] when the chain of extension headers does not fit the packet.
    pub fn of_ipv6(packet: &Ipv6View<'_>) -> Result<Self, Malformed> {
        let upper = packet.upper_layer()?;
        let fragment = upper.fragment.is_some();
        Ok(Self {
            source: packet.source().into(),
            destination: packet.destination().into(),
            protocol: upper.protocol,
            ports: ports(upper.protocol, upper.bytes, fragment),
            dscp: packet.traffic_class() >> 2,
            fragment,
        })
    }

    /// A hash of the five-tuple, the same in both builds and on all machines: FNV-1a with a final mix.
    ///
    /// It spreads flows over paths and is no protection against somebody who chooses his ports.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut hash = Fnv::new();
        hash.address(self.source);
        hash.address(self.destination);
        let (source, destination) = self.ports.unwrap_or_default();
        hash.word(u64::from(self.protocol) << 32 | u64::from(source) << 16 | u64::from(destination));
        hash.finish()
    }

    /// The 20-bit flow label for the outer header, never zero.
    ///
    //= RFC 6437 §3, RFC 6438 §4
    /// It is derived from the inner five-tuple, so that routers spread tunnelled flows and keep each in order.
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        let hash = self.hash();
        let folded = u32::try_from((hash ^ (hash >> 20) ^ (hash >> 40)) & 0xf_ffff).unwrap_or(1);
        folded.max(1)
    }
}

fn ports(protocol: u8, transport: &[u8], fragment: bool) -> Option<(u16, u16)> {
    if fragment || !protocol::has_ports(protocol) {
        return None;
    }
    let [a, b, c, d] = *transport.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// FNV-1a over 64-bit words, with the finalizer of MurmurHash3 so that the low bits depend on all of them.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    const fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 32;
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.word(u64::from(address.to_bits())),
            IpAddr::V6(address) => {
                let [high, low] = halves(address.to_bits());
                self.word(high);
                self.word(low);
            }
        }
    }

    const fn finish(&self) -> u64 {
        let mut hash = self.0;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of 128 bits are 64 bits each")]
const fn halves(bits: u128) -> [u64; 2] {
    [(bits >> 64) as u64, bits as u64]
}
