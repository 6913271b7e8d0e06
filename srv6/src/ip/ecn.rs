//! Explicit congestion notification at tunnel ends (RFC 6040).

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
