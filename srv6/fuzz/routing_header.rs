//! What must hold for any bytes taken for a segment routing header. Shared by the fuzz target and the replayed corpus.

use srv6::wire::{SegmentRoutingHeader, SrhView};

/// Reads the bytes as a header; what reads strictly must write back what was read.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(view) = SrhView::parse(bytes) else { return };
    assert_eq!(view.len(), bytes.len());
    for index in 0..=u8::MAX {
        let _ = view.segment(index);
    }
    assert!(view.segments().count() <= bytes.len() / 16);
    let mut tlv_bytes = 0;
    for tlv in view.tlvs() {
        tlv_bytes += 1;
        assert!(tlv_bytes <= bytes.len(), "each TLV takes at least a byte");
        if tlv.is_err() {
            break;
        }
    }
    if let Ok(Some((at, hmac))) = view.hmac() {
        assert!(at + 8 + hmac.digest.len() <= bytes.len());
    }
    let Ok(value) = SegmentRoutingHeader::parse(&view) else { return };
    assert!(view.is_consistent());
    let mut out = [0xaa; 512];
    let len = value.emit(&mut out).expect("room for the longest header");
    let again = SrhView::parse(&out[..len]).expect("what we write, we read");
    assert_eq!(SegmentRoutingHeader::parse(&again), Ok(value));
}
