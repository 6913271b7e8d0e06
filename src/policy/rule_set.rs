//! Sets of rules, as bits in the rules' order.

use std::collections::BTreeMap;

/// A set in a [`RuleSets`]: where it lies and which of its words are not zero at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleSet {
    offset: u32,
    /// The first word with a bit, and the word behind the last one. Equal in an empty set.
    first: u32,
    end: u32,
}

/// All sets of a table behind each other, each kept once.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleSets {
    bits: Vec<u64>,
}

impl RuleSets {
    /// The first rule from place `from` on that is in all sets.
    #[inline]
    pub(super) fn first_common(&self, sets: &[RuleSet], from: usize) -> Option<usize> {
        let first = sets.iter().map(|set| set.first as usize).max()?.max(from / 64);
        let end = sets.iter().map(|set| set.end as usize).min()?;
        // Bits below `from` in its own word don't count.
        let mut mask = if first == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
        for word in first..end {
            let common = sets.iter().fold(mask, |common, set| common & self.bits[set.offset as usize + word]);
            if common != 0 {
                return Some(word * 64 + common.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Whether the rule at `place` is in the set.
    pub(super) fn contains(&self, set: RuleSet, place: usize) -> bool {
        let word = self.bits.get(set.offset as usize + place / 64).copied().unwrap_or_default();
        word >> (place % 64) & 1 == 1
    }
}

/// Collects sets and keeps equal ones once.
#[derive(Debug, Default)]
pub(super) struct Interner {
    sets: RuleSets,
    known: BTreeMap<Vec<u64>, RuleSet>,
}

impl Interner {
    /// The handle of a set.
    pub(super) fn intern(&mut self, set: &[u64]) -> RuleSet {
        if let Some(known) = self.known.get(set) {
            return *known;
        }
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let first = set.iter().position(|word| *word != 0).unwrap_or_default();
        let end = set.iter().rposition(|word| *word != 0).map_or(first, |last| last + 1);
        let handle = RuleSet { offset: number(self.sets.bits.len()), first: number(first), end: number(end) };
        self.sets.bits.extend(set);
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
        Self { counts: vec![0; rules], bits: vec![0; rules.div_ceil(64).max(1)] }
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
        let mut interner = Interner::default();
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
        let mut interner = Interner::default();
        let low = interner.intern(set_of(200, &[1, 2]).bits());
        let high = interner.intern(set_of(200, &[190]).bits());
        let empty = interner.intern(set_of(200, &[]).bits());
        assert_eq!(interner.intern(set_of(200, &[2, 1]).bits()), low, "equal sets are one");
        let sets = interner.finish();
        assert_eq!(sets.first_common(&[low, high], 0), None);
        assert_eq!(sets.first_common(&[low, empty], 0), None);
        assert_eq!(sets.first_common(&[], 0), None);
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
