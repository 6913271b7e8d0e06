//! Identification payloads (RFC 7296 §3.5).

use super::reader::Reader;
use crate::error::Malformed;
use crate::identity::Identity;

/// An identity as it stands in the payload. The reserved octets are kept because AUTH covers them as sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identification {
    /// ID Type.
    pub kind: u8,
    /// Reserved octets as received.
    pub reserved: [u8; 3],
    /// Identification data.
    pub data: Vec<u8>,
}

impl Identification {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "ID payload");
        Ok(Self { kind: reader.u8()?, reserved: reader.array()?, data: reader.remainder().to_vec() })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind);
        out.extend_from_slice(&self.reserved);
        out.extend_from_slice(&self.data);
    }

    /// The payload body without generic header: what AUTH covers (§2.15).
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        self.encode(&mut octets);
        octets
    }

    /// The identity.
    ///
    /// # Errors
    /// [`Malformed`] if the type is unknown or the data does not fit it.
    pub fn identity(&self) -> Result<Identity, Malformed> {
        Identity::parse(self.kind, &self.data)
    }
}

impl From<&Identity> for Identification {
    fn from(identity: &Identity) -> Self {
        Self { kind: identity.kind(), reserved: [0; 3], data: identity.octets() }
    }
}
