//! Answers pings to addresses that no kernel owns: SIDs (RFC 9259 §3.1, RFC 4443 §4.2).

use super::ipv6::{self, Header};
use super::{Ipv6View, checksum, protocol};

const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const HOP_LIMIT: u8 = 64;

/// Writes the reply to an ICMPv6 Echo Request into `out` and returns its length.
///
/// The reply comes from the address that was asked, and goes back without the request's extension headers.
/// Returns `None` when the packet is no echo request with a right checksum and a unicast source, or does not fit
/// `out`.
#[must_use]
pub fn reply(request: &[u8], out: &mut [u8]) -> Option<usize> {
    let view = Ipv6View::parse(request).ok()?;
    let upper = view.upper_layer().ok()?;
    if upper.protocol != protocol::ICMPV6 || upper.fragment.is_some() {
        return None;
    }
    let (asked, asker) = (view.destination(), view.source());
    let valid = checksum::transport(asker.into(), asked.into(), protocol::ICMPV6, upper.bytes) == 0;
    if !valid || asker.is_multicast() || asker.is_unspecified() || asked.is_multicast() {
        return None;
    }
    let len = ipv6::HEADER_LEN.saturating_add(upper.bytes.len());
    let (ip, message) = out.get_mut(..len)?.split_first_chunk_mut::<{ ipv6::HEADER_LEN }>()?;
    *ip = Header {
        traffic_class: view.traffic_class(),
        flow_label: view.flow_label(),
        payload_len: u16::try_from(message.len()).ok()?,
        next_header: protocol::ICMPV6,
        hop_limit: HOP_LIMIT,
        source: asked,
        destination: asker,
    }
    .to_octets();
    message.copy_from_slice(upper.bytes);
    let header: &mut [u8; 8] = message.first_chunk_mut()?;
    if header[..2] != [ECHO_REQUEST, 0] {
        return None;
    }
    header[0] = ECHO_REPLY;
    // The pseudo-header's sum is the same with both addresses exchanged: only the type changed.
    let sum = u16::from_be_bytes([header[2], header[3]]);
    let old = u16::from_be_bytes([ECHO_REQUEST, 0]);
    let new = u16::from_be_bytes([ECHO_REPLY, 0]);
    [header[2], header[3]] = checksum::updated(sum, old, new).to_be_bytes();
    Some(len)
}
