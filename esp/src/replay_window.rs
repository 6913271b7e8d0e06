//! The anti-replay window of an inbound SA (RFC 4303 §3.4.3) and the inference of the high half of an
//! extended sequence number (RFC 4303 appendix A2.2).

use crate::error::Discard;

const WORD_BITS: u64 = 64;

/// Where an acceptable sequence number lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Above every number so far.
    Ahead,
    /// Inside the window, not seen yet.
    Within,
}

/// Which of the last `size` sequence numbers were seen, as a ring of bits.
///
/// Bit `s % 64` of word `s / 64` (modulo the ring) stands for number `s`. Moving on clears the words that
/// are entered, never shifts anything, so that the cost per packet doesn't depend on the size.
#[derive(Debug, Clone)]
pub struct ReplayWindow {
    top: u64,
    size: u64,
    words: Box<[u64]>,
}

impl ReplayWindow {
    /// A window over `size` numbers (at least one). Number 0, which no packet may carry, counts as seen.
    #[must_use]
    pub fn new(size: u32) -> Self {
        let size = size.max(1);
        // One word more than the window fills, because it rarely begins on a word's first bit.
        let words = (size.div_ceil(64) as usize + 1).next_power_of_two();
        let mut window = Self { top: 0, size: u64::from(size), words: vec![0; words].into_boxed_slice() };
        window.words[0] = 1;
        window
    }

    /// The highest number that was set; 0 at first.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The 64-bit number that a packet with these low 32 bits must have, or `None` if that would be before
    /// the first or after the last number there is.
    //= RFC 4303 appendix A2.2
    #[inline]
    #[must_use]
    pub fn infer(&self, low: u32) -> Option<u64> {
        let [t0, t1, t2, t3, l0, l1, l2, l3] = self.top.to_be_bytes();
        let top_high = u32::from_be_bytes([t0, t1, t2, t3]);
        let top_low = u32::from_be_bytes([l0, l1, l2, l3]);
        let reach = u32::try_from(self.size - 1).unwrap_or(u32::MAX);
        let bottom_low = top_low.wrapping_sub(reach);
        let window_in_one_subspace = top_low >= reach;
        let high = match (window_in_one_subspace, low >= bottom_low) {
            (true, true) | (false, false) => top_high,
            (true, false) => top_high.checked_add(1)?,
            (false, true) => top_high.checked_sub(1)?,
        };
        Some((u64::from(high) << 32) | u64::from(low))
    }

    /// Whether a packet with this number may be accepted. Changes nothing.
    ///
    /// # Errors
    /// [`Discard::Replayed`] if it was seen, [`Discard::OutsideWindow`] if it is too old to know.
    #[inline]
    pub fn check(&self, sequence: u64) -> Result<Place, Discard> {
        if sequence > self.top {
            return Ok(Place::Ahead);
        }
        if self.top - sequence >= self.size {
            return Err(Discard::OutsideWindow);
        }
        let (word, bit) = self.locate(sequence);
        if self.words[word] & bit == 0 { Ok(Place::Within) } else { Err(Discard::Replayed) }
    }

    /// Checks again and remembers the number. Only for packets whose ICV was verified.
    ///
    /// # Errors
    /// Those of [`ReplayWindow::check`]; then nothing was changed.
    //= RFC 4303 §3.4.3 (the window is updated only after the ICV was verified)
    #[inline]
    pub fn set(&mut self, sequence: u64) -> Result<Place, Discard> {
        let place = self.check(sequence)?;
        if place == Place::Ahead {
            self.advance(sequence);
        }
        let (word, bit) = self.locate(sequence);
        self.words[word] |= bit;
        Ok(place)
    }

    fn advance(&mut self, top: u64) {
        let current = self.top / WORD_BITS;
        let entered = (top / WORD_BITS - current).min(self.words.len() as u64);
        for offset in 1..=entered {
            let (word, _) = self.locate((current + offset).wrapping_mul(WORD_BITS));
            self.words[word] = 0;
        }
        self.top = top;
    }

