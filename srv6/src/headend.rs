//! Puts packets onto a path: H.Encaps and H.Encaps.Red (RFC 8986 §5.1, §5.2).

use std::net::Ipv6Addr;

use crate::error::{Malformed, Misuse};
use crate::hmac::HmacKey;
use crate::ip::flow::FlowKey;
use crate::ip::{ipv6, protocol};
use crate::overhead;
use crate::segment_path::{MAX_SEGMENTS, SegmentPath};
use crate::sid::is_segment;
use crate::wire::SegmentRoutingHeader;

/// Hop limit of the envelope, the same for all (RFC 2473 §6.3): the inner packet's own is not consumed on the way.
const HOP_LIMIT: u8 = 64;

/// The longest envelope: everything listed, with an HMAC.
pub const MAX_HEADER_LEN: usize = ipv6::HEADER_LEN
    + overhead::SRH_FIXED_LEN
    + MAX_SEGMENTS * overhead::SEGMENT_LEN
    + overhead::HMAC_TLV_LEN;

/// How the segment list is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// H.Encaps.Red: the first segment stands in the destination only; a path of one stop has no SRH.
    #[default]
    Reduced,
    /// H.Encaps: the SRH lists all segments.
    Full,
}

/// What the envelope needs to know of the inner packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSummary {
    /// 4 or 41: IPv4 or IPv6 inside.
    pub next_header: u8,
    /// DSCP and ECN of the inner packet.
    pub traffic_class: u8,
    /// 20-bit label from the inner five-tuple.
    pub flow_label: u32,
}

impl FlowSummary {
    /// Summarises a packet whose key is known already.
    ///
    /// # Errors
    /// [`Malformed`] when there is no IP header.
    pub fn of(packet: &[u8], key: &FlowKey) -> Result<Self, Malformed> {
        let [first, second] = *packet.first_chunk().ok_or(Malformed::Truncated)?;
        let (next_header, traffic_class) = match first >> 4 {
            4 => (protocol::IPV4, second),
            6 => (protocol::IPV6, (first << 4) | (second >> 4)),
            _ => return Err(Malformed::Version),
        };
        Ok(Self { next_header, traffic_class, flow_label: key.flow_label() })
    }

    /// Parses and summarises a packet.
    ///
    /// # Errors
    /// [`Malformed`] as [`FlowKey::parse`].
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        Self::of(packet, &FlowKey::parse(packet)?)
    }
}

/// The envelope of one path, compiled once and patched for each packet.
#[derive(Clone)]
pub struct Encapsulation {
    template: [u8; MAX_HEADER_LEN],
    len: usize,
    /// Where the Next Header field stands that names the inner packet: in the IPv6 header or in the SRH.
    next_header_at: usize,
    path: SegmentPath,
    form: Form,
}

impl Encapsulation {
    /// Compiles the envelope from a stable source address of this node and a path.
    ///
    /// # Errors
    /// [`Misuse::Address`] when the source is not unicast.
    pub fn new(source: Ipv6Addr, path: &SegmentPath, form: Form) -> Result<Self, Misuse> {
        Self::compile(source, path, form, None)
    }

    /// As [`new`](Self::new), with an HMAC TLV that proves who wrote the segment list (RFC 8754 §2.1.2). It forces an
    /// SRH: a path of one stop lists it.
    ///
    /// The hash covers nothing that changes on the way or from packet to packet, so it is computed here once.
    ///
    /// # Errors
    /// [`Misuse::Address`] when the source is not unicast.
    pub fn with_hmac(
        source: Ipv6Addr,
        path: &SegmentPath,
        form: Form,
        key: &HmacKey,
    ) -> Result<Self, Misuse> {
        Self::compile(source, path, form, Some(key))
    }

    fn compile(
        source: Ipv6Addr,
        path: &SegmentPath,
        form: Form,
        key: Option<&HmacKey>,
    ) -> Result<Self, Misuse> {
        if !is_segment(&source) {
            return Err(Misuse::Address);
        }
        let form = if key.is_some() && path.len() == 1 { Form::Full } else { form };
        let list = segment_list(path, form);
        let mut envelope = Self {
            template: [0; MAX_HEADER_LEN],
            len: ipv6::HEADER_LEN,
            next_header_at: 6,
            path: *path,
            form,
        };
        let carries_srh = !list.is_empty();
        if carries_srh {
            //= RFC 8986 §5.1 S04, §5.2
            // Segments Left counts all stops but the first, whether the first is listed or not.
            let segments_left = u8::try_from(path.len() - 1).map_err(|_| Misuse::PathTooLong)?;
            let mut srh = SegmentRoutingHeader::new(0, segments_left, &list)?;
            if let Some(key) = key {
                key.sign(source, &mut srh);
            }
            envelope.len += srh.emit(&mut envelope.template[ipv6::HEADER_LEN..])?;
            envelope.next_header_at = ipv6::HEADER_LEN;
        }
        envelope.template[..ipv6::HEADER_LEN].copy_from_slice(
            &ipv6::Header {
                traffic_class: 0,
                flow_label: 0,
                payload_len: 0,
                next_header: if carries_srh { protocol::ROUTING } else { 0 },
                hop_limit: HOP_LIMIT,
                source,
                destination: path.first(),
            }
            .to_octets(),
        );
        Ok(envelope)
    }

