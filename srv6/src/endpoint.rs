//! What a node does with a packet that is addressed to one of its SIDs (RFC 8986 §4).

use std::net::Ipv6Addr;
use std::ops::Range;

use crate::error::Error;

/// What a SID does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// A waypoint: go on to the next segment (RFC 8986 §4.1).
    End(Flavours),
    /// A waypoint that goes on over one adjacency (RFC 8986 §4.2); the number means something to the caller.
    EndX(Flavours, u16),
    /// The end of the path for an IPv4 packet (RFC 8986 §4.7).
    EndDt4,
    /// The end of the path for an IPv6 packet (RFC 8986 §4.6).
    EndDt6,
    /// The end of the path for either (RFC 8986 §4.8).
    EndDt46,
    /// End.DT46 whose packets leave the mesh towards the internet.
    Internet,
}

impl Behaviour {
    /// End without flavours.
    pub const END: Self = Self::End(Flavours::NONE);
}

/// Variants of End and End.X that remove headers (RFC 8986 §4.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flavours {
    /// Penultimate segment pop: remove the SRH when the last segment becomes the destination.
    pub psp: bool,
    /// Ultimate segment pop: remove the SRH when no segments are left.
    pub usp: bool,
    /// Ultimate segment decapsulation: remove the whole envelope when no segments are left.
    pub usd: bool,
}

impl Flavours {
    /// No flavour.
    pub const NONE: Self = Self { psp: false, usp: false, usd: false };
}

/// What became of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Destination, Segments Left and hop limit are rewritten: forward it by its new destination. The hop is
    /// already counted.
    Forward {
        /// Where the packet now stands in the buffer; it starts later when a flavour removed a header.
        packet: Range<usize>,
        /// The new destination.
        destination: Ipv6Addr,
        /// End.X: the adjacency to leave by, whatever the route says.
        adjacency: Option<u16>,
    },
    /// The envelope is removed: forward or deliver the inner packet by its own destination. Its hop limit is not
    /// counted yet and its ECN field is combined with the envelope's.
    Decapsulated {
        /// Where the inner packet stands in the buffer.
        inner: Range<usize>,
    },
    /// The packet is for this node itself: nothing but ICMPv6 gets here, for ping and traceroute (RFC 9259).
    UpperLayer {
        /// The protocol behind the extension headers.
        protocol: u8,
        /// Where that header starts.
        offset: usize,
    },
}

/// Does what the SID in the packet's destination demands, in place.
///
/// The caller has looked up `behaviour` by the destination address, and checked that the packet may use the SID
/// at all (RFC 8754 §5.1). On an error the packet is unchanged, and [`Error::icmp`] says what to answer.
///
/// # Errors
/// [`Error`] says whose fault it is and what to tell the sender.
pub fn process(packet: &mut [u8], behaviour: Behaviour) -> Result<Outcome, Error> {
    let _ = (packet, behaviour);
    Err(Error::Malformed(crate::error::Malformed::Truncated))
}
