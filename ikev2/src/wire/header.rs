//! The IKE header (RFC 7296 §3.1).
//!
//! ```text
//!  SPIi (8) | SPIr (8) | next payload | version | exchange type | flags | message ID (4) | length (4)
//! ```

use super::reader::Reader;
use super::registry::ExchangeType;
use crate::error::{Malformed, Unsupported};

/// Octets of the header.
pub const HEADER_LEN: usize = 28;

const VERSION_2_0: u8 = 0x20;
const FLAG_INITIATOR: u8 = 0x08;
const FLAG_RESPONSE: u8 = 0x20;

/// The fixed part of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// SPI of the IKE SA's original initiator.
    pub spi_i: u64,
    /// SPI of the original responder; zero in the first message.
    pub spi_r: u64,
    /// Type of the first payload.
    pub first_payload: u8,
    /// Major version; 2 for us.
    pub major_version: u8,
    /// Exchange type octet.
    pub exchange_code: u8,
    /// Whether the sender is the original initiator of the IKE SA.
    pub initiator: bool,
    /// Whether this is a response.
    pub response: bool,
    /// Message ID.
    pub message_id: u32,
    /// Length of the whole message in octets.
    pub length: u32,
}

impl Header {
    /// A header as we send it; the length is filled in when the message is encoded.
    pub fn new(
        spis: (u64, u64),
        exchange: ExchangeType,
        initiator: bool,
        response: bool,
        message_id: u32,
    ) -> Self {
        Self {
            spi_i: spis.0,
            spi_r: spis.1,
            first_payload: 0,
            major_version: 2,
            exchange_code: exchange.code(),
            initiator,
            response,
            message_id,
            length: 0,
        }
    }

    /// Reads the header and checks that its length is that of the datagram. Reserved flags, the version
    /// flag and the minor version are ignored.
    ///
    /// # Errors
    /// [`Malformed`] if the datagram is too short or has another length than it says.
    //= RFC 7296 §2.5 and §3.1: "implementations … MUST ignore" minor version and reserved flags.
    pub fn decode(datagram: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram, "header");
        let (spi_i, spi_r) = (reader.u64()?, reader.u64()?);
        let (first_payload, version, exchange_code, flags) =
            (reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?);
        let (message_id, length) = (reader.u32()?, reader.u32()?);
        if usize::try_from(length) != Ok(datagram.len()) {
            return Err(Malformed::Length("message"));
        }
        Ok(Self {
            spi_i,
            spi_r,
            first_payload,
            major_version: version >> 4,
            exchange_code,
            initiator: flags & FLAG_INITIATOR != 0,
            response: flags & FLAG_RESPONSE != 0,
            message_id,
            length,
        })
    }

    /// The exchange type.
    ///
    /// # Errors
    /// [`Unsupported::Exchange`] if we do not know it.
    pub fn exchange(&self) -> Result<ExchangeType, Unsupported> {
        ExchangeType::from_code(self.exchange_code)
    }

    /// Appends the 28 octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.spi_i.to_be_bytes());
        out.extend_from_slice(&self.spi_r.to_be_bytes());
        let flags =
            if self.initiator { FLAG_INITIATOR } else { 0 } | if self.response { FLAG_RESPONSE } else { 0 };
        out.extend_from_slice(&[self.first_payload, VERSION_2_0, self.exchange_code, flags]);
        out.extend_from_slice(&self.message_id.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
    }
}

/// Stores the final length of the message in `datagram` (which starts with a header).
pub(super) fn patch_message_length(datagram: &mut [u8]) {
    let length = u32::try_from(datagram.len()).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(field) = datagram.get_mut(24..).and_then(|rest| rest.first_chunk_mut::<4>()) {
        *field = length;
    }
}