    #[inline]
    fn locate(&self, sequence: u64) -> (usize, u64) {
        // Cutting the word number to a usize changes nothing: the mask is smaller.
        let mask = self.words.len() - 1;
        ((sequence / WORD_BITS) as usize & mask, 1 << (sequence % WORD_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// What RFC 4303 §3.4.3 says, as a set without any cleverness.
    struct Model {
        size: u64,
        top: u64,
        seen: BTreeSet<u64>,
    }

    impl Model {
        fn new(size: u32) -> Self {
            Self { size: u64::from(size), top: 0, seen: BTreeSet::from([0]) }
        }

        fn set(&mut self, sequence: u64) -> Result<Place, Discard> {
            if self.seen.contains(&sequence) && self.top < sequence.saturating_add(self.size) {
                return Err(Discard::Replayed);
            }
            if sequence.saturating_add(self.size) <= self.top {
                return Err(Discard::OutsideWindow);
            }
            let place = if sequence > self.top { Place::Ahead } else { Place::Within };
            self.seen.insert(sequence);
            self.top = self.top.max(sequence);
            Ok(place)
        }
    }

    fn moved_to(size: u32, top: u64) -> ReplayWindow {
        let mut window = ReplayWindow::new(size);
        assert_eq!(window.set(top), Ok(Place::Ahead));
        window
    }

    #[test]
    fn number_zero_is_never_accepted() {
        let mut window = ReplayWindow::new(4096);
        assert_eq!(window.set(0), Err(Discard::Replayed));
        assert_eq!(window.set(1), Ok(Place::Ahead));
        assert_eq!(window.set(0), Err(Discard::Replayed));
    }

    #[test]
    fn both_edges_are_exact() {
        let mut window = moved_to(4096, 10_000);
        assert_eq!(window.set(10_000), Err(Discard::Replayed));
        assert_eq!(window.set(10_000 - 4096), Err(Discard::OutsideWindow));
        assert_eq!(window.set(10_000 - 4095), Ok(Place::Within));
        assert_eq!(window.set(10_000 - 4095), Err(Discard::Replayed));
        assert_eq!(window.set(10_001), Ok(Place::Ahead));
        assert_eq!(window.set(10_000 - 4095), Err(Discard::OutsideWindow));
    }

    #[test]
    fn a_jump_forgets_everything_below() {
        let mut window = ReplayWindow::new(4096);
        for sequence in 1..=8192 {
            assert_eq!(window.set(sequence), Ok(Place::Ahead));
        }
        for sequence in [1 << 40, u64::MAX] {
            assert_eq!(window.set(sequence), Ok(Place::Ahead));
            for below in 1..4096 {
                assert_eq!(window.check(sequence - below), Ok(Place::Within), "{below}");
            }
            assert_eq!(window.check(sequence - 4096), Err(Discard::OutsideWindow));
        }
    }

    #[test]
    fn a_failed_check_changes_nothing() {
        let mut window = moved_to(64, 1000);
        let before = format!("{window:?}");
        assert!(window.set(1000).is_err());
        assert!(window.set(1).is_err());
        assert_eq!(format!("{window:?}"), before);
    }

    /// The two cases of appendix A2.2, on both sides of the boundary.
    #[test]
    fn high_half_at_the_32_bit_boundary() {
        const BOUNDARY: u64 = 1 << 32;
        // Window inside one subspace.
        let below = moved_to(4096, BOUNDARY - 1);
        assert_eq!(below.infer(0xffff_ffff), Some(BOUNDARY - 1));
        assert_eq!(below.infer(0xffff_f000), Some(BOUNDARY - 4096));
        assert_eq!(below.infer(0xffff_efff), Some(BOUNDARY + 0xffff_efff));
        assert_eq!(below.infer(0), Some(BOUNDARY));
        // Window across two.
        let across = moved_to(4096, BOUNDARY + 10);
        assert_eq!(across.infer(10), Some(BOUNDARY + 10));
        assert_eq!(across.infer(11), Some(BOUNDARY + 11));
        assert_eq!(across.infer(0xffff_ffff), Some(BOUNDARY - 1));
        assert_eq!(across.infer(0xffff_f00b), Some(BOUNDARY - 4085));
        assert_eq!(across.infer(0xffff_f00a), Some(BOUNDARY + 0xffff_f00a));
        // Window entirely behind it.
        let behind = moved_to(4096, BOUNDARY + 4095);
        assert_eq!(behind.infer(0), Some(BOUNDARY));
        assert_eq!(behind.infer(0xffff_ffff), Some(BOUNDARY + 0xffff_ffff));
    }

    #[test]
    fn there_is_nothing_before_the_first_or_after_the_last() {
        let first = moved_to(4096, 1);
        assert_eq!(first.infer(0xffff_ffff), None);
        assert_eq!(first.infer(2), Some(2));
        let last = moved_to(4096, u64::MAX);
        assert_eq!(last.infer(0), None);
        assert_eq!(last.infer(0xffff_ffff), Some(u64::MAX));
    }

    fn sequences() -> impl Strategy<Value = Vec<u64>> {
        // Mostly near the top, as steps; now and then a jump, so that words are reused.
        let step = prop_oneof![
            8 => -40i64..=40,
            3 => -6000i64..=6000,
            1 => 0i64..=1_000_000,
        ];
        (0u64..(1 << 34), proptest::collection::vec(step, 1..400)).prop_map(|(start, steps)| {
            let mut top = start;
            steps
                .into_iter()
                .map(|step| {
                    let sequence = top.saturating_add_signed(step);
                    top = top.max(sequence);
                    sequence
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_set_model(size in prop_oneof![Just(4096u32), 1u32..300], sequences in sequences()) {
            let mut window = ReplayWindow::new(size);
            let mut model = Model::new(size);
            for sequence in sequences {
                let expected = model.set(sequence);
                prop_assert_eq!(window.check(sequence), expected);
                prop_assert_eq!(window.set(sequence), expected);
                prop_assert_eq!(window.top(), model.top);
            }
        }

        /// The inferred number is the only candidate inside or ahead of the window within 2^32.
        #[test]
        fn inference_finds_the_number_that_was_sent(
            top in 4096u64..(1 << 40),
            ahead in 0u64..(1 << 31),
            behind in 0u64..4096,
        ) {
            let window = moved_to(4096, top);
            for sequence in [top + ahead, top - behind] {
                let low = u32::try_from(sequence & 0xffff_ffff).unwrap();
                prop_assert_eq!(window.infer(low), Some(sequence));
            }
        }
    }
}
