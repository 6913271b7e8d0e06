//! The route table (RFC 8966 §3.2.6), keyed by prefix, source prefix and neighbour.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use crate::{INFINITY, Prefix, RouterId, Seqno, feasibility::Distance, neighbour::NeighbourKey};

/// A route that a neighbour announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) router_id: RouterId,
    pub(crate) seqno: Seqno,
    /// The neighbour's metric; 65535 after a retraction or expiry.
    pub(crate) advertised: u16,
    pub(crate) next_hop: IpAddr,
    pub(crate) expires: Instant,
    /// How long it lives without being announced again.
    pub(crate) hold: Duration,
    /// The neighbour was asked to announce it again before it expires.
    pub(crate) refresh_asked: bool,
}

impl Route {
    pub(crate) const fn distance(&self) -> Distance {
        Distance { seqno: self.seqno, metric: self.advertised }
    }

    /// Whether nothing but the time of expiry differs.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        let said = |route: &Self| (route.router_id, route.seqno, route.advertised, route.next_hop);
        said(self) == said(other)
    }

    //= RFC 8966 §3.5.2
    /// The total metric over a link of this cost.
    pub(crate) fn metric(&self, cost: u16) -> u16 {
        if self.advertised == INFINITY || cost == INFINITY {
            return INFINITY;
        }
        self.advertised.saturating_add(cost)
    }
}

/// What we told neighbours last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) router_id: RouterId,
    pub(crate) metric: u16,
}

/// What is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) key: NeighbourKey,
    pub(crate) next_hop: IpAddr,
    pub(crate) router_id: RouterId,
}

/// All routes for one prefix.
#[derive(Debug, Default)]
pub(crate) struct Destination {
    pub(crate) routes: BTreeMap<NeighbourKey, Route>,
    pub(crate) installed: Option<Installed>,
    pub(crate) challenger: Option<(NeighbourKey, Instant)>,
    pub(crate) told: Option<Told>,
}

impl Destination {
    /// The selected route and the neighbour that announced it.
    pub(crate) fn selected(&self) -> Option<(NeighbourKey, &Route)> {
        let key = self.installed?.key;
        self.routes.get(&key).map(|route| (key, route))
    }
}

/// All destinations that neighbours announced.
pub(crate) type RouteTable = BTreeMap<Prefix, Destination>;
