//! What the router tells its caller, in the order in which it happened.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use crate::{InterfaceId, Prefix, RouterId, Seqno, import::ImportRefusal};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A route was chosen: install it, replacing in one step the one that was there (if `replaces`).
    RouteSelected {
        /// What it leads to.
        prefix: Prefix,
        /// The interface it leaves by.
        interface: InterfaceId,
        /// The neighbour that announced it.
        neighbour: Ipv6Addr,
        /// Where packets go next; IPv6 for an IPv4 prefix if announced so (RFC 9229).
        next_hop: IpAddr,
        /// Total metric.
        metric: u16,
        /// Who originated it.
        router_id: RouterId,
        /// The originator's sequence number.
        seqno: Seqno,
        /// Smoothed round-trip time of the first link.
        rtt: Option<Duration>,
        /// Whether another route for the prefix was installed until now.
        replaces: bool,
    },
    /// No usable route is left.
    RouteLost {
        /// What it led to.
        prefix: Prefix,
    },
    /// A neighbour can now be reached both ways.
    NeighbourUp {
        /// On this interface.
        interface: InterfaceId,
        /// Its link-local address.
        address: Ipv6Addr,
    },
    /// A neighbour can no longer be reached.
    NeighbourDown {
        /// On this interface.
        interface: InterfaceId,
        /// Its link-local address.
        address: Ipv6Addr,
        /// Why.
        reason: NeighbourLoss,
    },
    /// The import policy refused an announcement. Reported once per cause and quarter of an hour.
    Rejected {
        /// What was announced.
        prefix: Prefix,
        /// By whom it claims to be originated.
        router_id: RouterId,
        /// On this interface.
        interface: InterfaceId,
        /// By this neighbour.
        neighbour: Ipv6Addr,
        /// Why it was refused.
        reason: ImportRefusal,
    },
    /// A neighbour announces a prefix under our router-id that we do not originate, or with a sequence number that
    /// we have not reached: the identity is used twice.
    DuplicateRouterId {
        /// What was announced.
        prefix: Prefix,
        /// By this neighbour.
        neighbour: Ipv6Addr,
        /// On this interface.
        interface: InterfaceId,
    },
    /// A limit of [`crate::Limits`] was reached; the named table refused an entry.
    LimitReached {
        /// Which table.
        table: &'static str,
    },
    /// Our own sequence number changed: persist it.
    SeqnoChanged(Seqno),
    /// A path MTU probe ended.
    PathMtu {
        /// On this interface.
        interface: InterfaceId,
        /// The probed neighbour.
        address: Ipv6Addr,
        /// The largest IPv6 packet that the neighbour acknowledged, in octets; `None` if not even 1280.
        mtu: Option<u16>,
    },
}

/// Why a neighbour was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourLoss {
    /// Its Hellos stopped.
    HellosMissing,
    /// It no longer hears us (IHU with infinite cost).
    Unheard,
    /// Its IHUs stopped.
    IhuMissing,
    /// The interface was removed.
    InterfaceRemoved,
}
