//! Joins received packets of a flow into super-packets for the TUN, by the rules of the kernel's
//! own generic receive offload.
//!
//! Nothing is copied: an open flow remembers where its payloads stand in the receive buffer. The
//! first packet's headers are patched in place when the flow is written.

use super::egress::{Egress, MAX_SEGMENTS, MAX_SLICES};
use super::sum::Sum;
use super::super_packet::SuperPacket;
use super::virtio::{Checksum, Gso, VirtioHeader};
use srv6::ip::protocol;
use std::io::IoSlice;
use std::ops::Range;

/// Flows that are open at a time.
const FLOWS: usize = 8;

/// The longest IP packet.
const MAX_PACKET: usize = 65_535;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;

/// What the TUN takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// TCP super-packets.
    pub tcp: bool,
    /// UDP super-packets.
    pub udp: bool,
}

/// What was written to the TUN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) writes: u64,
    pub(crate) refused: u64,
    /// Super-packets that the TUN refused and whose packets it took.
    pub(crate) offload_refused: u64,
}

/// The open flows. Empty between batches.
#[derive(Debug)]
pub(crate) struct Coalescer {
    offload: Offload,
    flows: Vec<Flow>,
    pub(crate) written: Written,
}

/// One packet that could be joined, located in the receive buffer.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    start: usize,
    /// From `start` to the transport header.
    transport: usize,
    /// From `start` to the payload.
    headers: usize,
    payload: usize,
    tcp: bool,
    v4: bool,
    flags: u8,
    sequence: u32,
    identification: u16,
}

#[derive(Debug)]
struct Flow {
    first: Candidate,
    /// Payloads of the packets behind the first.
    slices: [(u32, u32); MAX_SEGMENTS],
    joined: usize,
    payload: usize,
    last_flags: u8,
    /// The IPv4 identification does not grow: allowed where fragmentation is forbidden.
    fixed_identification: bool,
    verified: bool,
}

impl Coalescer {
    pub(crate) fn new(offload: Offload) -> Self {
        Coalescer { offload, flows: Vec::with_capacity(FLOWS), written: Written::default() }
    }

    /// Takes one inner packet for the TUN.
    #[inline]
    pub(crate) fn push(&mut self, buffer: &mut [u8], packet: Range<usize>, egress: &mut impl Egress) {
        let candidate = Candidate::parse(buffer, &packet);
        let open = candidate.and_then(|candidate| {
            self.flows.iter().position(|flow| flow.first.same_flow(&candidate, buffer))
        });
        let mergeable = candidate.filter(|candidate| self.may_join(candidate));
        match (open, mergeable) {
            (Some(index), Some(candidate)) => self.extend(index, candidate, buffer, egress),
            (None, Some(candidate)) => self.open(candidate, buffer, egress),
            (open, None) => {
                // Overtaking inside a flow would look like loss to TCP. Fragments and packets with
                // options may belong to any of them.
                match open {
                    Some(index) => self.close(index, buffer, egress),
                    None if candidate.is_none() && !is_other_protocol(&buffer[packet.clone()]) => {
                        self.flush(buffer, egress);
                    }
                    None => {}
                }
                self.write_single(&buffer[packet], VirtioHeader::PLAIN, egress);
            }
        }
    }

    /// Writes all open flows.
    pub(crate) fn flush(&mut self, buffer: &mut [u8], egress: &mut impl Egress) {
        while !self.flows.is_empty() {
            self.close(0, buffer, egress);
        }
    }

    fn may_join(&self, candidate: &Candidate) -> bool {
        if candidate.tcp {
            let others = candidate.flags & !(FIN | PSH | ECE);
            self.offload.tcp && candidate.payload > 0 && others == ACK
        } else {
            self.offload.udp && candidate.payload > 0
        }
    }

