//! Next Hop (RFC 8966 §4.6.8): where the routes of the Updates that follow lead.

use std::net::IpAddr;

use super::{
    address_encoding,
    parser::ParserState,
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
};
use crate::Malformed;

/// Type of a Next Hop.
pub const KIND: u8 = 7;

pub(super) fn parse(body: &[u8], state: &mut ParserState) -> Result<(), Malformed> {
    let mut reader = Reader::new(body, "a Next Hop");
    let encoding = reader.u8()?;
    let _reserved = reader.u8()?;
    //= RFC 8966 §4.6.8
    if encoding == address_encoding::WILDCARD {
        return Err(Malformed::Value("the address encoding of a Next Hop"));
    }
    match address_encoding::address(&mut reader, encoding)? {
        Some(IpAddr::V4(address)) => state.next_hop_ipv4 = Some(address),
        Some(IpAddr::V6(address)) => state.next_hop_ipv6 = address,
        None => return Ok(()),
    }
    SubTlvs::parse(reader.rest(), Context::Plain).map(|_| ())
}
