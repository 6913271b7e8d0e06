//! `neighbours`.

use super::{finite, link_name, milliseconds, seconds_since};
use crate::control::report::{FORMAT, NeighbourEntry, NeighboursReport};
use crate::forwarding::LinkId;
use crate::node::Node;
use babel::NeighbourReport;
use std::net::IpAddr;
use std::time::Instant;

impl Node {
    pub(in crate::node) fn neighbours_report(&self, now: Instant) -> NeighboursReport {
        let reports = self.babel.neighbours(now);
        let neighbours = reports.iter().map(|report| self.neighbour_entry(report, now)).collect();
        NeighboursReport { format: FORMAT, neighbours }
    }

    fn neighbour_entry(&self, report: &NeighbourReport, now: Instant) -> NeighbourEntry {
        let link = self.links.get(&LinkId(report.interface.0));
        NeighbourEntry {
            node: link.map_or_else(String::new, |link| link.peer.clone()),
            link: link.map_or_else(String::new, link_name),
            address: IpAddr::V6(report.address),
            // The core keeps the newest Hello in bit 0, operators read histories from the left.
            hello_history: report.hello_history.reverse_bits(),
            unicast_history: report.unicast_interval.map(|_| report.unicast_history.reverse_bits()),
            rxcost: finite(report.rxcost),
            txcost: finite(report.txcost),
            cost: finite(report.cost),
            rtt_ms: report.rtt.map(milliseconds),
            hello_interval_seconds: report.hello_interval.map_or(0.0, |interval| interval.as_secs_f64()),
            unicast_interval_seconds: report.unicast_interval.map(|interval| interval.as_secs_f64()),
            loss_percent: report.loss_percent,
            rtt_deviation_ms: report.rtt_deviation.map(milliseconds),
            rtt_cost: report.rtt_cost,
            ihu_expires_in_seconds: report.ihu_expires_in.map(|left| left.as_secs()),
            routes: report.routes,
            selected: report.selected,
            ours: link.is_some_and(|link| link.ours),
            since_seconds: link.and_then(|link| link.up_since).map_or(0, |at| seconds_since(at, now)),
        }
    }
}