    fn extend(&mut self, index: usize, candidate: Candidate, buffer: &mut [u8], egress: &mut impl Egress) {
        let flow = &mut self.flows[index];
        if !flow.accepts(&candidate, buffer) {
            self.close(index, buffer, egress);
            return self.open(candidate, buffer, egress);
        }
        flow.join(&candidate);
        if flow.is_complete() {
            self.close(index, buffer, egress);
        }
    }

    fn open(&mut self, candidate: Candidate, buffer: &mut [u8], egress: &mut impl Egress) {
        if candidate.flags & (FIN | PSH) != 0 && candidate.tcp {
            let packet = candidate.start..candidate.start + candidate.headers + candidate.payload;
            return self.write_single(&buffer[packet], VirtioHeader::PLAIN, egress);
        }
        if self.flows.len() == FLOWS {
            self.close(0, buffer, egress);
        }
        self.flows.push(Flow::new(candidate));
    }

    fn close(&mut self, index: usize, buffer: &mut [u8], egress: &mut impl Egress) {
        let flow = self.flows.remove(index);
        let first = &flow.first;
        let end = first.start + first.headers + first.payload;
        if flow.joined == 0 {
            let checksum = if flow.verified { Checksum::Valid } else { Checksum::Complete };
            let header = VirtioHeader { checksum, ..VirtioHeader::PLAIN };
            return self.write_single(&buffer[first.start..end], header, egress);
        }
        let header = flow.patch_headers(buffer).to_bytes();
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        slices[0] = IoSlice::new(&header);
        slices[1] = IoSlice::new(&buffer[first.start..end]);
        for (slot, (start, len)) in slices[2..].iter_mut().zip(&flow.slices[..flow.joined]) {
            *slot = IoSlice::new(&buffer[*start as usize..(*start + *len) as usize]);
        }
        let slices = &slices[..2 + flow.joined];
        if egress.deliver(slices) {
            self.count(1 + flow.joined, first.headers * (1 + flow.joined) + flow.payload, true);
        } else {
            self.write_apart(slices, first.tcp, egress);
        }
    }

    /// The TUN refused a super-packet: its packets go one by one. If that works, the kernel has
    /// trouble with super-packets (6.1.103 and others had), and no more are made.
    fn write_apart(&mut self, slices: &[IoSlice<'_>], tcp: bool, egress: &mut impl Egress) {
        let frame: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let Some((header, packet)) = VirtioHeader::parse(&frame) else { return };
        let Ok(cut) = SuperPacket::parse(&header, packet) else { return };
        let before = self.written.refused;
        for index in 0..cut.count() {
            let mut single = vec![0; cut.segment_len(index)];
            cut.write(index, &mut single);
            self.write_single(&single, VirtioHeader::PLAIN, egress);
        }
        if self.written.refused == before {
            self.written.offload_refused += 1;
            *(if tcp { &mut self.offload.tcp } else { &mut self.offload.udp }) = false;
        }
    }

    fn write_single(&mut self, packet: &[u8], header: VirtioHeader, egress: &mut impl Egress) {
        let taken = egress.deliver(&[IoSlice::new(&header.to_bytes()), IoSlice::new(packet)]);
        self.count(1, packet.len(), taken);
    }

    fn count(&mut self, packets: usize, bytes: usize, taken: bool) {
        if taken {
            self.written.packets += packets as u64;
            self.written.bytes += bytes as u64;
            self.written.writes += 1;
        } else {
            self.written.refused += packets as u64;
        }
    }
}

impl Candidate {
    /// Finds the headers of an unfragmented TCP or UDP packet without IP options.
    fn parse(buffer: &[u8], packet: &Range<usize>) -> Option<Candidate> {
        let bytes = buffer.get(packet.clone())?;
        let v4 = match bytes.first()? {
            0x45 => true,
            first if first >> 4 == 6 => false,
            _ => return None,
        };
        let transport = if v4 { 20 } else { 40 };
        let protocol = *bytes.get(if v4 { 9 } else { 6 })?;
        // More fragments, an offset, or the reserved bit.
        if v4 && (bytes[6] & 0xbf != 0 || bytes[7] != 0) {
            return None;
        }
        let (tcp, header_len) = match protocol {
            protocol::TCP => (true, usize::from(bytes.get(transport + 12)? >> 4) * 4),
            protocol::UDP => (false, 8),
            _ => return None,
        };
        let headers = transport + header_len;
        if bytes.len() < headers || (tcp && header_len < 20) {
            return None;
        }
        let udp_len = usize::from(u16::from_be_bytes([bytes[transport + 4], bytes[transport + 5]]));
        if !tcp && udp_len != bytes.len() - transport {
            return None;
        }
        Some(Candidate {
            start: packet.start,
            transport,
            headers,
            payload: bytes.len() - headers,
            tcp,
            v4,
            flags: if tcp { bytes[transport + 13] } else { 0 },
            sequence: u32::from_be_bytes(*bytes[transport + 4..].first_chunk()?),
            identification: u16::from_be_bytes([bytes[4], bytes[5]]),
        })
    }

