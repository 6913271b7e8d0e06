//! The segment routing header (RFC 8754 §2).
//!
//! ```text
//! |  Next Header  |  Hdr Ext Len  | Routing Type 4| Segments Left |
//! |  Last Entry   |     Flags     |              Tag              |
//! |            Segment List[0], the last one, 16 octets           |
//! |            …                                                  |
//! |            Segment List[Last Entry]                           |
//! |            TLVs                                               |
//! ```

use std::net::Ipv6Addr;

use super::tlv::{HMAC_LEN, Hmac, HmacTlv, Tlv, Tlvs};
use crate::error::{Malformed, Misuse};
use crate::segment_path::MAX_SEGMENTS;

/// Routing type of the header.
pub const ROUTING_TYPE: u8 = 4;
/// Bytes in front of the segment list.
pub const FIXED_LEN: usize = 8;
/// Offset of Routing Type in the header.
pub const ROUTING_TYPE_AT: usize = 2;
/// Offset of Segments Left in the header.
pub const SEGMENTS_LEFT_AT: usize = 3;
/// The flag by which Linux announces an HMAC TLV. RFC 8754 leaves the bit unassigned.
pub const FLAG_HMAC: u8 = 0x08;

/// A view of a routing header of type 4 whose length is that of its bytes.
///
/// Last Entry and Segments Left are not yet checked against the length: a node where the path ended must not look
/// at them (RFC 8986 §4.1 S02). [`is_consistent`](Self::is_consistent) checks them.
#[derive(Debug, Clone, Copy)]
pub struct SrhView<'a> {
    fixed: &'a [u8; FIXED_LEN],
    rest: &'a [u8],
}

impl<'a> SrhView<'a> {
    /// Checks that the bytes are one whole routing header of type 4 and nothing more.
    ///
    /// # Errors
    /// [`Malformed::SegmentRoutingHeader`] when they are not.
    pub fn parse(header: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, rest) = header.split_first_chunk::<FIXED_LEN>().ok_or(Malformed::SegmentRoutingHeader)?;
        let claimed = usize::from(fixed[1]) << 3;
        if fixed[ROUTING_TYPE_AT] != ROUTING_TYPE || claimed != rest.len() {
            return Err(Malformed::SegmentRoutingHeader);
        }
        Ok(Self { fixed, rest })
    }

    /// What follows the header.
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        self.fixed[0]
    }

    /// Length in units of 8 bytes, without the first 8.
    #[must_use]
    pub const fn hdr_ext_len(&self) -> u8 {
        self.fixed[1]
    }

    /// Bytes of the whole header.
    #[must_use]
    pub const fn len(&self) -> usize {
        FIXED_LEN.saturating_add(self.rest.len())
    }

    /// Never: the header has at least its fixed part.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// How many segments are still to be visited; the index of the current one.
    #[must_use]
    pub const fn segments_left(&self) -> u8 {
        self.fixed[SEGMENTS_LEFT_AT]
    }

    /// Index of the last element of the segment list, which is the first one that is visited.
    #[must_use]
    pub const fn last_entry(&self) -> u8 {
        self.fixed[4]
    }

    /// Flags; none is assigned but O (RFC 9259), which is ignored here.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.fixed[5]
    }

    /// Tag: marks a class of packets, ignored here.
    #[must_use]
    pub const fn tag(&self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }

    //= RFC 8986 §4.1 S08 to S09
    /// Whether Last Entry fits the length and Segments Left fits Last Entry, a reduced list included.
    #[must_use]
    pub const fn is_consistent(&self) -> bool {
        let segments = (self.hdr_ext_len() / 2) as u16;
        let last_entry = self.last_entry() as u16;
        last_entry < segments && self.segments_left() as u16 <= last_entry.saturating_add(1)
    }

    /// Segment List\[`index`\], if the header is long enough.
    #[must_use]
    pub fn segment(&self, index: u8) -> Option<Ipv6Addr> {
        let at = usize::from(index) << 4;
        self.rest.get(at..)?.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets))
    }

    /// The bytes of the segment list, if Last Entry fits the length.
    #[must_use]
    pub fn segment_list(&self) -> Option<&'a [u8]> {
        self.rest.get(..usize::from(self.last_entry()).saturating_add(1) << 4)
    }

    /// The segments in the order of the list, which is the reverse of the journey. Empty when Last Entry does not
    /// fit the length.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = Ipv6Addr> + 'a {
        let (chunks, _) = self.segment_list().unwrap_or_default().as_chunks::<16>();
        chunks.iter().map(|octets| Ipv6Addr::from(*octets))
    }

    /// The first HMAC TLV and its offset in the header.
    ///
    /// # Errors
    /// [`Malformed::Tlv`] when a TLV in front of it ends beyond the header.
    pub fn hmac(&self) -> Result<Option<(usize, Hmac<'a>)>, Malformed> {
        let mut tlvs = self.tlvs();
        loop {
            let at = self.len().saturating_sub(tlvs.remaining());
            match tlvs.next().transpose()? {
                None => return Ok(None),
                Some(Tlv::Hmac(hmac)) => return Ok(Some((at, hmac))),
                Some(Tlv::Pad1 | Tlv::PadN(_) | Tlv::Other { .. }) => {}
            }
        }
    }

    /// The TLVs behind the segment list.
    #[must_use]
    pub fn tlvs(&self) -> Tlvs<'a> {
        let list_len = usize::from(self.last_entry()).saturating_add(1) << 4;
        Tlvs::new(self.rest.get(list_len..).unwrap_or_default())
    }
}

