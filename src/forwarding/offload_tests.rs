//! Segmentation and coalescing against each other, and against an independent checksum.

use super::coalesce::{Coalescer, Offload};
use super::egress::{Egress, Sent, Transmit};
use super::ring::{Punt, Stranger};
use super::super_packet::SuperPacket;
use super::virtio::{Checksum, Gso, HEADER_LEN, VirtioHeader};
use proptest::prelude::*;
use srv6::ip::{FlowKey, Ipv4View, Ipv6View, checksum};
use std::io::IoSlice;
use std::net::IpAddr;

/// Remembers the frames.
#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

/// A TUN that refuses super-packets.
#[derive(Default)]
struct Refusing(Frames);

impl Egress for Refusing {
    fn transmit(&mut self, _: &Transmit<'_>) -> Sent {
        Sent::Taken
    }
    fn deliver(&mut self, frame: &[IoSlice<'_>]) -> bool {
        frame[0][1] == 0 && self.0.deliver(frame)
    }
    fn punt(&mut self, _: Punt) -> bool {
        true
    }
    fn stranger(&mut self, _: Stranger) -> bool {
        true
    }
}

impl Egress for Frames {
    fn transmit(&mut self, _: &Transmit<'_>) -> Sent {
        Sent::Taken
    }
    fn deliver(&mut self, frame: &[IoSlice<'_>]) -> bool {
        self.0.push(frame.iter().flat_map(|slice| slice.iter().copied()).collect());
        true
    }
    fn punt(&mut self, _: Punt) -> bool {
        true
    }
    fn stranger(&mut self, _: Stranger) -> bool {
        true
    }
}

/// A flow's parameters, from which super-packets and single packets are built.
#[derive(Clone)]
struct Shape {
    v4: bool,
    tcp: bool,
    payload: Vec<u8>,
    size: u16,
    flags: u8,
    sequence: u32,
    identification: u16,
    port: u16,
    options: bool,
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shape { v4, tcp, size, flags, port, .. } = self;
        write!(formatter, "v4 {v4} tcp {tcp} {} / {size} flags {flags:#x} port {port}", self.payload.len())
    }
}

impl Shape {
    fn transport(&self) -> usize {
        if self.v4 { 20 } else { 40 }
    }

    fn headers(&self) -> usize {
        self.transport() + if !self.tcp { 8 } else { if self.options { 32 } else { 20 } }
    }

    /// The super-packet as the kernel hands it over, with its virtio header.
    fn super_packet(&self) -> (VirtioHeader, Vec<u8>) {
        let (transport, headers) = (self.transport(), self.headers());
        let total = headers + self.payload.len();
        let mut packet = vec![0; headers];
        let offset = if self.tcp { 16 } else { 6 };
        self.write_network(&mut packet, total);
        let field = &mut packet[transport..];
        field[..4].copy_from_slice(&[0x9c, 0x40, (self.port >> 8) as u8, self.port as u8]);
        if self.tcp {
            field[4..8].copy_from_slice(&self.sequence.to_be_bytes());
            field[8..12].copy_from_slice(&[1, 2, 3, 4]);
            field[12] = (((headers - transport) / 4) << 4) as u8;
            field[13] = self.flags;
            field[14..16].copy_from_slice(&[0x20, 0x01]);
            if self.options {
                field[20..32].copy_from_slice(&[1, 1, 8, 10, 0, 1, 2, 3, 4, 5, 6, 7]);
            }
        } else {
            field[4..6].copy_from_slice(&((total - transport) as u16).to_be_bytes());
        }
        let pseudo = pseudo_sum(&packet, total - transport);
        packet[transport + offset..transport + offset + 2].copy_from_slice(&pseudo.to_be_bytes());
        packet.extend(&self.payload);
        let header = VirtioHeader {
            gso: match (self.tcp, self.v4) {
                (true, true) => Gso::TcpV4,
                (true, false) => Gso::TcpV6,
                (false, _) => Gso::Udp,
            },
            ecn: false,
            header_len: headers as u16,
            gso_size: self.size,
            checksum: Checksum::Partial { start: transport as u16, offset: offset as u16 },
        };
        (header, packet)
    }