    fn bytes<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        &buffer[self.start..self.start + self.headers + self.payload]
    }

    /// Addresses, protocol and ports.
    fn same_flow(&self, other: &Candidate, buffer: &[u8]) -> bool {
        let (a, b) = (self.bytes(buffer), other.bytes(buffer));
        let addresses = if self.v4 { 12..20 } else { 8..40 };
        let ports = self.transport..self.transport + 4;
        self.v4 == other.v4
            && self.tcp == other.tcp
            && a[ports.clone()] == b[ports]
            && a[addresses.clone()] == b[addresses]
    }

    /// Whether the checksums are right: joining would hide that they are not. A UDP datagram
    /// without one cannot be joined.
    fn verify(&self, buffer: &[u8]) -> bool {
        let bytes = self.bytes(buffer);
        if self.v4 && Sum::default().add_bytes(&bytes[..20]).folded() != 0xffff {
            return false;
        }
        let segment = &bytes[self.transport..];
        if !self.tcp && segment[6..8] == [0, 0] {
            return false;
        }
        self.pseudo_sum(bytes, segment.len()).add_bytes(segment).folded() == 0xffff
    }

    fn pseudo_sum(&self, packet: &[u8], len: usize) -> Sum {
        let addresses = if self.v4 { &packet[12..20] } else { &packet[8..40] };
        let number = if self.tcp { protocol::TCP } else { protocol::UDP };
        Sum::default().add_bytes(addresses).add(u16::from(number)).add(low_u16(len))
    }
}

impl Flow {
    fn new(first: Candidate) -> Self {
        Flow {
            first,
            slices: [(0, 0); MAX_SEGMENTS],
            joined: 0,
            payload: first.payload,
            last_flags: first.flags,
            fixed_identification: false,
            verified: false,
        }
    }

    /// Whether the next packet differs from the first only where segments of one super-packet do.
    fn accepts(&mut self, next: &Candidate, buffer: &[u8]) -> bool {
        let first = self.first;
        let total = first.headers + self.payload + next.payload;
        if next.headers != first.headers || next.payload > first.payload || total > MAX_PACKET {
            return false;
        }
        let (a, b) = (first.bytes(buffer), next.bytes(buffer));
        if !same_network_header(a, b, first.v4) || (first.v4 && !self.identification_follows(next, a)) {
            return false;
        }
        if first.tcp && !self.tcp_follows(next, &a[first.transport..first.headers], &b[first.transport..]) {
            return false;
        }
        if !self.verified {
            if !first.verify(buffer) {
                return false;
            }
            self.verified = true;
        }
        next.verify(buffer)
    }

    /// RFC 6864 lets packets that are never fragmented carry any identification.
    fn identification_follows(&mut self, next: &Candidate, first: &[u8]) -> bool {
        let step = low_u16(self.joined + 1);
        let grows = next.identification == self.first.identification.wrapping_add(step);
        let fixed = next.identification == self.first.identification && first[6] & 0x40 != 0;
        match self.joined {
            0 => {
                self.fixed_identification = fixed;
                grows || fixed
            }
            _ if self.fixed_identification => fixed,
            _ => grows,
        }
    }

