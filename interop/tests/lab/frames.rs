//! What is in the frames of a capture.

use pcap_file::pcap::PcapReader;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

const ETHERNET: usize = 14;
const ICMP: u8 = 1;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const HOP_BY_HOP: u8 = 0;

/// What a frame is, as far as it concerns an underlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ARP, neighbour discovery, or a report of the multicast groups that neighbour discovery needs.
    Neighbours,
    /// A UDP datagram.
    Datagram(Datagram),
    /// The kernel's answer to a datagram for a UDP port that nobody has: the daemon is not there yet, or no longer.
    NobodyThere(u16),
    /// An ICMP echo below the mesh, from one underlay address to another: somebody measures the direct way.
    UnderlayEcho,
    /// Anything else.
    Foreign,
}

/// A UDP datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) payload: Vec<u8>,
}

/// What travels between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// IKEv2 behind the non-ESP marker.
    Ike,
    /// ESP.
    Esp,
    /// The one byte that keeps a NAT's memory alive.
    Keepalive,
}

/// All frames of a capture file.
pub(crate) fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push(packet.unwrap().data.into_owned());
    }
    frames
}

/// All UDP datagrams of a capture file.
pub(crate) fn datagrams(path: &Path) -> Vec<Datagram> {
    let kinds = read(path).into_iter().map(|frame| classify(&frame));
    kinds.filter_map(|kind| if let Kind::Datagram(datagram) = kind { Some(datagram) } else { None }).collect()
}

/// Judges an Ethernet frame.
pub(crate) fn classify(frame: &[u8]) -> Kind {
    let packet = frame.get(ETHERNET..).unwrap_or_default();
    let kind = match frame.get(12..ETHERNET) {
        Some([0x08, 0x06]) => Some(Kind::Neighbours),
        Some([0x08, 0x00]) => ipv4(packet),
        Some([0x86, 0xdd]) => ipv6(packet),
        _ => None,
    };
    kind.unwrap_or(Kind::Foreign)
}

fn ipv4(packet: &[u8]) -> Option<Kind> {
    let header = usize::from(packet.first()? & 15) * 4;
    let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
    let payload = packet.get(header..length)?;
    match *packet.get(9)? {
        UDP => udp(address(12)?, address(16)?, payload),
        ICMP if matches!(payload.first()?, 0 | 8) => {
            let underlay = [address(12)?, address(16)?].iter().all(is_underlay);
            underlay.then_some(Kind::UnderlayEcho)
        }
        ICMP => nobody_there(payload),
        _ => None,
    }
}

/// Whether the lab gives such addresses to interfaces of underlays (198.18.0.0/15).
fn is_underlay(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if matches!(address.octets(), [198, 18 | 19, ..]))
}

/// An ICMP message about a closed port (type 3, code 3), which quotes the datagram.
fn nobody_there(message: &[u8]) -> Option<Kind> {
    let quoted = message.get(8..)?;
    let header = usize::from(quoted.first()? & 15) * 4;
    let port = u16::from_be_bytes(*quoted.get(header + 2..)?.first_chunk()?);
    (message.starts_with(&[3, 3]) && *quoted.get(9)? == UDP).then_some(Kind::NobodyThere(port))
}

fn ipv6(packet: &[u8]) -> Option<Kind> {
    let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
    let length = usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
    let payload = packet.get(40..40 + length)?;
    match *packet.get(6)? {
        UDP => udp(address(8)?, address(24)?, payload),
        ICMPV6 if matches!(payload.first()?, 133..=137) => Some(Kind::Neighbours),
        // Behind a router alert: multicast listener reports.
        HOP_BY_HOP if *payload.first()? == ICMPV6 && matches!(payload.get(8)?, 131 | 132 | 143) => {
            Some(Kind::Neighbours)
        }
        _ => None,
    }
}

fn udp(source: IpAddr, destination: IpAddr, segment: &[u8]) -> Option<Kind> {
    let port = |at: usize| Some(u16::from_be_bytes(*segment.get(at..)?.first_chunk()?));
    Some(Kind::Datagram(Datagram {
        source: SocketAddr::new(source, port(0)?),
        destination: SocketAddr::new(destination, port(2)?),
        payload: segment.get(8..)?.to_vec(),
    }))
}

impl Datagram {
    /// What a datagram between two nodes holds; `None` if that is nothing that belongs there.
    pub(crate) fn content(&self) -> Option<Content> {
        match self.payload.as_slice() {
            [0xff] => Some(Content::Keepalive),
            // The marker, both SPIs, the next payload, version 2.0.
            [0, 0, 0, 0, ike @ ..] => (ike.len() >= 28 && ike[17] == 0x20).then_some(Content::Ike),
            // SPIs up to 255 are reserved (RFC 4303 §2.1).
            [0, 0, 0, _, ..] => None,
            esp if esp.len() > 8 + 8 + 16 => Some(Content::Esp),
            _ => None,
        }
    }
}