    fn write_network(&self, packet: &mut [u8], total: usize) {
        let protocol = if self.tcp { 6 } else { 17 };
        if self.v4 {
            packet[..12].copy_from_slice(&[0x45, 2, 0, 0, 0, 0, 0x40, 0, 63, protocol, 0, 0]);
            packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            packet[4..6].copy_from_slice(&self.identification.to_be_bytes());
            packet[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 2, 0, 2]);
            let sum = checksum::of(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            packet[..8].copy_from_slice(&[0x60, 0x21, 0x23, 0x45, 0, 0, protocol, 63]);
            packet[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
            packet[8] = 0xfd;
            packet[23] = 1;
            packet[24] = 0xfd;
            packet[39] = 2;
        }
    }

    fn segments(&self) -> Vec<Vec<u8>> {
        let (header, packet) = self.super_packet();
        segments(&header, &packet)
    }
}

/// The pseudo-header's sum by the other implementation: the complement of a checksum over it.
fn pseudo_sum(packet: &[u8], len: usize) -> u16 {
    let mut pseudo = if packet[0] >> 4 == 4 { packet[12..20].to_vec() } else { packet[8..40].to_vec() };
    pseudo.extend((len as u32).to_be_bytes());
    pseudo
        .extend([0, if packet[0] >> 4 == 4 { packet[9] } else { packet[6] }].map(u16::from).map(|p| p as u8));
    !checksum::of(&pseudo)
}

fn segments(header: &VirtioHeader, packet: &[u8]) -> Vec<Vec<u8>> {
    let cut = SuperPacket::parse(header, packet).expect("the shape is sound");
    (0..cut.count())
        .map(|index| {
            let mut out = vec![0xee; cut.segment_len(index)];
            cut.write(index, &mut out);
            out
        })
        .collect()
}

/// Checks lengths and checksums by srv6's own code.
fn assert_valid(packet: &[u8]) {
    let flow = FlowKey::parse(packet).expect("parses");
    let transport = if packet[0] >> 4 == 4 {
        let view = Ipv4View::parse(packet).expect("parses");
        assert_eq!(view.total_len(), packet.len());
        assert_eq!(checksum::of(&packet[..20]), 0, "IPv4 header checksum");
        20
    } else {
        assert_eq!(Ipv6View::parse(packet).expect("parses").total_len(), packet.len());
        40
    };
    let (source, destination): (IpAddr, IpAddr) = (flow.source, flow.destination);
    assert_eq!(checksum::transport(source, destination, flow.protocol, &packet[transport..]), 0);
}

/// Puts packets into a receive buffer with gaps, as ESP leaves them.
fn received(packets: &[Vec<u8>]) -> (Vec<u8>, Vec<std::ops::Range<usize>>) {
    let mut buffer = Vec::new();
    let mut ranges = Vec::new();
    for packet in packets {
        buffer.extend([0xaa; 16]);
        ranges.push(buffer.len()..buffer.len() + packet.len());
        buffer.extend(packet);
        buffer.extend([0xbb; 19]);
    }
    (buffer, ranges)
}

/// Coalesces one batch.
fn coalesce(packets: &[Vec<u8>], offload: Offload) -> Vec<Vec<u8>> {
    let (mut buffer, ranges) = received(packets);
    let mut coalescer = Coalescer::new(offload);
    let mut frames = Frames::default();
    for range in ranges {
        coalescer.push(&mut buffer, range, &mut frames);
    }
    coalescer.flush(&mut buffer, &mut frames);
    assert_eq!(coalescer.written.packets as usize, packets.len());
    assert_eq!(coalescer.written.bytes as usize, packets.iter().map(Vec::len).sum::<usize>());
    frames.0
}

/// Frames as single packets again.
fn resegment(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let split = |frame: &Vec<u8>| {
        let (header, packet) = VirtioHeader::parse(frame).expect("our own header");
        segments(&header, packet)
    };
    frames.iter().flat_map(split).collect()
}

const ALL: Offload = Offload { tcp: true, udp: true };

fn shape() -> impl Strategy<Value = Shape> {
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..6000),
        (1usize..64_000, any::<u8>()).prop_map(|(len, seed)| {
            (0..len).map(|index| (index as u8).wrapping_mul(31) ^ seed).collect()
        }),
    ];
    let flags = prop::sample::select(vec![0x10u8, 0x18, 0x11, 0x50, 0x19]);
    (any::<(bool, bool, bool)>(), payload, 100u16..1460, flags, any::<(u32, u16)>(), 1u16..4).prop_map(
        |((v4, tcp, options), payload, size, flags, (sequence, identification), port)| Shape {
            v4,
            tcp,
            payload,
            size,
            flags,
            sequence,
            identification,
            port,
            options,
        },
    )
}

