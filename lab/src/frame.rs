//! An Ethernet frame as a TAP device passes it: a virtio header, then the frame, which may be a super-frame.
//!
//! A super-frame is a train of TCP segments or UDP datagrams that the kernel has not cut up yet: one set of headers
//! and up to 64 KiB of payload, to be cut every `gso_size` bytes. It passes whole where nothing asks for the single
//! frames, and is cut here where something does: a capture, or a link that loses frames.
#![expect(
    clippy::cast_possible_truncation,
    reason = "checksums and positions are taken modulo their width; frames are shorter than 64 KiB"
)]

/// Length of the virtio header (`struct virtio_net_hdr`), before every frame; in host byte order.
pub(crate) const VIRTIO_LENGTH: usize = 10;

const ETHERNET_LENGTH: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const NEEDS_CHECKSUM: u8 = 1;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// A frame and where its parts are. Offsets count from the start of the Ethernet header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    virtio: &'a [u8; VIRTIO_LENGTH],
    ethernet: &'a [u8],
    transport: Option<Transport>,
}

#[derive(Debug, Clone, Copy)]
struct Transport {
    protocol: u8,
    offset: usize,
    is_ipv4: bool,
}

impl<'a> Frame<'a> {
    /// Looks at a frame behind its virtio header; `None` if it is too short to be one.
    pub(crate) fn parse(raw: &'a [u8]) -> Option<Self> {
        let (virtio, ethernet) = raw.split_first_chunk()?;
        if ethernet.len() < ETHERNET_LENGTH {
            return None;
        }
        let transport = find_transport(ethernet);
        Some(Self { virtio, ethernet, transport })
    }

    pub(crate) fn destination(&self) -> [u8; 6] {
        array(self.ethernet, 0)
    }

    pub(crate) fn source(&self) -> [u8; 6] {
        array(self.ethernet, 6)
    }

    /// Length with the Ethernet header; of a super-frame, as the kernel passes it.
    pub(crate) fn length(&self) -> usize {
        self.ethernet.len()
    }

    /// ARP and neighbour discovery: on a real path the next router answers these, not the far end.
    pub(crate) fn is_resolution(&self) -> bool {
        if u16::from_be_bytes(array(self.ethernet, 12)) == ETHERTYPE_ARP {
            return true;
        }
        let kind = self.transport.filter(|transport| transport.protocol == ICMPV6);
        kind.and_then(|transport| self.ethernet.get(transport.offset))
            .is_some_and(|kind| (133..=136).contains(kind))
    }

    /// The frames that this one stands for: itself, or the parts of a super-frame.
    pub(crate) fn count(&self) -> usize {
        self.train().map_or(1, |train| train.count())
    }

    /// Bytes on a real wire, Ethernet headers included.
    pub(crate) fn wire_bytes(&self) -> usize {
        self.train().map_or(self.length(), |train| train.payload + train.count() * train.headers)
    }

