//! The packets that travel inside.

use srv6::ip::{Ipv4View, checksum, protocol};
use std::net::IpAddr;

/// One packet of either family, from a network behind us to one behind the kernel.
pub(crate) struct Traveller {
    /// Its destination: the kernel has a route to it over our wire.
    pub(crate) destination: &'static str,
    source: &'static str,
}

/// An IPv4 packet.
pub(crate) const V4: Traveller = Traveller { source: "10.8.0.5", destination: "10.9.0.2" };
/// An IPv6 packet.
pub(crate) const V6: Traveller = Traveller { source: "2001:db8:8::5", destination: "2001:db8:9::2" };

const PAYLOAD: &[u8] = b"\x30\x39\x00\x35\x00\x18\x00\x00sixteen bytes ..";

impl Traveller {
    /// Whether it is an IPv4 packet.
    pub(crate) fn is_v4(&self) -> bool {
        self.destination.parse::<IpAddr>().unwrap().is_ipv4()
    }

    /// The packet: a UDP datagram with 16 bytes.
    pub(crate) fn packet(&self) -> Vec<u8> {
        match (self.source.parse().unwrap(), self.destination.parse().unwrap()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut packet = vec![0x45, 0xb8, 0, 0, 0x12, 0x34, 0, 0, 64, protocol::UDP, 0, 0];
                packet.extend(source.octets());
                packet.extend(destination.octets());
                packet.extend(PAYLOAD);
                let length = u16::try_from(packet.len()).unwrap();
                packet[2..4].copy_from_slice(&length.to_be_bytes());
                let sum = checksum::of(&packet[..20]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
                packet
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let length = u16::try_from(PAYLOAD.len()).unwrap();
                let mut packet = vec![0x6b, 0x80, 0, 0];
                packet.extend(length.to_be_bytes());
                packet.extend([protocol::UDP, 64]);
                packet.extend(source.octets());
                packet.extend(destination.octets());
                packet.extend(PAYLOAD);
                let at = 46;
                let sum =
                    checksum::transport(source.into(), destination.into(), protocol::UDP, &packet[40..]);
                packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
                packet
            }
            _ => unreachable!("both are of one family"),
        }
    }

    /// Fails unless `arrived` is this packet, a few hops older.
    pub(crate) fn assert_same(&self, arrived: &[u8], what: &str) {
        let mut sent = self.packet();
        let mut arrived = arrived.to_vec();
        let hops = if self.is_v4() { 8 } else { 7 };
        assert!(arrived[hops] <= sent[hops] && arrived[hops] >= sent[hops] - 2, "{what}: {arrived:02x?}");
        if self.is_v4() {
            assert_eq!(checksum::of(&arrived[..20]), 0, "{what}: the checksum is wrong: {arrived:02x?}");
            assert!(Ipv4View::parse(&arrived).is_ok());
            sent[10..12].fill(0);
            arrived[10..12].fill(0);
        }
        (sent[hops], arrived[hops]) = (0, 0);
        assert_eq!(arrived, sent, "{what}");
    }
}
