//! What can be wrong with a packet, sorted by whose fault it is, with the ICMP error that answers it.

use crate::ip::icmp_error::{IcmpError, Unreachable};

/// Why a packet was not processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are no valid packet.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The packet is well formed, but its sender broke a rule.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The packet is legal, but asks for something that is not done here.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The caller passed arguments that can't work.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

impl Error {
    /// The ICMP error to send to the source address of the packet that was being processed, if any.
    ///
    /// Pointers count octets from the first byte of the packet, as RFC 4443 §3.4 wants them.
    #[must_use]
    pub const fn icmp(&self) -> Option<IcmpError> {
        match self {
            Self::Malformed(_) | Self::Misuse(_) => None,
            Self::Violation(violation) => violation.icmp(),
            Self::Unsupported(unsupported) => unsupported.icmp(),
        }
    }

    /// A stable, short name: a metric label.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Malformed(malformed) => malformed.name(),
            Self::Violation(violation) => violation.name(),
            Self::Unsupported(unsupported) => unsupported.name(),
            Self::Misuse(misuse) => misuse.name(),
        }
    }
}

/// The bytes are no valid packet; nothing in it can be believed, so nothing is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the header needs.
    #[error("the packet ends inside its header")]
    Truncated,
    /// Neither 4 nor 6, or not the one that was asked for.
    #[error("the IP version is not the expected one")]
    Version,
    /// An IPv4 header length below 20 or beyond the packet.
    #[error("the IPv4 header length is impossible")]
    HeaderLength,
    /// The header claims more bytes than there are.
    #[error("the length field claims more bytes than the packet has")]
    Length,
    /// An extension header ends beyond the packet, or there are too many of them.
    #[error("the chain of extension headers does not end inside the packet")]
    ExtensionChain,
    /// The segment routing header's lengths contradict each other.
    #[error("the segment routing header is inconsistent")]
    SegmentRoutingHeader,
    /// A TLV of the segment routing header ends beyond it.
    #[error("a TLV ends beyond the segment routing header")]
    Tlv,
    /// A checksum that this node has to verify is wrong.
    #[error("the checksum is wrong")]
    Checksum,
}

impl Malformed {
    /// A stable, short name: a metric label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Version => "ip_version",
            Self::HeaderLength => "ip_header_length",
            Self::Length => "ip_length",
            Self::ExtensionChain => "extension_chain",
            Self::SegmentRoutingHeader => "srh_inconsistent",
            Self::Tlv => "srh_tlv",
            Self::Checksum => "checksum",
        }
    }
}

/// The sender broke a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// The hop limit was 1 or 0 where the packet had to be forwarded.
    #[error("the hop limit is used up")]
    HopLimitExceeded,
    /// Segments Left or Last Entry points beyond the segment list (RFC 8986 §4.1 S09).
    #[error("Segments Left is beyond the segment list")]
    SegmentsLeft {
        /// Offset of the Segments Left field.
        pointer: u32,
    },
    /// A behaviour that ends the path met a packet with segments left (RFC 8986 §4.4 S02).
    #[error("segments are left where the path ends")]
    SegmentsRemain {
        /// Offset of the Segments Left field.
        pointer: u32,
    },
    /// What follows the headers may not be addressed to this SID (RFC 8986 §4.1.1).
    #[error("the upper-layer header is not allowed at this SID")]
    UpperLayer {
        /// Offset of the upper-layer header.
        pointer: u32,
    },
    /// The next segment is a multicast, loopback or unspecified address.
    #[error("the next segment is not a unicast address")]
    NextSegment,
    /// The SRH carries an HMAC that does not verify, or none where one is demanded (RFC 8754 §2.1.2.1).
    #[error("the HMAC is absent or wrong")]
    Hmac {
        /// Offset of the HMAC TLV, or of the SRH when there is none.
        pointer: u32,
    },
    /// The inner packet is longer than the outer one, or not what its next header says.
    #[error("the inner packet does not fit its envelope")]
    Inner,
    /// Congestion was marked on a packet whose endpoints don't understand it (RFC 6040 §4.2).
    #[error("congestion experienced on a packet that is not ECN-capable")]
    CongestionLost,
}