    fn tcp_follows(&self, next: &Candidate, a: &[u8], b: &[u8]) -> bool {
        let expected = u32::try_from(self.payload).map(|payload| self.first.sequence.wrapping_add(payload));
        let options = 20..a.len();
        Ok(next.sequence) == expected
            && (self.first.flags ^ next.flags) & !(FIN | PSH) == 0
            // Acknowledgement, data offset with the reserved bits, window, urgent pointer, options.
            && a[8..13] == b[8..13]
            && a[14..16] == b[14..16]
            && a[18..20] == b[18..20]
            && a[options.clone()] == b[options]
    }

    fn join(&mut self, next: &Candidate) {
        let start = u32::try_from(next.start + next.headers).unwrap_or(u32::MAX);
        let len = u32::try_from(next.payload).unwrap_or(0);
        self.slices[self.joined] = (start, len);
        self.joined += 1;
        self.payload += next.payload;
        self.last_flags = next.flags;
    }

    /// Nothing may follow a shorter segment, a push or an end.
    fn is_complete(&self) -> bool {
        let (_, last) = self.slices[self.joined - 1];
        (last as usize) < self.first.payload
            || (self.first.tcp && self.last_flags & (FIN | PSH) != 0)
            || self.joined + 1 == MAX_SEGMENTS
    }

    /// Makes the first packet's headers those of the super-packet.
    fn patch_headers(&self, buffer: &mut [u8]) -> VirtioHeader {
        let first = &self.first;
        let total = first.headers + self.payload;
        let transport_len = total - first.transport;
        let pseudo = first.pseudo_sum(&buffer[first.start..], transport_len).folded();
        let packet = &mut buffer[first.start..first.start + first.headers];
        if first.v4 {
            packet[2..4].copy_from_slice(&low_u16(total).to_be_bytes());
            packet[10..12].fill(0);
            let sum = Sum::default().add_bytes(&packet[..20]).checksum();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            packet[4..6].copy_from_slice(&low_u16(total - 40).to_be_bytes());
        }
        let transport = &mut packet[first.transport..];
        let offset = if first.tcp {
            transport[13] |= self.last_flags & (FIN | PSH);
            16
        } else {
            transport[4..6].copy_from_slice(&low_u16(transport_len).to_be_bytes());
            6
        };
        transport[offset..offset + 2].copy_from_slice(&pseudo.to_be_bytes());
        VirtioHeader {
            gso: match (first.tcp, first.v4) {
                (true, true) => Gso::TcpV4,
                (true, false) => Gso::TcpV6,
                (false, _) => Gso::Udp,
            },
            ecn: false,
            header_len: low_u16(first.headers),
            gso_size: low_u16(first.payload),
            checksum: Checksum::Partial { start: low_u16(first.transport), offset: low_u16(offset) },
        }
    }
}

/// Neither TCP nor UDP, as far as the fixed header says.
fn is_other_protocol(packet: &[u8]) -> bool {
    let v4 = packet.first().is_some_and(|first| first >> 4 == 4);
    !matches!(packet.get(if v4 { 9 } else { 6 }), Some(&(protocol::TCP | protocol::UDP | protocol::FRAGMENT)))
}

/// All of the IP header but length, identification and checksum.
fn same_network_header(a: &[u8], b: &[u8], v4: bool) -> bool {
    if v4 { a[..2] == b[..2] && a[6..10] == b[6..10] } else { a[..4] == b[..4] && a[6..8] == b[6..8] }
}

/// The low 16 bits of a length that is at most [`MAX_PACKET`].
#[expect(clippy::cast_possible_truncation, reason = "lengths were checked against MAX_PACKET")]
fn low_u16(length: usize) -> u16 {
    length as u16
}
