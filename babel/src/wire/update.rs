//! Update (RFC 8966 §4.6.9, RFC 9079 §7.2, RFC 9229 §4.2).

use std::net::IpAddr;

use ipnet::IpNet;

use super::{
    address_encoding::{self, EncodedPrefix, LINK_LOCAL},
    parser::ParserState,
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
    tlv::Tlv,
};
use crate::{INFINITY, Malformed, Prefix, RouterId, Seqno};

/// Type of an Update.
pub const KIND: u8 = 8;
/// The prefix becomes the default that later Updates may omit parts of.
pub const PREFIX_FLAG: u8 = 0x80;
/// The router-id is taken from the prefix.
pub const ROUTER_ID_FLAG: u8 = 0x40;

/// What an Update says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// A route.
    Announce(Announcement),
    /// The sender has no route.
    Retract {
        /// To this prefix.
        prefix: Prefix,
    },
    /// The sender has no route to anything.
    RetractAll,
}

/// A route that a neighbour offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// What it leads to.
    pub prefix: Prefix,
    /// Where packets go; decides the address encoding of IPv4 prefixes.
    pub next_hop: IpAddr,
    /// Who originated it.
    pub router_id: RouterId,
    /// The originator's sequence number.
    pub seqno: Seqno,
    /// The sender's metric; never 65535.
    pub metric: u16,
    /// Until the next Update at the latest, in centiseconds.
    pub interval: u16,
}

struct Fields {
    encoding: u8,
    flags: u8,
    interval: u16,
    seqno: Seqno,
    metric: u16,
}

pub(super) fn parse(body: &[u8], state: &mut ParserState) -> Result<Option<Tlv>, Malformed> {
    let mut reader = Reader::new(body, "an Update");
    let [encoding, flags, length, omitted] = reader.array()?;
    let fields = Fields {
        encoding,
        flags,
        interval: reader.u16()?,
        seqno: Seqno(reader.u16()?),
        metric: reader.u16()?,
    };
    if encoding == LINK_LOCAL && omitted != 0 {
        return Err(Malformed::Value("the number of omitted octets"));
    }
    let default = state.default_prefix(encoding, usize::from(omitted))?;
    match address_encoding::prefix(&mut reader, encoding, length, default.as_slice())? {
        EncodedPrefix::Wildcard => parse_wildcard(&fields, reader.rest()),
        EncodedPrefix::Net(net) => parse_route(&fields, net, reader.rest(), state),
        EncodedPrefix::LinkLocal | EncodedPrefix::Unknown => Ok(None),
    }
}

fn parse_wildcard(fields: &Fields, rest: &[u8]) -> Result<Option<Tlv>, Malformed> {
    //= RFC 8966 §4.6.9
    if fields.metric != INFINITY {
        return Err(Malformed::Value("the metric of a wildcard Update"));
    }
    let ignore = SubTlvs::parse(rest, Context::Plain)?.ignore;
    Ok((!ignore).then_some(Tlv::Update(Update::RetractAll)))
}

fn parse_route(
    fields: &Fields,
    net: IpNet,
    rest: &[u8],
    state: &mut ParserState,
) -> Result<Option<Tlv>, Malformed> {
    // First the parser state, which changes even if the TLV turns out to be one to ignore (§4.5).
    if fields.flags & PREFIX_FLAG != 0 {
        state.set_default_prefix(fields.encoding, net.addr());
    }
    if fields.flags & ROUTER_ID_FLAG != 0 {
        state.router_id = Some(router_id_of(net.addr())).filter(|id| id.is_valid());
    }
    let context = if net.addr().is_ipv4() { Context::Ipv4Route } else { Context::Ipv6Route };
    let sub_tlvs = SubTlvs::parse(rest, context)?;
    //= RFC 8966 §4.6.9
    if fields.interval == 0 {
        return Err(Malformed::Value("the interval of an Update"));
    }
    if sub_tlvs.ignore {
        return Ok(None);
    }
    let prefix = Prefix { destination: net, source: sub_tlvs.source };
    //= RFC 8966 §4.6.9
    // A retraction needs neither router-id nor next hop.
    if fields.metric == INFINITY {
        return Ok(Some(Tlv::Update(Update::Retract { prefix })));
    }
    let router_id = state.router_id.ok_or(Malformed::State("the router-id of an Update"))?;
    let Some(next_hop) = state.next_hop(fields.encoding) else { return Ok(None) };
    let Fields { seqno, metric, interval, .. } = *fields;
    let announcement = Announcement { prefix, next_hop, router_id, seqno, metric, interval };
    Ok(Some(Tlv::Update(Update::Announce(announcement))))
}

/// The last eight octets of an address, or zeros and the address if it is shorter.
fn router_id_of(address: IpAddr) -> RouterId {
    match address {
        IpAddr::V4(address) => RouterId(u64::from(u32::from(address)).to_be_bytes()),
        IpAddr::V6(address) => {
            let [_, _, _, _, _, _, _, _, last @ ..] = address.octets();
            RouterId(last)
        }
    }
}
