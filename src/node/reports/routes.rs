//! `routes`.

use super::{finite, link_name, milliseconds};
use crate::control::report::{FORMAT, RouteEntry, RouteStanding, RoutesReport};
use crate::forwarding::LinkId;
use crate::node::Node;
use babel::{RouteReport, RouteStatus};
use std::net::IpAddr;
use std::time::Instant;

impl Node {
    pub(in crate::node) fn routes_report(&self, address: Option<IpAddr>, now: Instant) -> RoutesReport {
        let reports = self.babel.routes(now).into_iter();
        let wanted = reports.filter(|report| address.is_none_or(|a| report.prefix.destination.contains(&a)));
        let mut routes: Vec<RouteEntry> = wanted.map(|report| self.route_entry(&report)).collect();
        routes.sort_by_key(|route| {
            (route.prefix, route.standing != RouteStanding::Selected, route.metric.unwrap_or(u32::MAX))
        });
        RoutesReport { format: FORMAT, address, routes }
    }

    fn route_entry(&self, report: &RouteReport) -> RouteEntry {
        let link = report.via.and_then(|(interface, _)| self.links.get(&LinkId(interface.0)));
        RouteEntry {
            prefix: report.prefix.destination,
            source: report.prefix.source,
            standing: standing(report),
            origin: self.node_of(report.router_id).map(|node| self.display(node)),
            neighbour: link.map(|link| link.peer.clone()),
            next_hop: report.next_hop,
            link: link.map(link_name),
            metric: finite(report.metric),
            announced_metric: finite(report.advertised_metric),
            seqno: report.seqno.0,
            router_id: report.router_id.to_string(),
            rtt_ms: report.rtt.map(milliseconds),
            expires_in_seconds: report.expires_in.map(|left| left.as_secs()),
            reason: reason(report.status).map(str::to_owned),
        }
    }
}

fn standing(report: &RouteReport) -> RouteStanding {
    match report.status {
        RouteStatus::Best | RouteStatus::Kept => RouteStanding::Selected,
        RouteStatus::Alternative => RouteStanding::Feasible,
        RouteStatus::Unfeasible => RouteStanding::Unfeasible,
        RouteStatus::Unreachable => RouteStanding::Retracted,
        RouteStatus::Own => RouteStanding::Local,
    }
}

fn reason(status: RouteStatus) -> Option<&'static str> {
    match status {
        RouteStatus::Kept => Some("another is better, but not by enough or not for long enough"),
        RouteStatus::Unfeasible => Some("it might lead back to this node"),
        RouteStatus::Best | RouteStatus::Alternative | RouteStatus::Unreachable | RouteStatus::Own => None,
    }
}
