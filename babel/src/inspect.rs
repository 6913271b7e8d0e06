//! Reports (see [`crate::report`]).

use std::time::Instant;

use crate::{
    INFINITY, NeighbourReport, Prefix, RouteReport, RouteStatus, Router,
    feasibility::is_feasible,
    neighbour::NeighbourKey,
    route_table::{Destination, Route},
};

impl Router {
    /// All neighbours, by interface and address.
    #[must_use]
    pub fn neighbours(&self, now: Instant) -> Vec<NeighbourReport> {
        let map = &self.config.cost;
        let report = |(key, neighbour): (&NeighbourKey, &crate::neighbour::Neighbour)| NeighbourReport {
            interface: key.interface,
            address: key.address,
            up: neighbour.is_up(),
            rxcost: neighbour.rxcost(map),
            txcost: neighbour.txcost,
            rtt_cost: neighbour.rtt_cost,
            cost: neighbour.cost,
            rtt: neighbour.rtt.rtt(),
            rtt_deviation: neighbour.rtt.deviation(),
            loss_percent: neighbour.loss_percent(),
            hello_history: neighbour.multicast.last_sixteen(),
            unicast_history: neighbour.unicast.last_sixteen(),
            hello_interval: neighbour.multicast.interval(),
            unicast_interval: neighbour.unicast.interval(),
            ihu_expires_in: neighbour.ihu_expires.map(|at| at.saturating_duration_since(now)),
            routes: neighbour.routes,
            selected: neighbour.selected,
        };
        self.neighbours.iter().map(report).collect()
    }

    /// All routes, ours first, then by prefix and metric.
    #[must_use]
    pub fn routes(&self, now: Instant) -> Vec<RouteReport> {
        let mut reports: Vec<_> =
            self.own.iter().map(|(prefix, metric)| self.own_report(*prefix, *metric)).collect();
        for (prefix, destination) in &self.routes {
            let from = reports.len();
            let routes = destination.routes.iter();
            reports
                .extend(routes.map(|(key, route)| self.route_report(*prefix, destination, *key, route, now)));
            if let Some(new) = reports.get_mut(from..) {
                new.sort_by_key(|report| (!report.selected, report.metric));
            }
        }
        reports
    }

    /// The selected routes, without our own.
    #[must_use]
    pub fn selected(&self, now: Instant) -> Vec<RouteReport> {
        let selected = |(prefix, destination): (&Prefix, &Destination)| {
            let (key, route) = destination.selected()?;
            Some(self.route_report(*prefix, destination, key, route, now))
        };
        self.routes.iter().filter_map(selected).collect()
    }

    /// Prefixes that are known but to which no usable route is left. Packets for them should be refused rather
    /// than follow a less specific route, until the prefix is routed or forgotten (RFC 8966 §2.8).
    pub fn unreachable(&self) -> impl Iterator<Item = Prefix> {
        let lost = self.routes.iter().filter(|(_, destination)| destination.installed.is_none());
        lost.map(|(prefix, _)| *prefix).filter(|prefix| !self.own.contains_key(prefix))
    }

    fn own_report(&self, prefix: Prefix, metric: u16) -> RouteReport {
        RouteReport {
            prefix,
            via: None,
            next_hop: None,
            metric,
            advertised_metric: metric,
            router_id: self.config.router_id,
            seqno: self.seqno,
            feasible: true,
            selected: true,
            status: RouteStatus::Own,
            feasibility_distance: None,
            rtt: None,
            expires_in: None,
        }
    }

    fn route_report(
        &self,
        prefix: Prefix,
        destination: &Destination,
        key: NeighbourKey,
        route: &Route,
        now: Instant,
    ) -> RouteReport {
        let neighbour = self.neighbours.get(&key);
        let metric = route.metric(neighbour.map_or(INFINITY, |neighbour| neighbour.cost));
        let distance = self.sources.distance(&prefix, route.router_id);
        let feasible = is_feasible(route.distance(), distance);
        let selected = destination.installed.is_some_and(|installed| installed.key == key);
        let status = if metric == INFINITY {
            RouteStatus::Unreachable
        } else if !feasible {
            RouteStatus::Unfeasible
        } else if !selected {
            RouteStatus::Alternative
        } else if self.has_better(&prefix, destination, metric) {
            RouteStatus::Kept
        } else {
            RouteStatus::Best
        };
        RouteReport {
            prefix,
            via: Some((key.interface, key.address)),
            next_hop: Some(route.next_hop),
            metric,
            advertised_metric: route.advertised,
            router_id: route.router_id,
            seqno: route.seqno,
            feasible,
            selected,
            status,
            feasibility_distance: distance.map(|distance| (distance.seqno, distance.metric)),
            rtt: neighbour.and_then(|neighbour| neighbour.rtt.rtt()),
            expires_in: Some(route.expires.saturating_duration_since(now)),
        }
    }

    fn has_better(&self, prefix: &Prefix, destination: &Destination, metric: u16) -> bool {
        destination.routes.iter().any(|(key, route)| {
            let cost = self.neighbours.get(key).map_or(INFINITY, |neighbour| neighbour.cost);
            let distance = self.sources.distance(prefix, route.router_id);
            route.metric(cost) < metric && is_feasible(route.distance(), distance)
        })
    }
}
