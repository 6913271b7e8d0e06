//! A packet from the TUN, cut into segments while it is copied.
//!
//! The kernel hands over TCP and UDP in super-packets of up to 64 KiB. What the segments share is
//! summed once; each segment is then one copy of the headers, one copy of its payload, and a few
//! patched fields.

use super::DropReason;
use super::sum::Sum;
use super::virtio::{Checksum, Gso, VirtioHeader};
use srv6::ip::protocol;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// One packet or super-packet, validated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuperPacket<'a> {
    packet: &'a [u8],
    cut: Cut,
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    /// A single packet, sent as it is.
    Whole,
    /// A single packet whose transport checksum is to be completed: start and position of the field.
    Complete { start: usize, field: usize },
    /// Many segments.
    Segments(Segments),
}

#[derive(Debug, Clone, Copy)]
struct Segments {
    /// Where the transport header begins.
    transport: usize,
    /// Octets of all headers.
    headers: usize,
    /// Payload octets of each segment but the last.
    size: usize,
    count: usize,
    /// The IPv4 header without length, identification and checksum; not used for IPv6.
    network_sum: Sum,
    /// Pseudo-header without the length, and of the transport header what never changes.
    transport_sum: Sum,
    tcp: bool,
}

impl<'a> SuperPacket<'a> {
    /// A single packet that is complete.
    pub(crate) fn plain(packet: &'a [u8]) -> Self {
        SuperPacket { packet, cut: Cut::Whole }
    }

    /// Checks that the offload header fits the packet.
    pub(crate) fn parse(header: &VirtioHeader, packet: &'a [u8]) -> Result<Self, DropReason> {
        let cut = match header.gso {
            Gso::None => match header.checksum {
                Checksum::Partial { start, offset } => completion(packet, start, offset)?,
                Checksum::Complete | Checksum::Valid => Cut::Whole,
            },
            Gso::TcpV4 | Gso::TcpV6 | Gso::Udp => Cut::Segments(segments(header, packet)?),
        };
        Ok(SuperPacket { packet, cut })
    }

    /// How many segments there are: at least 1.
    pub(crate) fn count(&self) -> usize {
        match &self.cut {
            Cut::Whole | Cut::Complete { .. } => 1,
            Cut::Segments(segments) => segments.count,
        }
    }

    /// Octets of segment `index`.
    pub(crate) fn segment_len(&self, index: usize) -> usize {
        match &self.cut {
            Cut::Whole | Cut::Complete { .. } => self.packet.len(),
            Cut::Segments(segments) => {
                let payload = self.packet.len() - segments.headers;
                segments.headers + payload.saturating_sub(index * segments.size).min(segments.size)
            }
        }
    }

    /// Writes segment `index` into the first [`segment_len`](Self::segment_len) octets of `out`,
    /// which must be that long.
    #[inline]
    pub(crate) fn write(&self, index: usize, out: &mut [u8]) {
        match &self.cut {
            Cut::Whole => out.copy_from_slice(self.packet),
            Cut::Complete { start, field } => {
                out.copy_from_slice(self.packet);
                // The field holds the pseudo-header's sum and is covered as it stands.
                let sum = Sum::default().add_bytes(&out[*start..]).checksum();
                let udp = field - start == 6;
                put_u16(out, *field, if udp { never_zero(sum) } else { sum });
            }
            Cut::Segments(segments) => segments.write(self.packet, index, out),
        }
    }
}

impl Segments {
    #[inline]
    fn write(&self, packet: &[u8], index: usize, out: &mut [u8]) {
        let from = self.headers + index * self.size;
        let (head, body) = out.split_at_mut(self.headers);
        head.copy_from_slice(&packet[..self.headers]);
        body.copy_from_slice(&packet[from..from + body.len()]);
        let total = self.headers + body.len();
        if packet[0] >> 4 == 4 {
            self.patch_v4(head, index, total);
        } else {
            put_u16(head, 4, low_u16(total - 40));
        }
        let transport_len = total - self.transport;
        if self.tcp {
            self.patch_tcp(head, body, index, transport_len);
        } else {
            self.patch_udp(head, body, transport_len);
        }
    }

    fn patch_v4(&self, head: &mut [u8], index: usize, total: usize) {
        let length = low_u16(total);
        let identification = u16::from_be_bytes([head[4], head[5]]).wrapping_add(low_u16(index));
        put_u16(head, 2, length);
        put_u16(head, 4, identification);
        put_u16(head, 10, self.network_sum.add(length).add(identification).checksum());
    }

