//! What somebody sees who listens on the underlay.

use super::NodeId;
use esp::Encapsulated;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// SPIs below are reserved (RFC 4303 §2.1).
const FIRST_SPI: u32 = 256;
/// Version 2.0 in the header of an IKE message (RFC 7296 §3.1).
const IKE_VERSION: u8 = 0x20;

/// A datagram on the underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured {
    /// When it was sent.
    pub at: Duration,
    /// By whom.
    pub from: NodeId,
    /// Address and port that it came from.
    pub source: SocketAddr,
    /// Address and port that it went to.
    pub destination: SocketAddr,
    /// Octets of UDP payload.
    pub length: usize,
    /// Whether the underlay lost it.
    pub lost: bool,
    /// What it is.
    pub kind: Kind,
    /// A hash of the UDP payload.
    pub digest: u64,
}

/// Kinds of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An IKE message.
    Ike {
        /// 34 IKE_SA_INIT, 35 IKE_AUTH, 36 CREATE_CHILD_SA, 37 INFORMATIONAL (RFC 7296 §3.1).
        exchange: u8,
        /// Whether it is a response.
        response: bool,
        /// Its message ID.
        message_id: u32,
    },
    /// An ESP packet.
    Esp {
        /// Its SPI.
        spi: u32,
    },
    /// A NAT keepalive.
    Keepalive,
    /// Something that has no business there.
    Other,
}

impl Kind {
    /// Recognises a UDP payload between two ports.
    pub(super) fn of(contents: &[u8], source: SocketAddr, destination: SocketAddr) -> Self {
        let marker = esp::uses_marker(source.port(), destination.port());
        match esp::demultiplex(contents, marker) {
            Encapsulated::Keepalive => Self::Keepalive,
            Encapsulated::Esp { spi } if spi >= FIRST_SPI => Self::Esp { spi },
            Encapsulated::Ike(message) => Self::of_ike(message).unwrap_or(Self::Other),
            Encapsulated::Esp { .. } | Encapsulated::Runt => Self::Other,
        }
    }

    fn of_ike(message: &[u8]) -> Option<Self> {
        let [_next, version, exchange, flags] = *message.get(16..)?.first_chunk()?;
        let message_id = u32::from_be_bytes(*message.get(20..)?.first_chunk()?);
        let length = u32::from_be_bytes(*message.get(24..)?.first_chunk()?);
        let whole = usize::try_from(length).ok()? == message.len();
        let known = (34..=37).contains(&exchange) || exchange == 43;
        (version == IKE_VERSION && known && whole).then_some(Self::Ike {
            exchange,
            response: flags & 0x20 != 0,
            message_id,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ike { exchange, response, message_id } => {
                let name = match exchange {
                    34 => "IKE_SA_INIT",
                    35 => "IKE_AUTH",
                    36 => "CREATE_CHILD_SA",
                    43 => "IKE_INTERMEDIATE",
                    _ => "INFORMATIONAL",
                };
                let kind = if *response { "response" } else { "request" };
                write!(f, "{name} {kind} {message_id}")
            }
            Self::Esp { spi } => write!(f, "ESP {spi:08x}"),
            Self::Keepalive => f.write_str("keepalive"),
            Self::Other => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(contents: &[u8]) -> Kind {
        let address = |port| SocketAddr::from(([198, 18, 0, 1], port));
        Kind::of(contents, address(13000), address(13001))
    }

    #[test]
    fn only_what_belongs_there_is_recognised() {
        let mut ike = vec![0; 4 + 28];
        ike[4 + 17..4 + 20].copy_from_slice(&[IKE_VERSION, 37, 0x20]);
        ike[4 + 23] = 5;
        ike[4 + 27] = 28;
        assert_eq!(kind(&ike), Kind::Ike { exchange: 37, response: true, message_id: 5 });
        ike[4 + 27] = 29;
        assert_eq!(kind(&ike), Kind::Other, "its length is a lie");
        assert_eq!(kind(&[0xff]), Kind::Keepalive);
        assert_eq!(kind(&[0, 0, 1, 0, 9]), Kind::Esp { spi: 256 });
        assert_eq!(kind(&[0, 0, 0, 9, 9]), Kind::Other);
        assert_eq!(kind(b"plain"), Kind::Esp { spi: 0x706c_6169 }, "which no node would know");
    }
}