proptest! {
    #[test]
    fn segments_are_valid_and_carry_the_payload(shape in shape()) {
        let mut payload: Vec<u8> = Vec::new();
        let segments = shape.segments();
        for (index, segment) in segments.iter().enumerate() {
            assert_valid(segment);
            if shape.tcp {
                let tcp = &segment[shape.transport()..];
                let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
                prop_assert_eq!(sequence, shape.sequence.wrapping_add(payload.len() as u32));
                let last = index + 1 == segments.len();
                prop_assert_eq!(tcp[13], if last { shape.flags } else { shape.flags & !0x09 });
            }
            if shape.v4 {
                let view = Ipv4View::parse(segment).unwrap();
                prop_assert_eq!(view.identification(), shape.identification.wrapping_add(index as u16));
            }
            payload.extend(&segment[shape.headers()..]);
        }
        prop_assert!(payload == shape.payload);
    }

    #[test]
    fn what_was_cut_is_joined_again(shape in shape()) {
        let segments = shape.segments();
        let frames = coalesce(&segments, ALL);
        prop_assert_eq!(frames.len(), segments.len().div_ceil(64));
        prop_assert!(resegment(&frames) == segments);
        if segments.len() > 1 && frames.len() == 1 {
            let (header, packet) = shape.super_packet();
            let mut original = header.to_bytes().to_vec();
            original.extend(packet);
            prop_assert!(frames[0] == original);
        }
    }

    #[test]
    fn kill_switches_leave_packets_alone(shape in shape()) {
        let segments = shape.segments();
        let frames = coalesce(&segments, Offload { tcp: false, udp: false });
        prop_assert_eq!(frames.len(), segments.len());
        prop_assert!(resegment(&frames) == segments);
    }

    #[test]
    fn mixed_flows_keep_their_order_and_every_packet(
        shapes in prop::collection::vec(shape(), 1..14),
        order in prop::collection::vec(any::<u16>(), 0..200),
        corrupt in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u8>()), 0..6),
    ) {
        let mut queues: Vec<_> = shapes.iter().map(|shape| shape.segments().into_iter().take(12).collect::<std::collections::VecDeque<_>>()).collect();
        let mut packets = Vec::new();
        for choice in order {
            let index = usize::from(choice) % queues.len();
            packets.extend(queues[index].pop_front());
        }
        for (packet, at, value) in corrupt {
            let count = packets.len().max(1);
            if let Some(packet) = packets.get_mut(usize::from(packet) % count) {
                // Anything but the length fields, which were checked before coalescing.
                let len = packet.len();
                let at = usize::from(at) % len;
                if !(2..6).contains(&at) && at != 0 {
                    packet[at] ^= value;
                }
            }
        }
        let frames = coalesce(&packets, ALL);
        let again = resegment(&frames);
        prop_assert_eq!(again.len(), packets.len());
        for flow in flows(&packets) {
            let of = |all: &[Vec<u8>]| all.iter().filter(|packet| flow_of(packet) == flow).cloned().collect::<Vec<_>>();
            prop_assert!(of(&again) == of(&packets), "flow {:?}", flow);
        }
    }

    #[test]
    fn any_offload_header_is_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        header in any::<[u8; HEADER_LEN]>(),
        first in prop::sample::select(vec![0x45u8, 0x60, 0x4f, 0x00]),
    ) {
        let mut frame = header.to_vec();
        frame.extend(&bytes);
        if let Some(octet) = frame.get_mut(HEADER_LEN) {
            *octet = first;
        }
        if let Some((header, packet)) = VirtioHeader::parse(&frame)
            && let Ok(cut) = SuperPacket::parse(&header, packet)
        {
            for index in 0..cut.count() {
                let mut out = vec![0; cut.segment_len(index)];
                cut.write(index, &mut out);
            }
        }
    }

    #[test]
    fn any_bytes_can_be_pushed(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..120), 1..20)) {
        let mut packets = packets;
        for (index, packet) in packets.iter_mut().enumerate() {
            packet[0] = if index % 2 == 0 { 0x45 } else { 0x60 };
        }
        coalesce(&packets, ALL);
    }
}

fn flow_of(packet: &[u8]) -> (Vec<u8>, Option<u8>) {
    let (addresses, protocol, transport) =
        if packet[0] >> 4 == 4 { (12..20, packet[9], 20) } else { (8..40, packet[6], 40) };
    let mut key = packet[addresses].to_vec();
    key.extend(&packet[transport..transport + 4]);
    (key, Some(protocol))
}

fn flows(packets: &[Vec<u8>]) -> Vec<(Vec<u8>, Option<u8>)> {
    let mut flows: Vec<_> = packets.iter().map(|packet| flow_of(packet)).collect();
    flows.sort();
    flows.dedup();
    flows
}