    #[inline]
    fn patch_tcp(&self, head: &mut [u8], body: &[u8], index: usize, transport_len: usize) {
        let tcp = &mut head[self.transport..];
        let offset = u32::try_from(index * self.size).unwrap_or(0);
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(offset);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if index + 1 != self.count {
            tcp[13] &= !(TCP_FIN | TCP_PSH);
        }
        if index != 0 {
            tcp[13] &= !TCP_CWR;
        }
        let flags = u16::from_be_bytes([tcp[12], tcp[13]]);
        let sum = self.transport_sum.add_u32(sequence).add(flags).add(low_u16(transport_len)).add_bytes(body);
        put_u16(tcp, 16, sum.checksum());
    }

    #[inline]
    fn patch_udp(&self, head: &mut [u8], body: &[u8], transport_len: usize) {
        let udp = &mut head[self.transport..];
        let length = low_u16(transport_len);
        put_u16(udp, 4, length);
        let sum = self.transport_sum.add(length).add(length).add_bytes(body);
        put_u16(udp, 6, never_zero(sum.checksum()));
    }
}

/// Where the checksum of a single packet is completed.
fn completion(packet: &[u8], start: u16, offset: u16) -> Result<Cut, DropReason> {
    let start = usize::from(start);
    let field = start + usize::from(offset);
    let minimum = if packet.first().is_some_and(|first| first >> 4 == 4) { 20 } else { 40 };
    if start < minimum || field + 2 > packet.len() {
        return Err(DropReason::BadOffload);
    }
    Ok(Cut::Complete { start, field })
}

/// Sums up what all segments share.
fn segments(header: &VirtioHeader, packet: &[u8]) -> Result<Segments, DropReason> {
    let Checksum::Partial { start, .. } = header.checksum else { return Err(DropReason::BadOffload) };
    let transport = usize::from(start);
    let size = usize::from(header.gso_size);
    let tcp = header.gso != Gso::Udp;
    let headers = transport_end(header.gso, packet, transport).ok_or(DropReason::BadOffload)?;
    if size == 0 || headers > packet.len() || packet.len() > usize::from(u16::MAX) {
        return Err(DropReason::BadOffload);
    }
    let count = (packet.len() - headers).div_ceil(size).max(1);
    let v4 = packet[0] >> 4 == 4;
    let network_sum = if v4 {
        Sum::default().add_bytes(&packet[..2]).add_bytes(&packet[6..10]).add_bytes(&packet[12..transport])
    } else {
        Sum::default()
    };
    let addresses = if v4 { &packet[12..20] } else { &packet[8..40] };
    let shared = &packet[transport..headers];
    let pseudo = Sum::default().add_bytes(addresses);
    let transport_sum = if tcp {
        // All but sequence number, flags and checksum.
        let rest = pseudo.add_bytes(&shared[..4]).add_bytes(&shared[8..12]).add_bytes(&shared[14..16]);
        rest.add_bytes(&shared[18..]).add(u16::from(protocol::TCP))
    } else {
        pseudo.add_bytes(&shared[..4]).add(u16::from(protocol::UDP))
    };
    Ok(Segments { transport, headers, size, count, network_sum, transport_sum, tcp })
}

/// Where the payload begins, if the packet is what the offload header says.
fn transport_end(gso: Gso, packet: &[u8], transport: usize) -> Option<usize> {
    let version = packet.first()? >> 4;
    let fits = match (gso, version) {
        (Gso::TcpV4, 4) => transport >= 20 && *packet.get(9)? == protocol::TCP,
        (Gso::Udp, 4) => transport >= 20 && *packet.get(9)? == protocol::UDP,
        (Gso::TcpV6 | Gso::Udp, 6) => transport >= 40,
        _ => false,
    };
    if !fits || !transport.is_multiple_of(2) {
        return None;
    }
    if gso == Gso::Udp {
        return packet.get(transport..transport + 8).map(|_| transport + 8);
    }
    let length = usize::from(packet.get(transport + 12)? >> 4) * 4;
    (length >= 20).then_some(transport + length)
}

//= RFC 768
// A computed zero is sent as all ones: zero would mean that there is no checksum.
#[inline]
fn never_zero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

#[inline]
fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The low 16 bits of a length that was checked to have no others.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "lengths were checked against u16::MAX")]
fn low_u16(length: usize) -> u16 {
    length as u16
}
