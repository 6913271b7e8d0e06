//! Acknowledgment Request and Acknowledgment (RFC 8966 §4.6.3, §4.6.4).

use super::{
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
    tlv::Tlv,
};
use crate::Malformed;

/// Type of an Acknowledgment Request.
pub const REQUEST: u8 = 2;
/// Type of an Acknowledgment.
pub const REPLY: u8 = 3;

pub(super) fn parse_request(body: &[u8]) -> Result<Option<Tlv>, Malformed> {
    let mut reader = Reader::new(body, "an Acknowledgment Request");
    let _reserved = reader.u16()?;
    let (opaque, interval) = (reader.u16()?, reader.u16()?);
    //= RFC 8966 §4.6.3
    if interval == 0 {
        return Err(Malformed::Value("the interval of an Acknowledgment Request"));
    }
    let ignore = SubTlvs::parse(reader.rest(), Context::Plain)?.ignore;
    Ok((!ignore).then_some(Tlv::AckRequest { opaque, interval }))
}

pub(super) fn parse_reply(body: &[u8]) -> Result<Option<Tlv>, Malformed> {
    let mut reader = Reader::new(body, "an Acknowledgment");
    let opaque = reader.u16()?;
    let ignore = SubTlvs::parse(reader.rest(), Context::Plain)?.ignore;
    Ok((!ignore).then_some(Tlv::Ack { opaque }))
}
