//! A sorted list of keys that is searched in few steps.

/// A number that keys are made of.
pub(super) trait Key: Copy + Ord {
    /// How many bits it has.
    const BITS: u32;

    /// The place of a key in a window that begins at `start` and has slots of `1 << shift` values; `None` below it.
    fn slot(self, start: Self, shift: u32) -> Option<usize>;

    /// The key with its lowest bits cleared, so that `high_bits` (at least one) are left.
    fn masked(self, high_bits: u32) -> Self;

    /// The key that lies this many slots of `1 << shift` values above; `None` if there is none.
    fn advanced(self, slots: usize, shift: u32) -> Option<Self>;
}

macro_rules! key {
    ($($number:ty),*) => { $(
        impl Key for $number {
            const BITS: u32 = <$number>::BITS;

            #[inline]
            fn slot(self, start: Self, shift: u32) -> Option<usize> {
                usize::try_from(self.checked_sub(start)? >> shift).ok()
            }

            fn masked(self, high_bits: u32) -> Self {
                self & <$number>::MAX << (Self::BITS - high_bits)
            }

            fn advanced(self, slots: usize, shift: u32) -> Option<Self> {
                let slots = <$number>::try_from(slots).ok()?;
                let distance = slots.checked_mul(<$number>::try_from(1_u128 << shift).ok()?)?;
                self.checked_add(distance)
            }
        }
    )* };
}

key!(u8, u16, u32, u128);

/// Ascending keys, with an index over that part of the numbers where most of them lie.
///
/// A binary search over twenty thousand keys takes fifteen steps that wait for each other. The index leads to the few
/// keys of one slot; keys outside its window are searched the slow way.
#[derive(Debug, Clone)]
pub(super) struct SortedKeys<K> {
    keys: Vec<K>,
    start: K,
    shift: u32,
    /// How many keys lie below each slot, and below the end of the window.
    below: Vec<u32>,
}

/// Lists shorter than this need no index.
const INDEXED_FROM: usize = 32;
/// The window holds at least this part of the keys: one in so many may lie outside.
const OUTSIDE: usize = 4;
const MAX_INDEX_BITS: u32 = 16;

impl<K: Key> SortedKeys<K> {
    /// Takes ascending keys, of which the first is the smallest number there is.
    pub(super) fn new(keys: Vec<K>) -> Self {
        let mut sorted = Self { start: keys[0], shift: 0, below: Vec::new(), keys };
        if sorted.keys.len() >= INDEXED_FROM {
            sorted.index();
        }
        sorted
    }

    /// The place of the last key that is not above `value`.
    #[inline]
    pub(super) fn last_at_most(&self, value: K) -> usize {
        let (low, high) = self.bounds(value).unwrap_or((0, self.keys.len()));
        let not_above = low + self.keys[low..high].partition_point(|key| *key <= value);
        // The first key is not above any value.
        not_above.saturating_sub(1)
    }

    #[inline]
    fn bounds(&self, value: K) -> Option<(usize, usize)> {
        let slot = value.slot(self.start, self.shift)?;
        let bounds = self.below.get(slot..slot.checked_add(2)?)?;
        Some((bounds[0] as usize, bounds[1] as usize))
    }

    /// Chooses the smallest power-of-two window around the median that holds most keys, and counts the keys below each
    /// of its slots.
    fn index(&mut self) {
        let median = self.keys[self.keys.len() / 2];
        let held = |high_bits: u32| {
            let start = median.masked(high_bits);
            self.keys.iter().filter(|key| key.masked(high_bits) == start).count()
        };
        let enough = self.keys.len() - self.keys.len() / OUTSIDE;
        let high_bits = (1..K::BITS).take_while(|bits| held(*bits) >= enough).last().unwrap_or(0);
        let index_bits = (self.keys.len().ilog2() + 2).min(MAX_INDEX_BITS).min(K::BITS - high_bits);
        self.start = if high_bits == 0 { self.keys[0] } else { median.masked(high_bits) };
        self.shift = K::BITS - high_bits - index_bits;
        let below = |slot: usize| match self.start.advanced(slot, self.shift) {
            Some(bound) => self.keys.partition_point(|key| *key < bound),
            None => self.keys.len(),
        };
        self.below =
            (0..=1 << index_bits).map(|slot| u32::try_from(below(slot)).unwrap_or(u32::MAX)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_finds<K: Key + std::fmt::Debug>(keys: Vec<K>, values: impl IntoIterator<Item = K>) {
        let sorted = SortedKeys::new(keys.clone());
        for value in values {
            let expected = keys.iter().rposition(|key| *key <= value).expect("the first key is the smallest");
            assert_eq!(sorted.last_at_most(value), expected, "{value:?}");
        }
    }

    #[test]
    fn every_number_finds_its_key() {
        assert_finds(vec![0_u8], 0..=255);
        assert_finds((0_u8..=255).collect(), 0..=255);
        assert_finds((0_u8..100).map(|at| at * 2).collect(), 0..=255);
        let squares = (0_u16..256).map(|at| at * at).collect();
        assert_finds(squares, 0..=u16::MAX);
        let crowded: Vec<u16> = [0].into_iter().chain(0x4000..0x4100).chain([0x8000, u16::MAX]).collect();
        assert_finds(crowded, 0..=u16::MAX);
    }

    #[test]
    fn keys_close_together_and_far_away_are_found() {
        let far = [0_u128, 1, u128::MAX - 1, u128::MAX];
        let close = (0..3000_u128).map(|at| 0xfd5d << 112 | 0xac << 96 | (at * at) << 40);
        let mut keys: Vec<u128> = far.into_iter().chain(close).collect();
        keys.sort_unstable();
        let values: Vec<u128> =
            keys.iter().flat_map(|key| [key.saturating_sub(1), *key, key.saturating_add(1)]).collect();
        assert_finds(keys, values);
        let ends: Vec<u32> = [0].into_iter().chain(u32::MAX - 99..=u32::MAX).collect();
        let values: Vec<u32> = ends.iter().flat_map(|key| [key.saturating_sub(1), *key]).collect();
        assert_finds(ends, values);
    }
}
