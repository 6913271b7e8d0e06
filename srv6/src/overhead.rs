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

/// Bytes that a path of `stops` segments adds to each packet when its header carries an HMAC, which a single stop needs
/// a header for.
#[must_use]
pub const fn with_hmac(stops: usize, form: Form) -> usize {
    let form = if stops <= 1 { Form::Full } else { form };
    of_path(stops, form).saturating_add(HMAC_TLV_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_per_path() {
        let costs = [(1, 40, 64), (2, 64, 80), (3, 80, 96), (4, 96, 112), (6, 128, 144), (16, 288, 304)];
        for (stops, reduced, full) in costs {
            assert_eq!(of_path(stops, Form::Reduced), reduced);
            assert_eq!(of_path(stops, Form::Full), full);
        }
        assert_eq!(with_hmac(1, Form::Reduced), 104);
        assert_eq!(with_hmac(4, Form::Reduced), 136);
    }
}
