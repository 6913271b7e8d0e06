//! Configuration values. Defaults suit a mesh of point-to-point links across the internet.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use crate::{RouterId, Seqno, authentication::MacKey};

/// An interface as the caller numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u32);

/// What holds for the whole router.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our identity as a source of routes.
    pub router_id: RouterId,
    /// The persisted sequence number; `None` if it was lost or there never was one. Then a neighbour's seqno
    /// request or an echo of our own announcement may move it by more than one for the first ten minutes.
    pub seqno: Option<Seqno>,
    /// How links are priced.
    pub cost: CostMap,
    /// How reluctantly a working route is left for a better one.
    pub hysteresis: Hysteresis,
    /// Bounds on what peers can make us store.
    pub limits: Limits,
}

impl Config {
    /// The defaults for a router of this identity.
    #[must_use]
    pub fn new(router_id: RouterId) -> Self {
        Self {
            router_id,
            seqno: None,
            cost: CostMap::default(),
            hysteresis: Hysteresis::default(),
            limits: Limits::default(),
        }
    }
}

/// Link cost: a base, a part for round-trip time (RFC 9616 §4) and a part for loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostMap {
    /// The cost of a loss-free link of no length, advertised as rxcost.
    pub rxcost: u16,
    /// Up to this round-trip time nothing is added.
    pub rtt_min: Duration,
    /// From this round-trip time on, `rtt_cost` is added; linear in between.
    pub rtt_max: Duration,
    /// The most that round-trip time can add.
    pub rtt_cost: u16,
    /// Added to the advertised rxcost for each percent of Hellos lost.
    pub loss_cost_per_percent: u16,
}

impl Default for CostMap {
    fn default() -> Self {
        Self {
            rxcost: 8,
            rtt_min: Duration::from_millis(1),
            rtt_max: Duration::from_millis(1001),
            rtt_cost: 4000,
            loss_cost_per_percent: 20,
        }
    }
}

/// Selection leaves a usable route for a better one if the gain is decisive, or if it is clear and lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hysteresis {
    /// Gains below this (metric units), or below a third of a metric that is small, never move a route.
    pub margin: u16,
    /// How long a gain of `margin` must last. Greater ones need less time, the decisive one none.
    pub hold: Duration,
    /// A gain of at least this, and of at least a quarter of the metric, moves the route at once.
    pub decisive: u16,
}

impl Hysteresis {
    /// The least gain over a route of this metric that can move traffic.
    pub(crate) fn clear_gain(&self, metric: u16) -> u16 {
        self.margin.min(metric / 3).max(1)
    }

    /// How long a gain over a route of this metric must last. `None`: it never moves traffic.
    pub(crate) fn hold_for(&self, gain: u16, metric: u16) -> Option<Duration> {
        let clear = self.clear_gain(metric);
        let decisive = self.decisive.max(metric / 4);
        match (gain >= clear, gain >= decisive) {
            (false, _) => None,
            (true, true) => Some(Duration::ZERO),
            (true, false) => Some(self.hold * u32::from(decisive - gain) / u32::from(decisive - clear)),
        }
    }

    /// Always take the best route at once (for tests, and for networks without noise).
    #[must_use]
    pub const fn none() -> Self {
        Self { margin: 1, hold: Duration::ZERO, decisive: 1 }
    }
}

impl Default for Hysteresis {
    fn default() -> Self {
        Self { margin: 32, hold: Duration::from_secs(4), decisive: 80 }
    }
}

/// Upper bounds of every table that a peer can fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Neighbours per interface.
    pub neighbours_per_interface: usize,
    /// Routes learned from one neighbour.
    pub routes_per_neighbour: usize,
    /// Destinations in the route table.
    pub destinations: usize,
    /// Entries of the source table.
    pub sources: usize,
    /// Seqno requests under way, our own and forwarded ones.
    pub requests: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            neighbours_per_interface: 16,
            routes_per_neighbour: 8192,
            destinations: 16384,
            sources: 32768,
            requests: 1024,
        }
    }
}

/// What holds for one interface.
#[derive(Clone, Debug)]
pub struct InterfaceConfig {
    /// Our link-local address there.
    pub local: Ipv6Addr,
    /// Our IPv4 address there, if any. Without one IPv4 routes are announced with an IPv6 next hop (RFC 9229).
    pub local_ipv4: Option<Ipv4Addr>,
    /// The largest IPv6 packet, in octets.
    pub mtu: u16,
    /// Between multicast Hellos. IHUs go along with each.
    pub hello_interval: Duration,
    /// Between full announcements.
    pub update_interval: Duration,
    /// The interval of additional unicast Hellos while a route runs over the link; only towards neighbours
    /// that ask for them the same way. `None`: never send or ask.
    pub fast_hello: Option<Duration>,
    /// Do not announce a route on the interface it was learned on (right for point-to-point links).
    pub split_horizon: bool,
    /// Send RFC 9616 timestamps and let round-trip time count.
    pub timestamps: bool,
    /// Keys of RFC 8967: packets carry a MAC for each, and must verify with one. Empty: no authentication.
    pub mac_keys: Vec<MacKey>,
}

impl InterfaceConfig {
    /// The defaults for a point-to-point link.
    #[must_use]
    pub fn new(local: Ipv6Addr) -> Self {
        Self {
            local,
            local_ipv4: None,
            mtu: 1280,
            hello_interval: Duration::from_secs(1),
            update_interval: Duration::from_secs(16),
            fast_hello: None,
            split_horizon: true,
            timestamps: true,
            mac_keys: Vec::new(),
        }
    }
}
