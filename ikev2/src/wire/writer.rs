//! Length fields that are known only after what they measure was written.

/// Appends what `body` writes, preceded by whatever is in `out` already, and stores at `at` (two octets,
/// big-endian) the number of octets from `from` to the end.
///
/// Lengths above 65,535 saturate; the callers' bounds keep every structure far below that.
pub(super) fn patch_length(out: &mut [u8], from: usize, at: usize) {
    let length = out.len().saturating_sub(from);
    let octets = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(field) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *field = octets;
    }
}

/// A count or length as one octet; callers keep within bounds.
pub(super) fn octet(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}