fn tcp(payload: usize, flags: u8) -> Shape {
    Shape {
        v4: true,
        tcp: true,
        payload: vec![7; payload],
        size: 1000,
        flags,
        sequence: 5,
        identification: 9,
        port: 80,
        options: false,
    }
}

#[test]
fn a_wrong_checksum_is_never_joined() {
    for victim in [0, 1] {
        let mut segments = tcp(2000, 0x10).segments();
        segments[victim][60] ^= 1;
        let frames = coalesce(&segments, ALL);
        assert_eq!(frames.len(), 2);
        for (frame, segment) in frames.iter().zip(&segments) {
            assert_eq!(&frame[HEADER_LEN..], segment, "the kernel sees it as it came");
        }
        assert_eq!(frames[victim][0], 0, "and is not told that it is valid");
    }
}

#[test]
fn each_differing_field_keeps_packets_apart() {
    // Type of service, flags, time to live, acknowledgement, window, urgent pointer.
    for at in [1, 8, 28, 34, 38] {
        let mut segments = tcp(2000, 0x10).segments();
        segments[1][at] ^= 4;
        segments[1][10..12].fill(0);
        let sum = checksum::of(&segments[1][..20]);
        segments[1][10..12].copy_from_slice(&sum.to_be_bytes());
        segments[1][36..38].fill(0);
        let sum = checksum::transport([10, 1, 0, 1].into(), [10, 2, 0, 2].into(), 6, &segments[1][20..]);
        segments[1][36..38].copy_from_slice(&sum.to_be_bytes());
        assert_valid(&segments[1]);
        assert_eq!(coalesce(&segments, ALL).len(), 2, "octet {at}");
    }
}

#[test]
fn syn_rst_urg_and_bare_acknowledgements_stay_single() {
    for flags in [0x02, 0x12, 0x14, 0x30, 0x90] {
        assert_eq!(coalesce(&tcp(2000, flags).segments(), ALL).len(), 2, "flags {flags:#x}");
    }
    let mut packets = tcp(1000, 0x10).segments();
    let acknowledgement = Shape { payload: Vec::new(), sequence: 1005, ..tcp(0, 0x10) };
    packets.extend(acknowledgement.segments());
    packets.extend(Shape { sequence: 1005, identification: 10, ..tcp(1000, 0x10) }.segments());
    let frames = coalesce(&packets, ALL);
    assert_eq!(frames.len(), 3, "a bare acknowledgement closes the flow before it");
    assert_eq!(resegment(&frames), packets);
}

#[test]
fn a_fixed_identification_is_joined_only_where_fragments_are_forbidden() {
    let mut segments = tcp(3000, 0x10).segments();
    for fragmentable in [false, true] {
        for segment in &mut segments {
            segment[4..6].copy_from_slice(&[0, 0]);
            segment[6] = if fragmentable { 0 } else { 0x40 };
            segment[10..12].fill(0);
            let sum = checksum::of(&segment[..20]);
            segment[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        assert_eq!(coalesce(&segments, ALL).len(), if fragmentable { 3 } else { 1 });
    }
}

#[test]
fn a_single_packet_gets_its_checksum_completed() {
    for v4 in [true, false] {
        for is_tcp in [true, false] {
            let shape = Shape { v4, tcp: is_tcp, payload: vec![3; 333], ..tcp(0, 0x18) };
            let (header, packet) = shape.super_packet();
            let header = VirtioHeader { gso: Gso::None, gso_size: 0, ..header };
            let out = segments(&header, &packet);
            assert_eq!(out.len(), 1);
            assert_valid(&out[0]);
        }
    }
}

#[test]
fn a_kernel_that_refuses_super_packets_gets_their_packets_and_no_more_of_them() {
    let shapes = [tcp(5000, 0x10), Shape { tcp: false, port: 53, ..tcp(5000, 0) }];
    let packets: Vec<_> = shapes.iter().flat_map(Shape::segments).collect();
    let mut coalescer = Coalescer::new(ALL);
    let mut tun = Refusing::default();
    for _ in 0..2 {
        let (mut buffer, ranges) = received(&packets);
        for range in ranges {
            coalescer.push(&mut buffer, range, &mut tun);
        }
        coalescer.flush(&mut buffer, &mut tun);
    }
    assert_eq!(coalescer.written.offload_refused, 2, "one for TCP, one for UDP");
    assert_eq!(coalescer.written.refused, 0);
    let got: Vec<_> = tun.0.0.iter().map(|frame| frame[HEADER_LEN..].to_vec()).collect();
    assert!(got == [packets.clone(), packets].concat());
}
