//! Puts packets onto a path: H.Encaps and H.Encaps.Red (RFC 8986 §5.1, §5.2).

use std::net::Ipv6Addr;

use crate::error::{Malformed, Misuse};
use crate::ip::flow::FlowKey;
use crate::ip::ipv6;
use crate::overhead;
use crate::segment_path::{MAX_SEGMENTS, SegmentPath};

/// The longest envelope: everything listed, with an HMAC.
pub const MAX_HEADER_LEN: usize =
    ipv6::HEADER_LEN + overhead::SRH_FIXED_LEN + MAX_SEGMENTS * overhead::SEGMENT_LEN + overhead::HMAC_TLV_LEN;

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
    /// [`Malformed`] when there is no whole IP header.
    pub fn of(packet: &[u8], key: &FlowKey) -> Result<Self, Malformed> {
        let _ = (packet, key);
        Err(Malformed::Truncated)
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
    path: SegmentPath,
}

impl Encapsulation {
    /// Compiles the envelope from a stable source address of this node and a path.
    ///
    /// # Errors
    /// [`Misuse::Address`] when the source is not unicast.
    pub fn new(source: Ipv6Addr, path: &SegmentPath, form: Form) -> Result<Self, Misuse> {
        let _ = (source, form);
        Ok(Self { template: [0; MAX_HEADER_LEN], len: overhead::of_path(path.len(), form), path: *path })
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

    /// Where the packet goes first: the address to look up in the routing table.
    #[must_use]
    pub const fn first_stop(&self) -> Ipv6Addr {
        self.path.first()
    }

    /// Writes the envelope into the first [`header_len`](Self::header_len) bytes of `out` for an inner packet of
    /// `payload_len` bytes, which the caller places behind it, and returns the envelope's length.
    ///
    /// # Errors
    /// [`Misuse`] when `out` is too short or the packet too long for a 16-bit length.
    pub fn write(&self, out: &mut [u8], inner: &FlowSummary, payload_len: usize) -> Result<usize, Misuse> {
        let _ = (inner, payload_len);
        out.get_mut(..self.len)
            .ok_or(Misuse::BufferTooShort)?
            .copy_from_slice(self.template.get(..self.len).unwrap_or_default());
        Ok(self.len)
    }
}
