//! The SIDs of this node, looked up by destination address.

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;

use crate::compressed_sid::{CompressedSid, Function};
use crate::endpoint::{Behaviour, Flavours};
use crate::sid::Locator;

/// Which of the addresses that arrive here are SIDs, and what each of them does. Immutable once built.
#[derive(Debug, Clone, Default)]
pub struct LocalSids {
    sids: Vec<(Ipv6Addr, Behaviour)>,
    /// Compressed SIDs: what follows the prefix is the way onwards. Hardly ever more than one.
    compressed: Vec<(Ipv6Net, Behaviour)>,
}

impl LocalSids {
    /// Sorts the table; of two entries with one address the later counts.
    #[must_use]
    pub fn new(sids: impl IntoIterator<Item = (Ipv6Addr, Behaviour)>) -> Self {
        let by_address: std::collections::BTreeMap<_, _> = sids.into_iter().collect();
        Self { sids: by_address.into_iter().collect(), compressed: Vec::new() }
    }

    /// The SIDs that every node has: End, End.DT4, End.DT6 and End.DT46, and the internet exit when offered.
    #[must_use]
    pub fn of_locator(locator: &Locator, internet: bool) -> Self {
        let always = [
            (locator.end(), Behaviour::END),
            (locator.dt4(), Behaviour::EndDt4),
            (locator.dt6(), Behaviour::EndDt6),
            (locator.dt46(), Behaviour::EndDt46),
        ];
        Self::new(always.into_iter().chain(internet.then_some((locator.internet(), Behaviour::Internet))))
    }

    /// Adds the SIDs of a node that has a compressed SID: the SID itself, whatever follows it in a destination, and
    /// behind it the ends of a path.
    #[must_use]
    pub fn with_compressed(mut self, sid: &CompressedSid, internet: bool) -> Self {
        let ends = [
            (Some(sid.function(Function::Dt4)), Behaviour::EndDt4),
            (Some(sid.function(Function::Dt6)), Behaviour::EndDt6),
            (Some(sid.function(Function::Dt46)), Behaviour::EndDt46),
            (internet.then(|| sid.function(Function::Internet)), Behaviour::Internet),
        ];
        self.sids.extend(ends.into_iter().filter_map(|(sid, behaviour)| Some((sid?, behaviour))));
        self.sids.sort_by_key(|(sid, _)| *sid);
        self.compressed.push((sid.prefix(), Behaviour::EndNext(Flavours::NONE, sid.block_len())));
        self
    }

    /// What the SID at this address does, if it is one of ours. Allocates nothing.
    #[must_use]
    pub fn lookup(&self, destination: Ipv6Addr) -> Option<Behaviour> {
        let exact = self.sids.binary_search_by_key(&destination, |(sid, _)| *sid).ok();
        if let Some((_, behaviour)) = exact.and_then(|at| self.sids.get(at)) {
            return Some(*behaviour);
        }
        let compressed = self.compressed.iter().find(|(prefix, _)| prefix.contains(&destination));
        compressed.map(|(_, behaviour)| *behaviour)
    }

    /// The prefixes of this node's compressed SIDs.
    pub fn compressed(&self) -> impl Iterator<Item = (Ipv6Net, Behaviour)> + '_ {
        self.compressed.iter().copied()
    }

    /// All SIDs that are one address each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv6Addr, Behaviour)> + '_ {
        self.sids.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_sids_are_found() {
        let locator = Locator::new("fd5d:ac:0:9::/64".parse().unwrap()).unwrap();
        let sids = LocalSids::of_locator(&locator, false);
        assert_eq!(sids.lookup(locator.end()), Some(Behaviour::END));
        assert_eq!(sids.lookup(locator.dt4()), Some(Behaviour::EndDt4));
        assert_eq!(sids.lookup(locator.dt6()), Some(Behaviour::EndDt6));
        assert_eq!(sids.lookup(locator.dt46()), Some(Behaviour::EndDt46));
        assert_eq!(sids.lookup(locator.internet()), None, "not offered");
        assert_eq!(sids.lookup(locator.node_address()), None, "an address, no SID");
        assert_eq!(sids.lookup("fd5d:ac:0:8::e".parse().unwrap()), None, "somebody else's");
        let exit = LocalSids::of_locator(&locator, true);
        assert_eq!(exit.lookup(locator.internet()), Some(Behaviour::Internet));
        assert_eq!(exit.iter().count(), 5);
    }

    #[test]
    fn of_two_entries_the_later_counts() {
        let sid = "fd5d:ac:0:9::e".parse().unwrap();
        let sids = LocalSids::new([(sid, Behaviour::END), (sid, Behaviour::EndDt46)]);
        assert_eq!(sids.lookup(sid), Some(Behaviour::EndDt46));
    }

    #[test]
    fn a_compressed_sid_is_a_prefix() {
        let block = "fd5d:ac::/32".parse().unwrap();
        let sid = CompressedSid::new(block, 9).unwrap();
        let sids = LocalSids::default().with_compressed(&sid, true);
        let next = Some(Behaviour::EndNext(Flavours::NONE, 32));
        assert_eq!(sids.lookup("fd5d:ac:9::".parse().unwrap()), next);
        assert_eq!(sids.lookup("fd5d:ac:9:a:b::".parse().unwrap()), next);
        assert_eq!(sids.lookup("fd5d:ac:9:f046::".parse().unwrap()), Some(Behaviour::EndDt46));
        assert_eq!(sids.lookup("fd5d:ac:a:9::".parse().unwrap()), None);
        let without = LocalSids::default().with_compressed(&sid, false);
        assert_eq!(without.lookup("fd5d:ac:9:f00f::".parse().unwrap()), next, "not offered: a waypoint");
    }
}
