//! Explicit congestion notification at tunnel ends (RFC 6040).

use super::checksum;

/// The two low bits of the traffic class.
pub const MASK: u8 = 0b11;
/// Not ECN-capable.
pub const NOT_ECT: u8 = 0b00;
/// ECN-capable, ECT(1).
pub const ECT_1: u8 = 0b01;
/// ECN-capable, ECT(0).
pub const ECT_0: u8 = 0b10;
/// Congestion experienced.
pub const CE: u8 = 0b11;

/// The codepoint that the inner packet must carry after its outer header is removed; `None` means drop.
///
//= RFC 6040 §4.2, figure 4
/// Inner Not-ECT with outer CE is dropped: the congestion signal can't be delivered in another way. Inner CE
/// stays. Outer ECT(1) overrides inner ECT(0), outer CE overrides both.
#[must_use]
pub const fn decapsulated(inner: u8, outer: u8) -> Option<u8> {
    match (inner & MASK, outer & MASK) {
        (NOT_ECT, CE) => None,
        (NOT_ECT, _) => Some(NOT_ECT),
        (CE, _) | (_, CE) => Some(CE),
        (ECT_0, ECT_1) => Some(ECT_1),
        (inner, _) => Some(inner),
    }
}

/// Writes the ECN codepoint of an IPv4 or IPv6 packet; the IPv4 header checksum is kept right. Anything else stays
/// as it is.
pub fn set_ecn(packet: &mut [u8], codepoint: u8) {
    match packet.first().map(|octet| octet >> 4) {
        Some(4) => {
            let Some(header) = packet.first_chunk_mut::<20>() else { return };
            // An update by nothing would still turn a checksum of all ones into zero.
            if header[1] & MASK == codepoint & MASK {
                return;
            }
            let old = u16::from_be_bytes([header[0], header[1]]);
            header[1] = (header[1] & !MASK) | (codepoint & MASK);
            let new = u16::from_be_bytes([header[0], header[1]]);
            let sum = checksum::updated(u16::from_be_bytes([header[10], header[11]]), old, new);
            [header[10], header[11]] = sum.to_be_bytes();
        }
        Some(6) => {
            let Some(header) = packet.first_chunk_mut::<2>() else { return };
            header[1] = (header[1] & !(MASK << 4)) | ((codepoint & MASK) << 4);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6040 figure 4, row by row.
    #[test]
    fn decapsulation_table() {
        let outer = [NOT_ECT, ECT_0, ECT_1, CE];
        let rows = [
            (NOT_ECT, [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None]),
            (ECT_0, [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)]),
            (ECT_1, [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)]),
            (CE, [Some(CE), Some(CE), Some(CE), Some(CE)]),
        ];
        for (inner, expected) in rows {
            for (outer, expected) in outer.into_iter().zip(expected) {
                // The other bits of a traffic class don't matter.
                assert_eq!(decapsulated(inner | 0xa4, outer | 0x58), expected, "{inner:02b} in {outer:02b}");
            }
        }
    }
}
