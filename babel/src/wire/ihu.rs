//! "I Heard You" (RFC 8966 §4.6.6).

use std::net::IpAddr;

use super::{
    address_encoding::{self, WILDCARD},
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
    tlv::Tlv,
};
use crate::Malformed;

/// Type of an IHU.
pub const KIND: u8 = 5;

/// An IHU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ihu {
    /// Whom it is for; `None` is whoever receives it.
    pub address: Option<IpAddr>,
    /// What the sender thinks of receiving from us; 65535 is not at all.
    pub rxcost: u16,
    /// Until the next one at the latest, in centiseconds.
    pub interval: u16,
    /// Origin and receive timestamp of the last Hello that the sender got, in microseconds (RFC 9616).
    pub echo: Option<(u32, u32)>,
    /// Ours: the unicast Hello interval that the sender asks for, in centiseconds.
    pub fast_hello: Option<u16>,
}

pub(super) fn parse(body: &[u8]) -> Result<Option<Tlv>, Malformed> {
    let mut reader = Reader::new(body, "an IHU");
    let encoding = reader.u8()?;
    let _reserved = reader.u8()?;
    let (rxcost, interval) = (reader.u16()?, reader.u16()?);
    //= RFC 8966 §4.6.6
    if interval == 0 {
        return Err(Malformed::Value("the interval of an IHU"));
    }
    let address = address_encoding::address(&mut reader, encoding)?;
    if address.is_none() && encoding != WILDCARD {
        return Ok(None);
    }
    let sub_tlvs = SubTlvs::parse(reader.rest(), Context::Ihu)?;
    let ihu = Ihu { address, rxcost, interval, echo: sub_tlvs.echo, fast_hello: sub_tlvs.fast_hello };
    Ok((!sub_tlvs.ignore).then_some(Tlv::Ihu(ihu)))
}
