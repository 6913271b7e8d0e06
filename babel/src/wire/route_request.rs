//! Route Request (RFC 8966 §4.6.10).

use super::{
    address_encoding::{self, EncodedPrefix},
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
    tlv::Tlv,
};
use crate::{Malformed, Prefix};

/// Type of a Route Request.
pub const KIND: u8 = 9;

pub(super) fn parse(body: &[u8]) -> Result<Option<Tlv>, Malformed> {
    let mut reader = Reader::new(body, "a Route Request");
    let [encoding, length] = reader.array()?;
    let prefix = match address_encoding::prefix(&mut reader, encoding, length, &[])? {
        EncodedPrefix::Wildcard => None,
        EncodedPrefix::Net(net) => Some(net),
        EncodedPrefix::LinkLocal | EncodedPrefix::Unknown => return Ok(None),
    };
    let context = match prefix {
        //= RFC 9079 §7.3
        None => Context::Plain,
        Some(net) if net.addr().is_ipv4() => Context::Ipv4Route,
        Some(_) => Context::Ipv6Route,
    };
    let sub_tlvs = SubTlvs::parse(reader.rest(), context)?;
    let prefix = prefix.map(|destination| Prefix { destination, source: sub_tlvs.source });
    Ok((!sub_tlvs.ignore).then_some(Tlv::RouteRequest { prefix }))
}
