//! Seqno Request (RFC 8966 §4.6.11).

use super::{
    address_encoding::{self, EncodedPrefix, WILDCARD},
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
    tlv::Tlv,
};
use crate::{Malformed, Prefix, RouterId, Seqno};

/// Type of a Seqno Request.
pub const KIND: u8 = 10;

/// A Seqno Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqnoRequest {
    /// The prefix for which a route is wanted.
    pub prefix: Prefix,
    /// The originator whose sequence number should move.
    pub router_id: RouterId,
    /// The least sequence number that helps.
    pub seqno: Seqno,
    /// How often it may still be forwarded, this hop included.
    pub hop_count: u8,
}

pub(super) fn parse(body: &[u8]) -> Result<Option<Tlv>, Malformed> {
    let mut reader = Reader::new(body, "a Seqno Request");
    let [encoding, length] = reader.array()?;
    let seqno = Seqno(reader.u16()?);
    let [hop_count, _reserved] = reader.array()?;
    let router_id = RouterId(reader.array()?);
    //= RFC 8966 §4.6.11
    if encoding == WILDCARD {
        return Err(Malformed::Value("the address encoding of a Seqno Request"));
    }
    if hop_count == 0 {
        return Err(Malformed::Value("the hop count of a Seqno Request"));
    }
    if !router_id.is_valid() {
        return Err(Malformed::Value("the router-id of a Seqno Request"));
    }
    let EncodedPrefix::Net(destination) = address_encoding::prefix(&mut reader, encoding, length, &[])?
    else {
        return Ok(None);
    };
    let context = if destination.addr().is_ipv4() { Context::Ipv4Route } else { Context::Ipv6Route };
    let sub_tlvs = SubTlvs::parse(reader.rest(), context)?;
    let prefix = Prefix { destination, source: sub_tlvs.source };
    let request = SeqnoRequest { prefix, router_id, seqno, hop_count };
    Ok((!sub_tlvs.ignore).then_some(Tlv::SeqnoRequest(request)))
}
