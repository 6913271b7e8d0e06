//! Errors by whose fault they are.

use thiserror::Error;

/// The octets do not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The datagram or payload ends before the field does.
    #[error("{0} is truncated")]
    Truncated(&'static str),
    /// A length field contradicts the structure around it.
    #[error("length of {0} is inconsistent")]
    Length(&'static str),
    /// A field holds a value that the RFC does not allow there.
    #[error("{0} is invalid")]
    Value(&'static str),
    /// More items than any honest peer sends.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// A payload type that this implementation must understand and does not (RFC 7296 §2.5).
    #[error("unsupported critical payload {0}")]
    UnsupportedCritical(u8),
    /// The encrypted payload does not authenticate.
    #[error("integrity check failed")]
    Integrity,
}

/// The peer broke a rule of the RFC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// A payload that the exchange needs is absent.
    #[error("{0} payload is missing")]
    Missing(&'static str),
    /// A payload or notification that must not be there, or is there twice.
    #[error("unexpected {0}")]
    Unexpected(&'static str),
    /// The peer chose something that was never offered.
    #[error("peer chose {0} that was not offered")]
    NotOffered(&'static str),
    /// A field has a value that the exchange forbids.
    #[error("{0} has a forbidden value")]
    Forbidden(&'static str),
    /// The AUTH payload or the identity does not verify.
    #[error("authentication failed: {0}")]
    Authentication(&'static str),
}

/// Legal, but not implemented or not enabled here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// Major version of IKE above 2.
    #[error("IKE major version {0}")]
    MajorVersion(u8),
    /// An exchange type we do not implement.
    #[error("exchange type {0}")]
    Exchange(u8),
    /// An authentication method or signature algorithm.
    #[error("authentication method {0}")]
    AuthenticationMethod(u8),
    /// A key exchange method.
    #[error("key exchange method {0}")]
    KeyExchange(u16),
    /// No proposal in common.
    #[error("no acceptable proposal")]
    Proposal,
    /// No traffic selectors in common.
    #[error("no acceptable traffic selectors")]
    TrafficSelectors,
}

/// Our caller used the API wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Misuse {
    /// No connection of that number is configured.
    #[error("unknown connection")]
    UnknownConnection,
    /// The connection has no remote address and cannot be dialled.
    #[error("connection has no remote address")]
    NoRemoteAddress,
    /// Octets given as a key are none.
    #[error("not a usable {0}")]
    BadKey(&'static str),
    /// An identity cannot be encoded.
    #[error("{0} cannot stand in an identity")]
    BadIdentity(&'static str),
}