impl Violation {
    /// The ICMP error that tells the sender.
    #[must_use]
    pub const fn icmp(self) -> Option<IcmpError> {
        match self {
            Self::HopLimitExceeded => Some(IcmpError::TimeExceeded),
            Self::SegmentsLeft { pointer } | Self::SegmentsRemain { pointer } | Self::Hmac { pointer } => {
                Some(IcmpError::ParameterProblem { code: 0, pointer })
            }
            Self::UpperLayer { pointer } => Some(IcmpError::ParameterProblem { code: 4, pointer }),
            Self::NextSegment | Self::Inner | Self::CongestionLost => None,
        }
    }

    /// A stable, short name: a metric label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HopLimitExceeded => "hop_limit_exceeded",
            Self::SegmentsLeft { .. } => "srh_segments_left",
            Self::SegmentsRemain { .. } => "srh_segments_remain",
            Self::UpperLayer { .. } => "sid_upper_layer",
            Self::NextSegment => "srh_next_segment",
            Self::Hmac { .. } => "srh_hmac",
            Self::Inner => "inner_packet",
            Self::CongestionLost => "ecn_not_capable",
        }
    }
}

/// Legal, but not done here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unsupported {
    /// A routing header of another type with segments left (RFC 8200 §4.4).
    #[error("the routing header is of a type that is not supported")]
    RoutingType {
        /// Offset of the Routing Type field.
        pointer: u32,
    },
    /// A hop-by-hop or destination option whose highest bits ask for the packet to be discarded (RFC 8200
    /// §4.2).
    #[error("an IPv6 option must be understood and is not")]
    Option {
        /// Offset of the option type.
        pointer: u32,
        /// Whether the option's type asks for an answer.
        answered: bool,
    },
    /// A traceroute probe arrived at a SID: nobody listens, which is the answer that it waits for (RFC 9259 §3.2).
    #[error("nobody listens on the port")]
    Port,
    /// An envelope in fragments: SRv6 ends don't reassemble.
    #[error("the envelope is a fragment")]
    Fragment,
}

impl Unsupported {
    /// The ICMP error that tells the sender.
    #[must_use]
    pub const fn icmp(self) -> Option<IcmpError> {
        match self {
            Self::RoutingType { pointer } => Some(IcmpError::ParameterProblem { code: 0, pointer }),
            Self::Option { pointer, answered: true } => {
                Some(IcmpError::ParameterProblem { code: 2, pointer })
            }
            Self::Port => Some(IcmpError::Unreachable(Unreachable::Port)),
            Self::Option { answered: false, .. } | Self::Fragment => None,
        }
    }

    /// A stable, short name: a metric label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoutingType { .. } => "routing_type",
            Self::Option { .. } => "ipv6_option",
            Self::Port => "port_unreachable",
            Self::Fragment => "envelope_fragment",
        }
    }
}

/// The caller's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Misuse {
    /// The output buffer is too short.
    #[error("the output buffer is too short")]
    BufferTooShort,
    /// The packet with its new headers would not fit a 16-bit length.
    #[error("the packet is too long to encapsulate")]
    TooLong,
    /// A path needs at least one segment.
    #[error("the segment path is empty")]
    EmptyPath,
    /// A path takes at most [`crate::segment_path::MAX_SEGMENTS`] segments.
    #[error("the segment path is too long")]
    PathTooLong,
    /// A segment, locator or source address that is not unicast or has the wrong length.
    #[error("the address can't be a segment")]
    Address,
    /// An ICMPv4 error was asked for an IPv6 packet or the other way round.
    #[error("the address family does not match the packet")]
    Family,
    /// HMAC key id 0 is reserved, and an empty secret is none.
    #[error("the HMAC key can't be used")]
    HmacKey,
}

impl Misuse {
    /// A stable, short name: a metric label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BufferTooShort => "buffer_too_short",
            Self::TooLong => "too_long_to_encapsulate",
            Self::EmptyPath => "path_empty",
            Self::PathTooLong => "path_too_long",
            Self::Address => "address_not_a_segment",
            Self::Family => "address_family",
            Self::HmacKey => "hmac_key",
        }
    }
}