    /// Lengths of the frames that this one stands for, and the UDP payload in each.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = (usize, Option<usize>)> + use<> {
        let train = self.train().unwrap_or(Train { headers: 0, payload: self.length(), step: self.length() });
        let udp = self.transport.filter(|transport| transport.protocol == UDP);
        let before_payload = udp.map(|transport| transport.offset + UDP_HEADER);
        (0..train.count()).map(move |index| {
            let length = train.headers + train.part(index).len();
            (length, before_payload.and_then(|before| length.checked_sub(before)))
        })
    }

    /// Cuts a super-frame up; each part has a virtio header that asks for nothing, and all its checksums. A frame that
    /// is none is the only part.
    pub(crate) fn split(&self) -> Vec<Vec<u8>> {
        match (self.train(), self.transport) {
            (Some(train), Some(transport)) => {
                (0..train.count()).map(|index| self.part(train, transport, index)).collect()
            }
            _ => vec![self.with_checksum()],
        }
    }

    /// How to cut this frame, if it is a super-frame that we know how to cut.
    fn train(&self) -> Option<Train> {
        let step = usize::from(u16::from_ne_bytes(array(self.virtio, 4)));
        let transport = self.transport?;
        if self.virtio[1] == 0 || step == 0 {
            return None;
        }
        let transport_header = match transport.protocol {
            TCP => usize::from(self.ethernet.get(transport.offset + 12)? >> 4) * 4,
            UDP => UDP_HEADER,
            _ => return None,
        };
        if transport.protocol == TCP && transport_header < TCP_HEADER {
            return None;
        }
        let headers = transport.offset + transport_header;
        let payload = self.ethernet.len().checked_sub(headers).filter(|payload| *payload > 0)?;
        Some(Train { headers, payload, step })
    }

    fn part(&self, train: Train, transport: Transport, index: usize) -> Vec<u8> {
        let range = train.part(index);
        let mut part = vec![0; VIRTIO_LENGTH];
        part.extend_from_slice(&self.ethernet[..train.headers]);
        part.extend_from_slice(&self.ethernet[train.headers + range.start..train.headers + range.end]);
        let ethernet = &mut part[VIRTIO_LENGTH..];
        patch_ip(ethernet, transport, index);
        if transport.protocol == TCP {
            patch_tcp(ethernet, transport.offset, range.start, index == 0, index + 1 == train.count());
        } else {
            let length = (range.len() + UDP_HEADER) as u16;
            ethernet[transport.offset + 4..transport.offset + 6].copy_from_slice(&length.to_be_bytes());
        }
        write_transport_checksum(ethernet, transport);
        part
    }

    /// A copy whose checksum is complete; the kernel leaves it half done for hardware that isn't there.
    fn with_checksum(&self) -> Vec<u8> {
        let mut copy = vec![0; VIRTIO_LENGTH];
        copy.extend_from_slice(self.ethernet);
        let start = usize::from(u16::from_ne_bytes(array(self.virtio, 6)));
        let field = start + usize::from(u16::from_ne_bytes(array(self.virtio, 8)));
        let ethernet = &mut copy[VIRTIO_LENGTH..];
        if self.virtio[0] & NEEDS_CHECKSUM != 0 && field + 2 <= ethernet.len() {
            // The field holds the sum over the pseudo header already.
            let is_udp = self.transport.is_some_and(|transport| transport.protocol == UDP);
            let sum = finish(sum(&ethernet[start..], 0), is_udp);
            ethernet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        }
        copy
    }
}

/// Headers of so many bytes, then payload to be cut at every step.
#[derive(Debug, Clone, Copy)]
struct Train {
    headers: usize,
    payload: usize,
    step: usize,
}

impl Train {
    fn count(&self) -> usize {
        self.payload.div_ceil(self.step.max(1))
    }

    /// Which bytes of the payload the numbered part carries.
    fn part(&self, index: usize) -> std::ops::Range<usize> {
        let start = index * self.step;
        start..(start + self.step).min(self.payload)
    }
}

fn find_transport(ethernet: &[u8]) -> Option<Transport> {
    match u16::from_be_bytes(array(ethernet, 12)) {
        ETHERTYPE_IPV4 => {
            let ip = ethernet.get(ETHERNET_LENGTH..).filter(|ip| ip.len() >= 20)?;
            let later_fragment = u16::from_be_bytes(array(ip, 6)) & 0x1fff != 0;
            let header = usize::from(ip[0] & 0x0f) * 4;
            let offset = ETHERNET_LENGTH + header;
            (!later_fragment && header >= 20).then_some(Transport { protocol: ip[9], offset, is_ipv4: true })
        }
        ETHERTYPE_IPV6 => {
            let ip = ethernet.get(ETHERNET_LENGTH..).filter(|ip| ip.len() >= 40)?;
            Some(Transport { protocol: ip[6], offset: ETHERNET_LENGTH + 40, is_ipv4: false })
        }
        _ => None,
    }
}

/// Length, and for IPv4 identification and checksum, of the numbered part of a train.
fn patch_ip(ethernet: &mut [u8], transport: Transport, index: usize) {
    let ip = &mut ethernet[ETHERNET_LENGTH..];
    if transport.is_ipv4 {
        let length = ip.len() as u16;
        let identification = u16::from_be_bytes(array(ip, 4)).wrapping_add(index as u16);
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        ip[10..12].fill(0);
        let header = transport.offset - ETHERNET_LENGTH;
        let checksum = finish(sum(&ip[..header], 0), false);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        let length = (ip.len() - 40) as u16;
        ip[4..6].copy_from_slice(&length.to_be_bytes());
    }
}

/// Sequence number and flags: FIN and PSH belong to the last part, CWR to the first.
fn patch_tcp(ethernet: &mut [u8], offset: usize, position: usize, first: bool, last: bool) {
    let tcp = &mut ethernet[offset..];
    let sequence = u32::from_be_bytes(array(tcp, 4)).wrapping_add(position as u32);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    if !last {
        tcp[13] &= !0x09;
    }
    if !first {
        tcp[13] &= !0x80;
    }
}

