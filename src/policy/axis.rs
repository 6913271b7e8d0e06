//! One part of all rules, compiled: from a value to the set of rules that accept it.

use super::rule_set::{Interner, RuleSet, SweptSet};
use super::sorted_keys::{Key, SortedKeys};

/// A value that ranges are made of.
pub(super) trait Value: Key {
    /// The smallest value.
    const MIN: Self;

    /// The next value, if this is not the last.
    fn successor(self) -> Option<Self>;
}

macro_rules! value {
    ($($number:ty),*) => { $(
        impl Value for $number {
            const MIN: Self = <$number>::MIN;

            fn successor(self) -> Option<Self> {
                self.checked_add(1)
            }
        }
    )* };
}

value!(u8, u16, u32, u128);

/// Ascending disjoint ranges that cover all values: where each begins, and the rules that accept its values.
#[derive(Debug, Clone)]
pub(super) struct Axis<V> {
    starts: SortedKeys<V>,
    sets: Vec<RuleSet>,
}

/// What one rule accepts on an axis: anything, or the values of ranges (both ends belong to them).
pub(super) enum Accepts<V> {
    Anything,
    Ranges(Vec<(V, V)>),
}

impl<V: Value> Axis<V> {
    /// Compiles what each rule accepts, in the rules' order.
    pub(super) fn compile(rules: &[Accepts<V>], interner: &mut Interner) -> Self {
        let mut set = SweptSet::new(rules.len());
        let mut changes = Vec::new();
        for (place, accepts) in rules.iter().enumerate() {
            match accepts {
                Accepts::Anything => set.add(place),
                Accepts::Ranges(ranges) => {
                    for (start, end) in ranges.iter().filter(|(start, end)| start <= end) {
                        changes.push((*start, Change::Add, place));
                        changes.extend(end.successor().map(|behind| (behind, Change::Remove, place)));
                    }
                }
            }
        }
        changes.sort_unstable();
        let ranges = sweep(set, &changes, interner);
        let (starts, sets): (Vec<V>, Vec<RuleSet>) = ranges.into_iter().unzip();
        Self { starts: SortedKeys::new(starts), sets }
    }

    /// The rules that accept a value.
    #[inline]
    pub(super) fn lookup(&self, value: V) -> RuleSet {
        self.sets[self.starts.last_at_most(value)]
    }
}

/// Turns what begins and ends at each value into ranges with the rules that accept them.
fn sweep<V: Value>(
    mut set: SweptSet,
    changes: &[(V, Change, usize)],
    interner: &mut Interner,
) -> Vec<(V, RuleSet)> {
    let mut ranges = vec![(V::MIN, interner.intern(set.bits()))];
    for changes in changes.chunk_by(|one, other| one.0 == other.0) {
        for (_, change, place) in changes {
            match change {
                Change::Add => set.add(*place),
                Change::Remove => set.remove(*place),
            }
        }
        let (start, accepted) = (changes[0].0, interner.intern(set.bits()));
        match ranges.last_mut() {
            Some(last) if last.0 == start => last.1 = accepted,
            Some(last) if last.1 == accepted => {}
            _ => ranges.push((start, accepted)),
        }
    }
    ranges
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Add,
    Remove,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_touch_and_reach_the_ends() {
        let rules = [
            Accepts::Ranges(vec![(0_u8, 9), (5, 20), (200, 255)]),
            Accepts::Anything,
            Accepts::Ranges(vec![]),
            Accepts::Ranges(vec![(21, 21), (0, 0)]),
            Accepts::Ranges(vec![(9, 3)]),
        ];
        let mut interner = Interner::new(rules.len());
        let axis = Axis::compile(&rules, &mut interner);
        let sets = interner.finish();
        for value in 0..=255 {
            let set = axis.lookup(value);
            assert_eq!(sets.contains(set, 0), value <= 20 || value >= 200, "{value}");
            assert!(sets.contains(set, 1));
            assert!(!sets.contains(set, 2));
            assert_eq!(sets.contains(set, 3), value == 21 || value == 0, "{value}");
            assert!(!sets.contains(set, 4), "a range that ends before it begins is empty");
        }
    }
}
