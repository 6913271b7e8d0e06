//! Builds ICMP errors about a packet (RFC 792, RFC 4443), into a buffer of the caller.

use std::net::IpAddr;

use super::{icmpv4, icmpv6};

use crate::error::{Malformed, Misuse};

/// Room for any ICMP error that this module writes: IPv6's minimum MTU.
pub const MAX_LEN: usize = 1280;

/// What to tell the sender of a packet. One vocabulary for both families; each builder translates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IcmpError {
    /// The hop limit was used up: ICMPv6 type 3 code 0, ICMPv4 type 11 code 0.
    TimeExceeded,
    /// The packet does not fit: ICMPv6 type 2, ICMPv4 type 3 code 4.
    PacketTooBig {
        /// The largest packet that fits, in bytes, IP header included.
        mtu: u32,
    },
    /// A field is wrong: ICMPv6 type 4, ICMPv4 type 12 code 0.
    ParameterProblem {
        /// The ICMPv6 code; ICMPv4 always says 0.
        code: u8,
        /// Offset of the field from the first byte of the packet.
        pointer: u32,
    },
    /// The destination can't be reached: ICMPv6 type 1, ICMPv4 type 3.
    Unreachable(Unreachable),
}

/// Why a destination can't be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreachable {
    /// No route: ICMPv6 code 0, ICMPv4 code 0.
    NoRoute,
    /// A policy forbids it: ICMPv6 code 1, ICMPv4 code 13.
    Prohibited,
    /// The host does not answer: ICMPv6 code 3, ICMPv4 code 1.
    Address,
    /// Nobody listens on the port: ICMPv6 code 4, ICMPv4 code 3.
    Port,
}

/// Why a packet must not be answered with an ICMP error (RFC 1122 §3.2.2, RFC 4443 §2.4 e).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotAnswered {
    /// It does not parse.
    #[error("the packet is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// It is an ICMP error itself (or a redirect, or may be one in a fragment).
    #[error("the packet is an ICMP error itself")]
    IcmpError,
    /// Its destination is multicast or broadcast.
    #[error("the packet went to many")]
    Multicast,
    /// It is a fragment other than the first.
    #[error("the packet is a non-first fragment")]
    Fragment,
    /// Its source is not one host.
    #[error("the source is not a single host")]
    Source,
    /// The caller's mistake.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

/// Writes the ICMP error about `invoking` from `source` into `out` and returns its length.
///
/// The family of `source` must be that of the packet. `invoking` may be cut short, as a packet quoted by another
/// error is; its header must be whole. `out` needs at most [`MAX_LEN`] bytes.
///
/// # Errors
/// [`NotAnswered`] when the packet must not be answered, or the buffer is too short for header and quote.
pub fn write(
    error: IcmpError,
    source: IpAddr,
    invoking: &[u8],
    out: &mut [u8],
) -> Result<usize, NotAnswered> {
    match (source, invoking.first().map(|octet| octet >> 4)) {
        (IpAddr::V4(source), Some(4)) => icmpv4::write(error, source, invoking, out),
        (IpAddr::V6(source), Some(6)) => icmpv6::write(error, source, invoking, out),
        (_, Some(4 | 6)) => Err(Misuse::Family.into()),
        (_, Some(_)) => Err(Malformed::Version.into()),
        (_, None) => Err(Malformed::Truncated.into()),
    }
}

/// "Time exceeded in transit" about `invoking`; see [`write()`].
///
/// # Errors
/// As [`write()`].
pub fn time_exceeded(source: IpAddr, invoking: &[u8], out: &mut [u8]) -> Result<usize, NotAnswered> {
    write(IcmpError::TimeExceeded, source, invoking, out)
}

/// "Packet too big" or "fragmentation needed" about `invoking`; see [`write()`].
///
/// # Errors
/// As [`write()`].
pub fn packet_too_big(
    mtu: u32,
    source: IpAddr,
    invoking: &[u8],
    out: &mut [u8],
) -> Result<usize, NotAnswered> {
    write(IcmpError::PacketTooBig { mtu }, source, invoking, out)
}

/// "Parameter problem" about `invoking`; see [`write()`].
///
/// # Errors
/// As [`write()`].
pub fn parameter_problem(
    code: u8,
    pointer: u32,
    source: IpAddr,
    invoking: &[u8],
    out: &mut [u8],
) -> Result<usize, NotAnswered> {
    write(IcmpError::ParameterProblem { code, pointer }, source, invoking, out)
}

/// "Destination unreachable" about `invoking`; see [`write()`].
///
/// # Errors
/// As [`write()`].
pub fn unreachable(
    reason: Unreachable,
    source: IpAddr,
    invoking: &[u8],
    out: &mut [u8],
) -> Result<usize, NotAnswered> {
    write(IcmpError::Unreachable(reason), source, invoking, out)
}
