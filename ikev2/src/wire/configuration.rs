//! Configuration payload (RFC 7296 §3.15). Parsed so that a peer may send it; never acted upon.

use super::reader::Reader;
use crate::error::Malformed;

const MAX_ATTRIBUTES: usize = 64;

/// CP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// CFG_REQUEST, CFG_REPLY, CFG_SET or CFG_ACK.
    pub kind: u8,
    /// Attributes.
    pub attributes: Vec<ConfigurationAttribute>,
}

/// One configuration attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationAttribute {
    /// Attribute type (15 bits).
    pub kind: u16,
    /// Value.
    pub value: Vec<u8>,
}

impl Configuration {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "configuration payload");
        let kind = reader.u8()?;
        reader.take(3)?;
        let mut attributes = Vec::new();
        while !reader.is_empty() {
            if attributes.len() >= MAX_ATTRIBUTES {
                return Err(Malformed::TooMany("configuration attributes"));
            }
            let (kind, length) = (reader.u16()? & 0x7FFF, reader.u16()?);
            attributes
                .push(ConfigurationAttribute { kind, value: reader.take(usize::from(length))?.to_vec() });
        }
        Ok(Self { kind, attributes })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, 0, 0, 0]);
        for attribute in &self.attributes {
            out.extend_from_slice(&attribute.kind.to_be_bytes());
            out.extend_from_slice(&u16::try_from(attribute.value.len()).unwrap_or(u16::MAX).to_be_bytes());
            out.extend_from_slice(&attribute.value);
        }
    }
}
