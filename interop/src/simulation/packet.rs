//! Packets of applications: UDP over IPv4 or IPv6 that say which one they are.

use super::PacketId;
use srv6::ip::udp::{IPV6_HEADERS_LEN, UdpOverIpv6};
use srv6::ip::{checksum, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first octets of each payload: what must never be seen on the underlay.
pub(super) const PLAIN_TEXT: &[u8; 16] = b"plain text of an";

const IPV4_HEADERS_LEN: usize = 28;
const HOP_LIMIT: u8 = 64;
/// Marker and number.
const LEAST_PAYLOAD: usize = PLAIN_TEXT.len() + 8;

/// A packet that an application is going to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// From.
    pub source: IpAddr,
    /// To, of the same family.
    pub destination: IpAddr,
    /// UDP source port.
    pub source_port: u16,
    /// UDP destination port.
    pub destination_port: u16,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Octets of UDP payload.
    pub payload: usize,
}

impl Packet {
    /// A small packet.
    pub fn new(source: impl Into<IpAddr>, destination: impl Into<IpAddr>) -> Self {
        Self {
            source: source.into(),
            destination: destination.into(),
            source_port: 40_000,
            destination_port: 9,
            traffic_class: 0,
            payload: 64,
        }
    }

    /// To another UDP port.
    #[must_use]
    pub fn to_port(mut self, port: u16) -> Self {
        self.destination_port = port;
        self
    }

    /// With so many octets of payload; 24 at least.
    #[must_use]
    pub fn with_payload(mut self, octets: usize) -> Self {
        self.payload = octets;
        self
    }

    /// The whole IP packet.
    pub(super) fn octets(&self, id: PacketId) -> Vec<u8> {
        let payload = payload(id, self.payload.max(LEAST_PAYLOAD));
        match (self.source, self.destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => self.over_ipv6(source, destination, &payload),
            (IpAddr::V4(source), IpAddr::V4(destination)) => self.over_ipv4(source, destination, &payload),
            _ => panic!("{} and {} are of two families", self.source, self.destination),
        }
    }

    fn over_ipv6(&self, source: Ipv6Addr, destination: Ipv6Addr, payload: &[u8]) -> Vec<u8> {
        let mut packet = [&[0; IPV6_HEADERS_LEN], payload].concat();
        let headers = UdpOverIpv6 {
            source,
            destination,
            source_port: self.source_port,
            destination_port: self.destination_port,
            hop_limit: HOP_LIMIT,
            traffic_class: self.traffic_class,
        };
        if let Err(error) = headers.write(&mut packet, payload.len()) {
            panic!("{self:?} cannot be written: {error}");
        }
        packet
    }

    fn over_ipv4(&self, source: Ipv4Addr, destination: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
        let total = length(IPV4_HEADERS_LEN + payload.len());
        let mut ip = [0; 20];
        ip[0] = 0x45;
        ip[1] = self.traffic_class;
        ip[2..4].copy_from_slice(&total);
        ip[6] = 0x40;
        ip[8] = HOP_LIMIT;
        ip[9] = protocol::UDP;
        ip[12..16].copy_from_slice(&source.octets());
        ip[16..20].copy_from_slice(&destination.octets());
        let sum = checksum::of(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let ports = [self.source_port.to_be_bytes(), self.destination_port.to_be_bytes()].concat();
        let mut udp = [&ports[..], &length(8 + payload.len()), &[0, 0], payload].concat();
        let sum = checksum::transport(source.into(), destination.into(), protocol::UDP, &udp);
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        [&ip[..], &udp].concat()
    }
}

/// Which of our packets this is, and whether its payload is what was sent. `None` if it is none of ours.
pub(super) fn identify(packet: &[u8]) -> Option<(PacketId, bool)> {
    let header = match packet.first()? >> 4 {
        4 if packet.get(9) == Some(&protocol::UDP) => IPV4_HEADERS_LEN,
        6 if packet.get(6) == Some(&protocol::UDP) => IPV6_HEADERS_LEN,
        _ => return None,
    };
    let content = packet.get(header..)?;
    let (number, _) = content.strip_prefix(PLAIN_TEXT)?.split_first_chunk::<8>()?;
    let id = PacketId(u64::from_be_bytes(*number));
    Some((id, content == payload(id, content.len())))
}

fn payload(id: PacketId, len: usize) -> Vec<u8> {
    let mut octets = [&PLAIN_TEXT[..], &id.0.to_be_bytes()].concat();
    octets.extend((octets.len()..len).map(|position| position.to_le_bytes()[0] ^ id.0.to_le_bytes()[0]));
    octets
}

fn length(octets: usize) -> [u8; 2] {
    match u16::try_from(octets) {
        Ok(length) => length.to_be_bytes(),
        Err(_) => panic!("a packet of {octets} octets is too long for IP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srv6::ip::FlowKey;

    #[test]
    fn packets_of_both_families_are_recognised_and_damage_is_seen() {
        let v6 = Packet::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST).to_port(7).with_payload(200);
        let v4 = Packet::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).to_port(7);
        for packet in [v4, v6] {
            let mut octets = packet.octets(PacketId(300));
            let flow = FlowKey::parse(&octets).expect("well formed");
            assert_eq!(flow.ports, Some((40_000, 7)));
            assert_eq!(identify(&octets), Some((PacketId(300), true)));
            if let Some(last) = octets.last_mut() {
                *last ^= 1;
            }
            assert_eq!(identify(&octets), Some((PacketId(300), false)));
        }
    }
}