fn write_transport_checksum(ethernet: &mut [u8], transport: Transport) {
    let field = transport.offset + if transport.protocol == TCP { 16 } else { 6 };
    ethernet[field..field + 2].fill(0);
    let length = ethernet.len() - transport.offset;
    let addresses = if transport.is_ipv4 { 26..34 } else { 22..54 };
    let pseudo = sum(&ethernet[addresses], length as u64 + u64::from(transport.protocol));
    let total = finish(sum(&ethernet[transport.offset..], pseudo), transport.protocol == UDP);
    ethernet[field..field + 2].copy_from_slice(&total.to_be_bytes());
}

/// The sum of 16-bit words, not folded yet (RFC 1071).
pub(crate) fn sum(bytes: &[u8], start: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let odd = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    words.iter().fold(start + odd, |total, word| total + u64::from(u16::from_be_bytes(*word)))
}

/// Folds and complements; UDP sends 0xffff for zero, which would mean "no checksum" (RFC 768).
pub(crate) fn finish(mut sum: u64, is_udp: bool) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 if is_udp => 0xffff,
        checksum => checksum,
    }
}

/// A fixed number of bytes at an offset that the caller knows to be inside.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Frame, VIRTIO_LENGTH, finish, sum};

    /// A UDP super-frame over IPv4: `payload` bytes, to be cut every `step`.
    pub(crate) fn udp_train(to: u8, from: u8, payload: usize, step: u16) -> Vec<u8> {
        let mut raw = vec![0; VIRTIO_LENGTH];
        if step > 0 {
            raw[0] = 1;
            raw[1] = 5;
            raw[4..6].copy_from_slice(&step.to_ne_bytes());
            raw[6..8].copy_from_slice(&34u16.to_ne_bytes());
            raw[8..10].copy_from_slice(&6u16.to_ne_bytes());
        }
        raw.extend([2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0]);
        let total = (28 + payload) as u16;
        raw.extend([0x45, 0, (total >> 8) as u8, total as u8, 0, 9, 0x40, 0, 64, 17, 0, 0]);
        raw.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x11, 0x94, 0x11, 0x94]);
        let length = (8 + payload) as u16;
        raw.extend([(length >> 8) as u8, length as u8, 0, 0]);
        raw.extend((0..payload).map(|index| index as u8));
        raw
    }

    fn verify_udp(part: &[u8]) {
        let ip = &part[VIRTIO_LENGTH + 14..];
        assert_eq!(finish(sum(&ip[..20], 0), false), 0, "IPv4 checksum");
        let udp = &ip[20..];
        assert_eq!(finish(sum(udp, sum(&ip[12..20], 17 + udp.len() as u64)), false), 0, "UDP checksum");
        assert_eq!(usize::from(u16::from_be_bytes([udp[4], udp[5]])), udp.len());
    }

    #[test]
    fn a_train_is_cut_into_valid_datagrams() {
        let raw = udp_train(2, 1, 2500, 1000);
        let frame = Frame::parse(&raw).unwrap();
        assert_eq!((frame.count(), frame.wire_bytes()), (3, 2500 + 3 * 42));
        let lengths: Vec<_> = frame.lengths().collect();
        assert_eq!(lengths, [(1042, Some(1000)), (1042, Some(1000)), (542, Some(500))]);
        let parts = frame.split();
        parts.iter().for_each(|part| verify_udp(part));
        let payload: Vec<u8> = parts.iter().flat_map(|part| part[VIRTIO_LENGTH + 42..].to_vec()).collect();
        assert_eq!(payload, raw[VIRTIO_LENGTH + 42..]);
    }

    #[test]
    fn a_single_frame_gets_its_checksum() {
        let mut raw = udp_train(2, 1, 100, 0);
        raw[0] = 1;
        raw[6..8].copy_from_slice(&34u16.to_ne_bytes());
        raw[8..10].copy_from_slice(&6u16.to_ne_bytes());
        let ip = VIRTIO_LENGTH + 14;
        let header = finish(sum(&raw[ip..ip + 20], 0), false);
        raw[ip + 10..ip + 12].copy_from_slice(&header.to_be_bytes());
        let pseudo = !finish(sum(&raw[ip + 12..ip + 20], 17 + 108), false);
        raw[ip + 26..ip + 28].copy_from_slice(&pseudo.to_be_bytes());
        let parts = Frame::parse(&raw).unwrap().split();
        assert_eq!(parts.len(), 1);
        verify_udp(&parts[0]);
    }

    #[test]
    fn short_frames_are_refused_and_odd_ones_pass_uncut() {
        assert!(Frame::parse(&[0; 20]).is_none());
        let raw = [0xff; 40];
        let frame = Frame::parse(&raw).unwrap();
        assert_eq!((frame.count(), frame.length(), frame.is_resolution()), (1, 30, false));
    }
}
