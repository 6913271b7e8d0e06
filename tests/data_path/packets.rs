//! Inner packets, built and taken apart.

use srv6::ip::checksum;
use std::io::IoSlice;
use std::net::IpAddr;
use viamesh::forwarding::virtio::{Checksum, Gso, HEADER_LEN, VirtioHeader};
use viamesh::runtime::memory::Application;

/// An IP packet around a transport whose checksum field is at `checksum_at`.
pub(crate) fn ip(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    hop_limit: u8,
    transport: &[u8],
) -> Vec<u8> {
    let mut packet = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = (20 + transport.len()) as u16;
            let mut header = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, hop_limit, protocol, 0, 0];
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header.extend(source.octets());
            header.extend(destination.octets());
            let sum = checksum::of(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, protocol, hop_limit];
            header[4..6].copy_from_slice(&(transport.len() as u16).to_be_bytes());
            header.extend(source.octets());
            header.extend(destination.octets());
            header
        }
        _ => panic!("two families in one packet"),
    };
    packet.extend(transport);
    packet
}

pub(crate) fn udp(source: IpAddr, destination: IpAddr, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = ports.0.to_be_bytes().to_vec();
    datagram.extend(ports.1.to_be_bytes());
    datagram.extend(((8 + payload.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    let sum = checksum::transport(source, destination, 17, &datagram);
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    ip(source, destination, 17, 64, &datagram)
}

pub(crate) fn tcp(
    source: IpAddr,
    destination: IpAddr,
    ports: (u16, u16),
    sequence: u32,
    flags: u8,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut segment = ports.0.to_be_bytes().to_vec();
    segment.extend(ports.1.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend([0, 0, 0, 1]);
    segment.extend([(((20 + options.len()) / 4) << 4) as u8, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(options);
    segment.extend(payload);
    let sum = checksum::transport(source, destination, 6, &segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    ip(source, destination, 6, 64, &segment)
}

pub(crate) fn echo_request(
    source: IpAddr,
    destination: IpAddr,
    identifier: u16,
    hop_limit: u8,
    payload: usize,
) -> Vec<u8> {
    echo(source, destination, true, identifier, hop_limit, payload)
}

pub(crate) fn echo_reply(source: IpAddr, destination: IpAddr, identifier: u16, payload: usize) -> Vec<u8> {
    echo(source, destination, false, identifier, 64, payload)
}

fn echo(
    source: IpAddr,
    destination: IpAddr,
    request: bool,
    identifier: u16,
    hop_limit: u8,
    payload: usize,
) -> Vec<u8> {
    let v4 = source.is_ipv4();
    let kind = match (v4, request) {
        (true, true) => 8,
        (true, false) => 0,
        (false, true) => 128,
        (false, false) => 129,
    };
    let mut message = vec![kind, 0, 0, 0];
    message.extend(identifier.to_be_bytes());
    message.extend([0, 1]);
    message.extend((0..payload).map(|index| index as u8));
    let sum =
        if v4 { checksum::of(&message) } else { checksum::transport(source, destination, 58, &message) };
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    ip(source, destination, if v4 { 1 } else { 58 }, hop_limit, &message)
}

/// A TCP super-packet as the kernel hands it over.
pub(crate) fn tcp_super_packet(
    source: IpAddr,
    destination: IpAddr,
    payload: &[u8],
    size: u16,
) -> (VirtioHeader, Vec<u8>) {
    let mut packet = tcp(source, destination, (40_000, 5201), 1000, 0x18, &[], payload);
    let transport = if source.is_ipv4() { 20 } else { 40 };
    let header = VirtioHeader {
        gso: if source.is_ipv4() { Gso::TcpV4 } else { Gso::TcpV6 },
        ecn: false,
        header_len: transport + 20,
        gso_size: size,
        checksum: Checksum::Partial { start: transport, offset: 16 },
    };
    // The field holds the sum of the pseudo-header.
    let at = usize::from(transport);
    let segment = packet.len() - at;
    let mut pseudo = match source {
        IpAddr::V4(_) => packet[12..20].to_vec(),
        IpAddr::V6(_) => packet[8..40].to_vec(),
    };
    pseudo.extend((segment as u32).to_be_bytes());
    pseudo.extend([0, 6]);
    let sum = !checksum::of(&pseudo);
    packet[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
    (header, packet)
}

/// Hands a single packet to the node.
pub(crate) fn send(application: &Application, packet: &[u8]) {
    send_frame(application, VirtioHeader::PLAIN, packet);
}

pub(crate) fn send_frame(application: &Application, header: VirtioHeader, packet: &[u8]) {
    application.send(&[IoSlice::new(&header.to_bytes()), IoSlice::new(packet)]);
}

/// The next frame for the kernel, split.
pub(crate) fn receive(application: &Application) -> Option<(VirtioHeader, Vec<u8>)> {
    let frame = application.receive()?;
    assert!(frame.len() > HEADER_LEN);
    let (header, packet) = VirtioHeader::parse(&frame).unwrap();
    Some((header, packet.to_vec()))
}

/// The next packet, which must be a single one.
pub(crate) fn receive_packet(application: &Application) -> Option<Vec<u8>> {
    let (header, packet) = receive(application)?;
    assert_eq!(header.gso, Gso::None);
    Some(packet)
}
