//! Longest-prefix match for both families.

use ipnet::IpNet;
use std::net::IpAddr;

/// An immutable map from prefixes to values, looked up by longest match.
///
/// The prefixes of a family are flattened into disjoint ranges in ascending order, so that a
/// lookup is one binary search: no allocation, no hashing that a remote announcement could
/// aim at, and the same time whatever lengths the prefixes have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixTable<T> {
    entries: Vec<(IpNet, T)>,
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

/// Start of each range, and beside it the entry that covers the range (`NONE` for a hole).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ranges<K> {
    starts: Vec<K>,
    entries: Vec<u32>,
}

/// Marks a range that no prefix covers.
const NONE: u32 = u32::MAX;

impl<T> PrefixTable<T> {
    /// A table of `entries`. Of two entries with an equal prefix the later one counts.
    pub fn new(entries: impl IntoIterator<Item = (IpNet, T)>) -> Self {
        let mut entries: Vec<(IpNet, T)> =
            entries.into_iter().map(|(prefix, value)| (prefix.trunc(), value)).collect();
        entries.reverse();
        entries.sort_by_key(|(prefix, _)| (prefix.network(), prefix.prefix_len()));
        entries.dedup_by_key(|(prefix, _)| *prefix);
        let v4 =
            Ranges::flatten(entries.iter().enumerate().filter_map(|(index, (prefix, _))| match prefix {
                IpNet::V4(net) => Some((u32::from(net.network()), u32::from(net.broadcast()), index)),
                IpNet::V6(_) => None,
            }));
        let v6 =
            Ranges::flatten(entries.iter().enumerate().filter_map(|(index, (prefix, _))| match prefix {
                IpNet::V6(net) => Some((u128::from(net.network()), u128::from(net.broadcast()), index)),
                IpNet::V4(_) => None,
            }));
        PrefixTable { entries, v4, v6 }
    }

    /// The value of the longest prefix that contains `address`.
    #[inline]
    pub fn lookup(&self, address: IpAddr) -> Option<&T> {
        self.lookup_entry(address).map(|(_, value)| value)
    }

    /// The longest prefix that contains `address`, with its value.
    #[inline]
    pub fn lookup_entry(&self, address: IpAddr) -> Option<(&IpNet, &T)> {
        let index = match address {
            IpAddr::V4(address) => self.v4.find(u32::from(address)),
            IpAddr::V6(address) => self.v6.find(u128::from(address)),
        };
        self.entries.get(index as usize).map(|(prefix, value)| (prefix, value))
    }

    /// All prefixes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &(IpNet, T)> {
        self.entries.iter()
    }

    /// How many prefixes there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T> Default for PrefixTable<T> {
    fn default() -> Self {
        PrefixTable::new([])
    }
}

impl<T> FromIterator<(IpNet, T)> for PrefixTable<T> {
    fn from_iter<I: IntoIterator<Item = (IpNet, T)>>(entries: I) -> Self {
        PrefixTable::new(entries)
    }
}

/// An address as a number.
trait Key: Copy + Ord {
    /// The next address, if this is not the last.
    fn successor(self) -> Option<Self>;
}

impl Key for u32 {
    fn successor(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Key for u128 {
    fn successor(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl<K: Key> Ranges<K> {
    /// Flattens `(first, last, entry)` triples that are sorted by first address and then by
    /// growing length; prefixes nest or are disjoint, so an open stack of them suffices.
    fn flatten(prefixes: impl Iterator<Item = (K, K, usize)>) -> Self {
        let mut ranges = Ranges { starts: Vec::new(), entries: Vec::new() };
        let mut open: Vec<(K, u32)> = Vec::new();
        for (first, last, entry) in prefixes {
            while open.last().is_some_and(|(end, _)| *end < first) {
                ranges.close(&mut open);
            }
            let entry = u32::try_from(entry).unwrap_or(NONE);
            ranges.push(first, entry);
            open.push((last, entry));
        }
        while !open.is_empty() {
            ranges.close(&mut open);
        }
        ranges
    }

    /// Ends the innermost open prefix: what follows belongs to the one around it.
    fn close(&mut self, open: &mut Vec<(K, u32)>) {
        let Some((last, _)) = open.pop() else { return };
        let around = open.last().map_or(NONE, |(_, entry)| *entry);
        if let Some(next) = last.successor() {
            self.push(next, around);
        }
    }

    fn push(&mut self, start: K, entry: u32) {
        // A range that would be empty gives way to the later, more specific one.
        if self.starts.last() == Some(&start) {
            if let Some(last) = self.entries.last_mut() {
                *last = entry;
            }
            return;
        }
        self.starts.push(start);
        self.entries.push(entry);
    }

    #[inline]
    fn find(&self, address: K) -> u32 {
        let after = self.starts.partition_point(|start| *start <= address);
        after.checked_sub(1).and_then(|index| self.entries.get(index).copied()).unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(prefixes: &[&str]) -> PrefixTable<usize> {
        prefixes.iter().enumerate().map(|(index, text)| (text.parse().unwrap(), index)).collect()
    }

    #[test]
    fn the_longest_prefix_wins_and_holes_are_empty() {
        let table =
            table(&["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "::/0", "fd00::/8", "255.255.255.255/32"]);
        let find = |text: &str| table.lookup(text.parse().unwrap()).copied();
        assert_eq!(find("10.0.0.0"), Some(0));
        assert_eq!(find("10.1.255.255"), Some(1));
        assert_eq!(find("10.1.2.3"), Some(2));
        assert_eq!(find("10.1.2.4"), Some(1));
        assert_eq!(find("10.2.0.0"), Some(0));
        assert_eq!(find("11.0.0.0"), None);
        assert_eq!(find("9.255.255.255"), None);
        assert_eq!(find("255.255.255.255"), Some(5));
        assert_eq!(find("ffff::"), Some(3));
        assert_eq!(find("fdff::1"), Some(4));
    }

    #[test]
    fn the_later_of_two_equal_prefixes_counts() {
        let table = table(&["10.0.0.0/8", "10.9.9.9/8"]);
        assert_eq!(table.len(), 1);
        assert_eq!(table.lookup("10.0.0.1".parse().unwrap()), Some(&1));
    }

    /// Addresses from a small space, so that prefixes nest often.
    fn address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            (0u32..64).prop_map(|low| IpAddr::from(low.to_be_bytes())),
            (0u32..64).prop_map(|low| IpAddr::from((!low).to_be_bytes())),
            (0u128..64).prop_map(|low| IpAddr::from(low.to_be_bytes())),
            (0u128..64).prop_map(|low| IpAddr::from((!low).to_be_bytes())),
        ]
    }

    fn prefix() -> impl Strategy<Value = IpNet> {
        (address(), 0u8..10).prop_map(|(address, host_bits)| {
            let full = if address.is_ipv4() { 32 } else { 128 };
            let length = if host_bits == 9 { 0 } else { full - host_bits };
            IpNet::new(address, length).unwrap()
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_linear_search(
            prefixes in prop::collection::vec(prefix(), 0..24),
            addresses in prop::collection::vec(address(), 1..40),
        ) {
            let table: PrefixTable<usize> = prefixes.iter().copied().enumerate().map(|(i, p)| (p, i)).collect();
            for address in addresses {
                let expected = prefixes.iter().enumerate()
                    .filter(|(_, prefix)| prefix.contains(&address))
                    .max_by_key(|(index, prefix)| (prefix.prefix_len(), *index))
                    .map(|(index, _)| index);
                prop_assert_eq!(table.lookup(address).copied(), expected);
            }
        }
    }
}