    /// Bytes that the envelope adds in front of a packet.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.len
    }

    /// The path that the envelope was compiled from.
    #[must_use]
    pub const fn path(&self) -> &SegmentPath {
        &self.path
    }

    /// How the segment list is written.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Where the packet goes first: the address to look up in the routing table.
    #[must_use]
    pub const fn first_stop(&self) -> Ipv6Addr {
        self.path.first()
    }

    /// Writes the envelope into the first [`header_len`](Self::header_len) bytes of `out` for an inner packet of
    /// `payload_len` bytes, which the caller places behind it, and returns the envelope's length.
    ///
    //= RFC 8986 §5.1, RFC 6040 §4.1 (normal mode), RFC 2983 §3.2
    /// DSCP and ECN are copied from the inner packet; the hop limit is a constant.
    ///
    /// # Errors
    /// [`Misuse`] when `out` is too short or the packet too long for a 16-bit length.
    pub fn write(&self, out: &mut [u8], inner: &FlowSummary, payload_len: usize) -> Result<usize, Misuse> {
        let length = u16::try_from(self.len - ipv6::HEADER_LEN + payload_len).map_err(|_| Misuse::TooLong)?;
        let header = out.get_mut(..self.len).ok_or(Misuse::BufferTooShort)?;
        header.copy_from_slice(&self.template[..self.len]);
        header[..4].copy_from_slice(&ipv6::first_word(inner.traffic_class, inner.flow_label).to_be_bytes());
        header[4..6].copy_from_slice(&length.to_be_bytes());
        header[self.next_header_at] = inner.next_header;
        Ok(self.len)
    }
}

impl std::fmt::Debug for Encapsulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encapsulation")
            .field("path", &self.path)
            .field("form", &self.form)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// The segments that the SRH lists, in its order: the last stop first. Empty means no SRH at all.
fn segment_list(path: &SegmentPath, form: Form) -> Vec<Ipv6Addr> {
    let unlisted = match form {
        Form::Reduced => 1,
        Form::Full => 0,
    };
    path.as_slice().iter().skip(unlisted).rev().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SrhView;

    fn sid(node: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd5d, 0xac, 0, node, 0, 0, 0, 0xe)
    }

    fn envelope(stops: &[u16], form: Form) -> Vec<u8> {
        let path = SegmentPath::new(&stops.iter().map(|stop| sid(*stop)).collect::<Vec<_>>()).unwrap();
        let encapsulation = Encapsulation::new(sid(0xa), &path, form).unwrap();
        let mut out = [0xaa; MAX_HEADER_LEN];
        let inner = FlowSummary { next_header: 4, traffic_class: 0b1011_1001, flow_label: 0x1_2345 };
        let len = encapsulation.write(&mut out, &inner, 1000).unwrap();
        assert_eq!(len, overhead::of_path(stops.len(), form));
        assert!(out[len..].iter().all(|octet| *octet == 0xaa), "wrote beyond its length");
        out[..len].to_vec()
    }

    #[test]
    fn journey_with_a_repeat_reduced() {
        let bytes = envelope(&[0xb, 0xc, 0xb, 0xd], Form::Reduced);
        assert_eq!(bytes.len(), 40 + 8 + 3 * 16);
        assert_eq!(bytes[..8], [0x6b, 0x91, 0x23, 0x45, 0x04, 0x20, 43, 64]);
        assert_eq!(bytes[24..40], sid(0xb).octets());
        let srh = SrhView::parse(&bytes[40..]).unwrap();
        assert_eq!((srh.next_header(), srh.last_entry(), srh.segments_left()), (4, 2, 3));
        assert!(srh.segments().eq([sid(0xd), sid(0xb), sid(0xc)]));
        assert!(srh.is_consistent());
    }

    #[test]
    fn journey_in_full() {
        let bytes = envelope(&[0xb, 0xc, 0xb, 0xd], Form::Full);
        let srh = SrhView::parse(&bytes[40..]).unwrap();
        assert_eq!((srh.hdr_ext_len(), srh.last_entry(), srh.segments_left()), (8, 3, 3));
        assert!(srh.segments().eq([sid(0xd), sid(0xb), sid(0xc), sid(0xb)]));
    }

    #[test]
    fn one_stop_needs_no_routing_header() {
        let bytes = envelope(&[0xd], Form::Reduced);
        assert_eq!((bytes.len(), bytes[6]), (40, 4));
        assert_eq!(envelope(&[0xd], Form::Full).len(), 40 + 8 + 16);
    }

    #[test]
    fn lengths_beyond_16_bits_are_refused() {
        let path = SegmentPath::new(&[sid(1), sid(2)]).unwrap();
        let encapsulation = Encapsulation::new(sid(9), &path, Form::Reduced).unwrap();
        let inner = FlowSummary { next_header: 41, traffic_class: 0, flow_label: 1 };
        let mut out = [0; MAX_HEADER_LEN];
        assert!(encapsulation.write(&mut out, &inner, 65_535 - 24).is_ok());
        assert_eq!(encapsulation.write(&mut out, &inner, 65_535 - 23), Err(Misuse::TooLong));
        assert_eq!(encapsulation.write(&mut out[..63], &inner, 0), Err(Misuse::BufferTooShort));
    }

    #[test]
    fn the_source_must_be_an_address_of_a_node() {
        let path = SegmentPath::new(&[sid(1)]).unwrap();
        let unset = Encapsulation::new(Ipv6Addr::UNSPECIFIED, &path, Form::Reduced);
        assert_eq!(unset.unwrap_err(), Misuse::Address);
    }
}
