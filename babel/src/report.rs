//! Read-only views for people and tests: everything that `birdc show babel` shows, and why a route won.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use crate::{InterfaceId, Prefix, RouterId, Seqno};

/// One neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourReport {
    /// On this interface.
    pub interface: InterfaceId,
    /// Its link-local address.
    pub address: Ipv6Addr,
    /// Reachable both ways.
    pub up: bool,
    /// The cost that we advertise to it (our reception quality); 65535 is unreachable.
    pub rxcost: u16,
    /// The cost that it advertises to us.
    pub txcost: u16,
    /// The part of `cost` due to round-trip time.
    pub rtt_cost: u16,
    /// What its routes cost in addition; 65535 is unreachable.
    pub cost: u16,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Mean deviation of the samples from it.
    pub rtt_deviation: Option<Duration>,
    /// Percent of its Hellos that did not arrive.
    pub loss_percent: u8,
    /// The last multicast Hellos, newest in bit 0, 1 is received.
    pub hello_history: u16,
    /// The same for unicast Hellos.
    pub unicast_history: u16,
    /// Its multicast Hello interval.
    pub hello_interval: Option<Duration>,
    /// Its scheduled unicast Hello interval.
    pub unicast_interval: Option<Duration>,
    /// Time until its IHU expires.
    pub ihu_expires_in: Option<Duration>,
    /// Routes learned from it.
    pub routes: usize,
    /// Routes through it that are selected.
    pub selected: usize,
}

/// Why a route is or is not the selected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteStatus {
    /// In use: no usable route has a lower metric.
    Best,
    /// In use although another is better: the gain is below the margin, or has not lasted long enough.
    Kept,
    /// Usable; the selected one is better or not worse enough.
    Alternative,
    /// Not usable: it might lead back to us (RFC 8966 §3.5.1).
    Unfeasible,
    /// Retracted or expired, or its neighbour cannot be reached.
    Unreachable,
    /// We originate the prefix ourselves.
    Own,
}

/// One route in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteReport {
    /// What it leads to.
    pub prefix: Prefix,
    /// Interface and neighbour; `None` for our own.
    pub via: Option<(InterfaceId, Ipv6Addr)>,
    /// Where packets go next.
    pub next_hop: Option<IpAddr>,
    /// Total metric; 65535 is unreachable.
    pub metric: u16,
    /// The metric that the neighbour announced.
    pub advertised_metric: u16,
    /// Who originated it.
    pub router_id: RouterId,
    /// The originator's sequence number.
    pub seqno: Seqno,
    /// Whether it passes the feasibility condition.
    pub feasible: bool,
    /// Whether it is in use.
    pub selected: bool,
    /// Why.
    pub status: RouteStatus,
    /// The feasibility distance of its source: sequence number and metric.
    pub feasibility_distance: Option<(Seqno, u16)>,
    /// Smoothed round-trip time of the first link.
    pub rtt: Option<Duration>,
    /// Time until it expires; `None` for our own.
    pub expires_in: Option<Duration>,
}
