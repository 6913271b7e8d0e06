//! Router-Id (RFC 8966 §4.6.7): names the originator of the Updates that follow.

use super::{
    parser::ParserState,
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
};
use crate::{Malformed, RouterId};

/// Type of a Router-Id.
pub const KIND: u8 = 6;

pub(super) fn parse(body: &[u8], state: &mut ParserState) -> Result<(), Malformed> {
    let mut reader = Reader::new(body, "a Router-Id");
    let _reserved = reader.u16()?;
    let router_id = RouterId(reader.array()?);
    // Updates after an unusable Router-Id must not be taken for the previous router's.
    state.router_id = router_id.is_valid().then_some(router_id);
    //= RFC 8966 §4.1.3
    if !router_id.is_valid() {
        return Err(Malformed::Value("a Router-Id"));
    }
    // A mandatory sub-TLV that we don't know changes nothing: the state is set all the same (§4.5).
    SubTlvs::parse(reader.rest(), Context::Plain).map(|_| ())
}
