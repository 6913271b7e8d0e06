//! A message in the clear, or the outside of an encrypted one.

use super::header::{HEADER_LEN, Header, patch_message_length};
use super::payload::{Payload, decode_chain, encode_chain};
use crate::error::Malformed;

/// Header and payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The fixed part.
    pub header: Header,
    /// The payloads in order.
    pub payloads: Vec<Payload>,
}

impl Message {
    /// Reads a whole datagram.
    ///
    /// # Errors
    /// [`Malformed`] if anything in it is.
    pub fn decode(datagram: &[u8]) -> Result<Self, Malformed> {
        let header = Header::decode(datagram)?;
        let body = datagram.get(HEADER_LEN..).ok_or(Malformed::Truncated("header"))?;
        Ok(Self { header, payloads: decode_chain(header.first_payload, body)? })
    }

    /// The datagram.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        let first_payload = self.payloads.first().map_or(0, Payload::kind);
        Header { first_payload, ..self.header }.encode(&mut out);
        encode_chain(&self.payloads, &mut out);
        patch_message_length(&mut out);
        out
    }
}
