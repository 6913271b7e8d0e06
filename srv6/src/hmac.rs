//! The keyed hash of a segment routing header (RFC 8754 §2.1.2): it proves that the list was written by somebody who
//! knows the key.
//!
//! The hash covers the source address, Last Entry, the flags, the key id and the segment list. Segments Left and the
//! destination change on the way and are not covered, so waypoints need not sign again.
//!
//! RFC 8754 also covers the 16 bits behind the TLV's length (D and reserved bits); Linux does not. This follows Linux,
//! since a hash that the other side refuses protects nobody. `CONFORMANCE.md` lists it as an exception.

use std::net::Ipv6Addr;

use hmac::digest::MacError;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::{Error, Misuse, Violation};
use crate::ip::{Ipv6View, protocol};
use crate::wire::segment_routing_header::{FLAG_HMAC, ROUTING_TYPE};
use crate::wire::tlv::HmacTlv;
use crate::wire::{SegmentRoutingHeader, SrhView};

/// A key with its number. The secret is never shown.
#[derive(Clone)]
pub struct HmacKey {
    id: u32,
    keyed: Hmac<Sha256>,
}

impl HmacKey {
    /// Takes a key's number and secret.
    ///
    /// # Errors
    /// [`Misuse::HmacKey`] when the id is 0, which is reserved, or the secret is empty.
    pub fn new(id: u32, secret: &[u8]) -> Result<Self, Misuse> {
        if id == 0 || secret.is_empty() {
            return Err(Misuse::HmacKey);
        }
        let keyed = Hmac::new_from_slice(secret).map_err(|_| Misuse::HmacKey)?;
        Ok(Self { id, keyed })
    }

    /// The key's number.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Puts the hash into a header that is to be sent from `source`.
    pub fn sign(&self, source: Ipv6Addr, header: &mut SegmentRoutingHeader) {
        header.flags |= FLAG_HMAC;
        let last_entry = u8::try_from(header.segments().len().saturating_sub(1)).unwrap_or(u8::MAX);
        let mut mac = self.begin(source, last_entry, header.flags);
        header.segments().iter().for_each(|segment| mac.update(&segment.octets()));
        let digest = mac.finalize().into_bytes().into();
        //= RFC 8754 §2.1.2
        // D says that the first segment is not in the list, so that it can't be compared with the destination.
        let reduced = header.segments_left > last_entry;
        header.hmac = Some(HmacTlv { reduced, key_id: self.id, digest });
    }

    fn begin(&self, source: Ipv6Addr, last_entry: u8, flags: u8) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(&source.octets());
        mac.update(&[last_entry, flags]);
        mac.update(&self.id.to_be_bytes());
        mac
    }

    /// Compares in constant time.
    fn verify(&self, source: Ipv6Addr, srh: &SrhView<'_>, digest: &[u8]) -> Result<(), MacError> {
        let mut mac = self.begin(source, srh.last_entry(), srh.flags());
        mac.update(srh.segment_list().unwrap_or_default());
        mac.verify_slice(digest)
    }
}

impl std::fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HmacKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a link asks of the segment routing headers that arrive on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requirement {
    /// No header is checked.
    Ignored,
    /// A header with an HMAC must have a right one.
    #[default]
    IfPresent,
    /// A packet that uses a SID must carry a right one; ping and traceroute to a SID need none.
    Required,
}

/// All keys that a node accepts.
#[derive(Debug, Clone, Default)]
pub struct HmacKeys {
    keys: Vec<HmacKey>,
}

impl HmacKeys {
    /// Takes the keys; of two with one id the first counts.
    #[must_use]
    pub const fn new(keys: Vec<HmacKey>) -> Self {
        Self { keys }
    }

    /// The key with this number.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&HmacKey> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Checks a packet that is addressed to a local SID, before [`process`](crate::process). Allocates nothing.
    ///
    //= RFC 8754 §2.1.2.1
    /// # Errors
    /// [`Violation::Hmac`] when the hash is wrong, its key unknown, or a required one absent;
    /// [`Malformed`](crate::Malformed) when the headers don't parse.
    pub fn check(&self, packet: &[u8], requirement: Requirement) -> Result<(), Error> {
        if requirement == Requirement::Ignored {
            return Ok(());
        }
        let view = Ipv6View::parse(packet)?;
        let mut headers = view.extension_headers();
        for header in headers.by_ref() {
            let header = header?;
            if header.kind == protocol::ROUTING && header.bytes.get(2) == Some(&ROUTING_TYPE) {
                let srh = SrhView::parse(header.bytes)?;
                let pointer = |at: usize| u32::try_from(header.offset.saturating_add(at)).unwrap_or(u32::MAX);
                return match self.check_header(&view, &srh)? {
                    Verdict::Right => Ok(()),
                    Verdict::Absent if requirement == Requirement::IfPresent => Ok(()),
                    Verdict::Absent => Err(Violation::Hmac { pointer: pointer(0) }.into()),
                    Verdict::Wrong { at } => Err(Violation::Hmac { pointer: pointer(at) }.into()),
                };
            }
        }
        let upper = headers.upper_layer();
        let is_envelope = matches!(upper.protocol, protocol::IPV4 | protocol::IPV6);
        if requirement == Requirement::Required && is_envelope {
            let pointer = u32::try_from(upper.named_at).unwrap_or(u32::MAX);
            return Err(Violation::Hmac { pointer }.into());
        }
        Ok(())
    }

    fn check_header(&self, view: &Ipv6View<'_>, srh: &SrhView<'_>) -> Result<Verdict, Error> {
        let Some((at, hmac)) = srh.hmac()? else { return Ok(Verdict::Absent) };
        let key = self.get(hmac.key_id);
        // The current segment is the destination, unless a reduced list leaves it out.
        let current = srh.segment(srh.segments_left());
        let in_list = srh.segments_left() <= srh.last_entry();
        let right = srh.is_consistent()
            && (!in_list || current == Some(view.destination()))
            && key.is_some_and(|key| key.verify(view.source(), srh, hmac.digest).is_ok());
        Ok(if right { Verdict::Right } else { Verdict::Wrong { at } })
    }
}

enum Verdict {
    Absent,
    Right,
    Wrong { at: usize },
}
