//! How many bytes a path costs in front of the inner packet.

use crate::headend::Form;
use crate::ip::ipv6;

/// Bytes of the SRH in front of its segment list.
pub const SRH_FIXED_LEN: usize = 8;
/// Bytes of one segment in the list.
pub const SEGMENT_LEN: usize = 16;
/// Bytes of an HMAC TLV (RFC 8754 §2.1.2).
pub const HMAC_TLV_LEN: usize = 40;

/// Bytes that a path of `stops` segments adds to each packet.
///
/// One stop needs no SRH: 40 bytes. More need the SRH with all stops, or with all but the first when reduced.
#[must_use]
pub const fn of_path(stops: usize, form: Form) -> usize {
    let listed = match (form, stops) {
        (Form::Reduced, 0 | 1) => return ipv6::HEADER_LEN,
        (Form::Reduced, stops) => stops.saturating_sub(1),
        (Form::Full, stops) => stops,
    };
    ipv6::HEADER_LEN.saturating_add(SRH_FIXED_LEN).saturating_add(listed.saturating_mul(SEGMENT_LEN))
}
