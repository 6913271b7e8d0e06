//! The SIDs of this node, looked up by destination address.

use std::net::Ipv6Addr;

use crate::endpoint::Behaviour;
use crate::sid::Locator;

/// Which of the addresses that arrive here are SIDs, and what each of them does. Immutable once built.
#[derive(Debug, Clone, Default)]
pub struct LocalSids {
    sids: Vec<(Ipv6Addr, Behaviour)>,
}

impl LocalSids {
    /// Sorts the table; of two entries with one address the later counts.
    #[must_use]
    pub fn new(sids: impl IntoIterator<Item = (Ipv6Addr, Behaviour)>) -> Self {
        let by_address: std::collections::BTreeMap<_, _> = sids.into_iter().collect();
        Self { sids: by_address.into_iter().collect() }
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

    /// What the SID at this address does, if it is one of ours. Allocates nothing.
    #[must_use]
    pub fn lookup(&self, destination: Ipv6Addr) -> Option<Behaviour> {
        let at = self.sids.binary_search_by_key(&destination, |(sid, _)| *sid).ok()?;
        self.sids.get(at).map(|(_, behaviour)| *behaviour)
    }

    /// All SIDs in order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv6Addr, Behaviour)> + '_ {
        self.sids.iter().copied()
    }
}