/// The values of a segment routing header, to be written or compared. It holds its segments without allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentRoutingHeader {
    /// What follows the header.
    pub next_header: u8,
    /// Index of the current segment.
    pub segments_left: u8,
    /// Flags.
    pub flags: u8,
    /// Tag.
    pub tag: u16,
    /// A keyed hash behind the list.
    pub hmac: Option<HmacTlv>,
    segments: [Ipv6Addr; MAX_SEGMENTS],
    listed: u8,
}

impl SegmentRoutingHeader {
    /// Starts a header with the segment list in the order of the header: the last stop first.
    ///
    /// # Errors
    /// [`Misuse`] when the list is empty or has more than [`MAX_SEGMENTS`] elements.
    pub fn new(next_header: u8, segments_left: u8, list: &[Ipv6Addr]) -> Result<Self, Misuse> {
        if list.is_empty() {
            return Err(Misuse::EmptyPath);
        }
        let mut segments = [Ipv6Addr::UNSPECIFIED; MAX_SEGMENTS];
        segments.get_mut(..list.len()).ok_or(Misuse::PathTooLong)?.copy_from_slice(list);
        let listed = u8::try_from(list.len()).map_err(|_| Misuse::PathTooLong)?;
        Ok(Self { next_header, segments_left, flags: 0, tag: 0, hmac: None, segments, listed })
    }

    /// Reads a header strictly: Last Entry and Segments Left consistent, TLVs whole, padding aside nothing but an
    /// HMAC of 32 bytes, and no more segments than we ever send.
    ///
    /// # Errors
    /// [`Malformed`] when one of these is not so.
    pub fn parse(view: &SrhView<'_>) -> Result<Self, Malformed> {
        if !view.is_consistent() {
            return Err(Malformed::SegmentRoutingHeader);
        }
        let mut segments = [Ipv6Addr::UNSPECIFIED; MAX_SEGMENTS];
        let listed = view.last_entry().checked_add(1).ok_or(Malformed::SegmentRoutingHeader)?;
        let room = segments.get_mut(..usize::from(listed)).ok_or(Malformed::SegmentRoutingHeader)?;
        for (to, from) in room.iter_mut().zip(view.segments()) {
            *to = from;
        }
        Ok(Self {
            next_header: view.next_header(),
            segments_left: view.segments_left(),
            flags: view.flags(),
            tag: view.tag(),
            hmac: only_hmac(view)?,
            segments,
            listed,
        })
    }

    /// The segment list in the order of the header: the last stop first.
    #[must_use]
    pub fn segments(&self) -> &[Ipv6Addr] {
        self.segments.get(..usize::from(self.listed)).unwrap_or_default()
    }

    /// Bytes that [`emit`](Self::emit) writes. Always a multiple of 8, so no padding is ever needed.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let hmac = if self.hmac.is_some() { HMAC_LEN } else { 0 };
        FIXED_LEN.saturating_add(usize::from(self.listed) << 4).saturating_add(hmac)
    }

    /// Writes the header and returns its length. All bytes of it are written.
    ///
    /// # Errors
    /// [`Misuse::BufferTooShort`].
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Misuse> {
        let len = self.encoded_len();
        let header = out.get_mut(..len).ok_or(Misuse::BufferTooShort)?;
        let (fixed, rest) = header.split_first_chunk_mut::<FIXED_LEN>().ok_or(Misuse::BufferTooShort)?;
        let units = u8::try_from(rest.len() >> 3).map_err(|_| Misuse::PathTooLong)?;
        let [tag_high, tag_low] = self.tag.to_be_bytes();
        *fixed = [
            self.next_header,
            units,
            ROUTING_TYPE,
            self.segments_left,
            self.listed.saturating_sub(1),
            self.flags,
            tag_high,
            tag_low,
        ];
        let (list, tlvs) =
            rest.split_at_mut_checked(usize::from(self.listed) << 4).ok_or(Misuse::BufferTooShort)?;
        for (to, segment) in list.as_chunks_mut::<16>().0.iter_mut().zip(self.segments()) {
            *to = segment.octets();
        }
        if let Some(hmac) = self.hmac {
            tlvs.copy_from_slice(&hmac.to_octets());
        }
        Ok(len)
    }
}

fn only_hmac(view: &SrhView<'_>) -> Result<Option<HmacTlv>, Malformed> {
    let mut found = None;
    for tlv in view.tlvs() {
        match tlv? {
            Tlv::Pad1 | Tlv::PadN(_) => {}
            Tlv::Hmac(hmac) if found.is_none() => {
                let digest = hmac.digest.try_into().map_err(|_| Malformed::Tlv)?;
                found = Some(HmacTlv { reduced: hmac.reduced, key_id: hmac.key_id, digest });
            }
            Tlv::Hmac(_) | Tlv::Other { .. } => return Err(Malformed::Tlv),
        }
    }
    Ok(found)
}
