//! `routes`.

use super::{finite, link_name, milliseconds};
use crate::control::report::{FORMAT, FeasibilityDistance, RouteEntry, RouteStanding, RoutesReport};
use crate::forwarding::LinkId;
use crate::node::Node;
use babel::{RouteReport, RouteStatus};
use std::net::IpAddr;
use std::time::Instant;

impl Node {
    pub(in crate::node) fn routes_report(&self, address: Option<IpAddr>, now: Instant) -> RoutesReport {
        let mut reports = self.babel.routes(now);
        reports.retain(|report| address.is_none_or(|a| report.prefix.destination.contains(&a)));
        let mut routes: Vec<RouteEntry> = Vec::new();
        for same in reports.chunk_by(|a, b| a.prefix == b.prefix) {
            let selected = same.iter().find(|report| report.selected);
            let alternatives = same.iter().filter(|report| report.status == RouteStatus::Alternative).count();
            routes.extend(same.iter().map(|report| RouteEntry {
                reason: match report.status {
                    RouteStatus::Own => self.announced_because(&report.prefix.destination),
                    _ => reason(report, selected, alternatives),
                },
                ..self.route_entry(report)
            }));
        }
        routes.sort_by_key(|route| {
            (
                route.prefix,
                route.source,
                route.standing != RouteStanding::Selected,
                route.metric.unwrap_or(u32::MAX),
            )
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
            feasibility_distance: report
                .feasibility_distance
                .map(|(seqno, metric)| FeasibilityDistance { seqno: seqno.0, metric }),
            reason: None,
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

/// Why a route is in use or not, with the figures that decide.
fn reason(report: &RouteReport, selected: Option<&RouteReport>, alternatives: usize) -> Option<String> {
    let ahead = selected.map(|selected| report.metric.saturating_sub(selected.metric));
    Some(match report.status {
        RouteStatus::Own => return None,
        RouteStatus::Best if alternatives == 0 => "the only usable route".to_owned(),
        RouteStatus::Best => format!("the least metric of {}", alternatives + 1),
        RouteStatus::Kept => "another is better, but not by enough or not for long enough".to_owned(),
        RouteStatus::Alternative => match (ahead, selected.map(|selected| selected.metric)) {
            (Some(0), Some(metric)) if metric > report.metric => {
                format!("better by {}, not yet enough or not for long enough", metric - report.metric)
            }
            (Some(behind), _) => format!("{behind} worse than the selected one"),
            (None, _) => "not chosen yet".to_owned(),
        },
        RouteStatus::Unfeasible => match report.feasibility_distance {
            Some((seqno, metric)) => format!(
                "might lead back to this node: {} (seqno {}) is not less than {metric} (seqno {})",
                report.advertised_metric, report.seqno.0, seqno.0
            ),
            None => "might lead back to this node".to_owned(),
        },
        RouteStatus::Unreachable if report.advertised_metric == babel::INFINITY => {
            "its neighbour has withdrawn it, or it has expired".to_owned()
        }
        RouteStatus::Unreachable => "its neighbour cannot be reached".to_owned(),
    })
}
