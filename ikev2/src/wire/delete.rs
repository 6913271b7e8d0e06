//! Delete payload (RFC 7296 §3.11).

use super::reader::Reader;
use super::registry::protocol;
use crate::error::Malformed;

/// What is deleted. SPIs are those of the sender's inbound SAs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delete {
    /// The IKE SA of the message, with all its CHILD SAs.
    IkeSa,
    /// ESP SAs.
    Esp(Vec<u32>),
    /// SAs of a protocol that we never negotiate.
    Other {
        /// Security protocol.
        protocol: u8,
        /// Octets per SPI.
        spi_size: u8,
        /// The SPIs, one after the other.
        spis: Vec<u8>,
    },
}

impl Delete {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "delete payload");
        let (protocol, spi_size, count) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let expected = usize::from(spi_size).saturating_mul(usize::from(count));
        let spis = reader.take(expected)?;
        reader.finish()?;
        match (protocol, spi_size) {
            (protocol::IKE, 0) if count == 0 => Ok(Self::IkeSa),
            (protocol::IKE, _) => Err(Malformed::Value("SPI size in delete payload")),
            (protocol::ESP, 4) => Ok(Self::Esp(read_spis(spis))),
            (protocol::ESP, _) => Err(Malformed::Value("SPI size in delete payload")),
            _ => Ok(Self::Other { protocol, spi_size, spis: spis.to_vec() }),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::IkeSa => out.extend_from_slice(&[protocol::IKE, 0, 0, 0]),
            Self::Esp(spis) => {
                out.extend_from_slice(&[protocol::ESP, 4]);
                out.extend_from_slice(&u16::try_from(spis.len()).unwrap_or(u16::MAX).to_be_bytes());
                out.extend(spis.iter().flat_map(|spi| spi.to_be_bytes()));
            }
            Self::Other { protocol, spi_size, spis } => {
                let count = spis.len().checked_div(usize::from(*spi_size)).unwrap_or(0);
                out.extend_from_slice(&[*protocol, *spi_size]);
                out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
                out.extend_from_slice(spis);
            }
        }
    }
}

fn read_spis(octets: &[u8]) -> Vec<u32> {
    let (chunks, _) = octets.as_chunks::<4>();
    chunks.iter().map(|chunk| u32::from_be_bytes(*chunk)).collect()
}
