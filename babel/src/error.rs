//! Errors, divided by whose fault they are.

/// Octets that are not a Babel packet, or a TLV in it whose bounds or values the RFC forbids.
///
/// TLVs before and after a malformed one are still processed, as far as the framing allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The four-octet header is missing, or magic or version are not Babel's (RFC 8966 §4.2).
    #[error("not a Babel packet")]
    Header,
    /// The body length exceeds the datagram, or a TLV exceeds the body (RFC 8966 §4.2, §4.3).
    #[error("{0} extends beyond its container")]
    Overrun(&'static str),
    /// A TLV or sub-TLV is shorter than its fixed part.
    #[error("{0} is too short")]
    TooShort(&'static str),
    /// A field holds a value that the RFC forbids.
    #[error("{0} has a value that is not allowed")]
    Value(&'static str),
    /// An Update omits octets of a prefix that was never given, or refers to a router-id never given.
    #[error("{0} refers to parser state that the packet did not set")]
    State(&'static str),
}

/// The peer broke the protocol in a well-formed packet; the packet was not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The source is not a link-local address (RFC 8966 §4).
    #[error("the source address is not link-local")]
    SourceNotLinkLocal,
    /// No key of the interface verifies the packet, or it carries no MAC (RFC 8967 §4.3).
    #[error("no valid message authentication code")]
    NotAuthenticated,
    /// The packet counter is not fresh (RFC 8967 §4.3, RFC 9467).
    #[error("replayed packet counter")]
    Replayed,
    /// The sender must first answer our challenge (RFC 8967 §4.3.1).
    #[error("waiting for the answer to a challenge")]
    Challenged,
    /// More neighbours on one interface than the configured limit.
    #[error("too many neighbours on the interface")]
    TooManyNeighbours,
}

/// Why a packet was refused, whole or in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The bytes are wrong. What could be parsed was processed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The peer broke the protocol. Nothing was processed.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Our caller is wrong.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

/// Our caller did something that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// The interface was never added, or was removed.
    #[error("unknown interface")]
    UnknownInterface,
    /// The router-id is reserved (all zeros or all ones).
    #[error("reserved router-id")]
    ReservedRouterId,
    /// A key for a MAC has the wrong length.
    #[error("wrong key length")]
    KeyLength,
}
