//! Sets of rules, as bits in the rules' order.

use std::collections::BTreeMap;

/// A set in a [`RuleSets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleSet {
    /// Where its summary stands; its bits follow. Bit `n` of the summary says whether there is a bit in the words
    /// from `n << shift` up to the next part.
    offset: u32,
}

/// All sets of a table behind each other, each kept once.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleSets {
    words: Vec<u64>,
    /// Words of one set.
    size: usize,
    /// How many words one bit of a summary stands for, as a power of two: 1 up to 4,096 rules.
    shift: u32,
}

impl RuleSets {
    /// The first rule from place `from` on that is in all sets.
    ///
    /// Most sets are nearly empty, so most words are never looked at: a part counts only if no summary excludes it.
    #[inline]
    pub(super) fn first_common<const N: usize>(&self, sets: &[RuleSet; N], from: usize) -> Option<usize> {
        let mut parts = sets.iter().fold(u64::MAX, |parts, set| parts & self.words[set.offset as usize]);
        while parts != 0 {
            let first = (parts.trailing_zeros() as usize) << self.shift;
            let end = (first + (1 << self.shift)).min(self.size);
            for at in first.max(from / 64)..end {
                // Bits below `from` in its own word don't count.
                let mask = if at == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
                let common =
                    sets.iter().fold(mask, |common, set| common & self.words[set.offset as usize + 1 + at]);
                if common != 0 {
                    return Some(at * 64 + common.trailing_zeros() as usize);
                }
            }
            parts &= parts - 1;
        }
        None
    }

    /// Whether the rule at `place` is in the set.
    pub(super) fn contains(&self, set: RuleSet, place: usize) -> bool {
        let word = self.words.get(set.offset as usize + 1 + place / 64).copied().unwrap_or_default();
        word >> (place % 64) & 1 == 1
    }
}

/// Collects sets of equal size and keeps equal ones once.
#[derive(Debug)]
pub(super) struct Interner {
    sets: RuleSets,
    known: BTreeMap<Vec<u64>, RuleSet>,
}

impl Interner {
    /// Collects sets of up to `rules` rules.
    pub(super) fn new(rules: usize) -> Self {
        let size = words(rules);
        let shift = size.div_ceil(64).next_power_of_two().trailing_zeros();
        Self { sets: RuleSets { words: Vec::new(), size, shift }, known: BTreeMap::new() }
    }

    /// The handle of a set.
    pub(super) fn intern(&mut self, set: &[u64]) -> RuleSet {
        if let Some(known) = self.known.get(set) {
            return *known;
        }
        let filled = set.iter().enumerate().filter(|(_, word)| **word != 0);
        let summary = filled.fold(0, |summary, (at, _)| summary | 1 << (at >> self.sets.shift));
        let offset = u32::try_from(self.sets.words.len()).unwrap_or(u32::MAX);
        let handle = RuleSet { offset };
        self.sets.words.push(summary);
        self.sets.words.extend(set);
        self.known.insert(set.to_vec(), handle);
        handle
    }

    /// All sets that were interned.
    pub(super) fn finish(self) -> RuleSets {
        self.sets
    }
}

/// A set that changes while values are swept in ascending order. A rule may be added several times, because its ranges
/// may overlap; it leaves when it was removed as often.
#[derive(Debug, Clone)]
pub(super) struct SweptSet {
    counts: Vec<u32>,
    bits: Vec<u64>,
}

impl SweptSet {
    /// An empty set of up to `rules` rules.
    pub(super) fn new(rules: usize) -> Self {
        Self { counts: vec![0; rules], bits: vec![0; words(rules)] }
    }

    pub(super) fn add(&mut self, place: usize) {
        self.counts[place] += 1;
        self.bits[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn remove(&mut self, place: usize) {
        self.counts[place] -= 1;
        if self.counts[place] == 0 {
            self.bits[place / 64] &= !(1 << (place % 64));
        }
    }

    pub(super) fn bits(&self) -> &[u64] {
        &self.bits
    }
}

/// Words that hold a bit for each rule.
fn words(rules: usize) -> usize {
    rules.div_ceil(64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(rules: usize, places: &[usize]) -> SweptSet {
        let mut set = SweptSet::new(rules);
        places.iter().for_each(|place| set.add(*place));
        set
    }

    #[test]
    fn the_first_common_rule_is_found_from_any_place() {
        let mut interner = Interner::new(200);
        let one = interner.intern(set_of(200, &[3, 64, 127, 130, 199]).bits());
        let other = interner.intern(set_of(200, &[2, 64, 130, 199]).bits());
        let sets = interner.finish();
        let found = |from| sets.first_common(&[one, other], from);
        assert_eq!(found(0), Some(64));
        assert_eq!(found(64), Some(64));
        assert_eq!(found(65), Some(130));
        assert_eq!(found(131), Some(199));
        assert_eq!(found(200), None);
        assert!(sets.contains(one, 3) && !sets.contains(other, 3));
    }

    #[test]
    fn disjoint_and_empty_sets_have_nothing_in_common() {
        let mut interner = Interner::new(200);
        let low = interner.intern(set_of(200, &[1, 2]).bits());
        let high = interner.intern(set_of(200, &[190]).bits());
        let empty = interner.intern(set_of(200, &[]).bits());
        assert_eq!(interner.intern(set_of(200, &[2, 1]).bits()), low, "equal sets are one");
        let sets = interner.finish();
        assert_eq!(sets.first_common(&[low, high], 0), None);
        assert_eq!(sets.first_common(&[low, empty], 0), None);
    }

    #[test]
    fn a_summary_bit_may_stand_for_many_words() {
        const RULES: usize = 60_000;
        let mut interner = Interner::new(RULES);
        let one = interner.intern(set_of(RULES, &[5, 1030, 40_000, 59_999]).bits());
        let other = interner.intern(set_of(RULES, &[6, 1090, 40_000, 59_999]).bits());
        let sets = interner.finish();
        let found = |from| sets.first_common(&[one, other], from);
        assert_eq!(found(0), Some(40_000));
        assert_eq!(found(40_001), Some(59_999));
        assert_eq!(found(60_000), None);
    }

    #[test]
    fn a_rule_leaves_when_its_last_range_ends() {
        let mut set = set_of(10, &[4, 4]);
        set.remove(4);
        assert_eq!(set.bits(), [1 << 4]);
        set.remove(4);
        assert_eq!(set.bits(), [0]);
    }
}
