//! Hello (RFC 8966 §4.6.5).

use super::{
    reader::Reader,
    sub_tlv::{Context, SubTlvs},
    tlv::Tlv,
};
use crate::{Malformed, Seqno};

/// Type of a Hello.
pub const KIND: u8 = 4;
/// The flag of a unicast Hello; all others are ignored.
pub const UNICAST_FLAG: u16 = 0x8000;

/// A Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Part of the unicast stream, not of the multicast one.
    pub unicast: bool,
    /// Its number in the stream.
    pub seqno: Seqno,
    /// Until the next one at the latest, in centiseconds; 0 is unscheduled.
    pub interval: u16,
    /// When it was sent, in microseconds of the sender's clock (RFC 9616).
    pub timestamp: Option<u32>,
}

pub(super) fn parse(body: &[u8]) -> Result<Option<Tlv>, Malformed> {
    let mut reader = Reader::new(body, "a Hello");
    let flags = reader.u16()?;
    let (seqno, interval) = (Seqno(reader.u16()?), reader.u16()?);
    let sub_tlvs = SubTlvs::parse(reader.rest(), Context::Hello)?;
    let hello = Hello { unicast: flags & UNICAST_FLAG != 0, seqno, interval, timestamp: sub_tlvs.transmit };
    Ok((!sub_tlvs.ignore).then_some(Tlv::Hello(hello)))
}
