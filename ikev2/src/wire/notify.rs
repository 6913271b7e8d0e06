//! Notify payload (RFC 7296 §3.10).

use super::reader::Reader;
use super::registry::{notify, protocol};
use super::writer::octet;
use crate::error::Malformed;

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// Security protocol of the SA that it is about, or zero.
    pub protocol: u8,
    /// SPI of that SA, or nothing.
    pub spi: Vec<u8>,
    /// Notify message type.
    pub kind: u16,
    /// Type-specific data.
    pub data: Vec<u8>,
}

impl Notify {
    /// A notification about no SA in particular.
    pub fn new(kind: u16, data: Vec<u8>) -> Self {
        Self { protocol: protocol::NONE, spi: Vec::new(), kind, data }
    }

    /// A notification about an ESP SA.
    pub fn about_esp(kind: u16, spi: u32) -> Self {
        Self { protocol: protocol::ESP, spi: spi.to_be_bytes().to_vec(), kind, data: Vec::new() }
    }

    /// Whether it reports an error.
    pub fn is_error(&self) -> bool {
        self.kind < notify::FIRST_STATUS
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "notify payload");
        let (protocol, spi_size, kind) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let spi = reader.take(usize::from(spi_size))?.to_vec();
        Ok(Self { protocol, spi, kind, data: reader.remainder().to_vec() })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.protocol, octet(self.spi.len())]);
        out.extend_from_slice(&self.kind.to_be_bytes());
        out.extend_from_slice(&self.spi);
        out.extend_from_slice(&self.data);
    }
}
