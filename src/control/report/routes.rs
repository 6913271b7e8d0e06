//! `viamesh routes`: what Babel knows.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::Text;
use crate::control::quantity::{ahead, or_dash, round_trip};
use crate::control::table::{Align, Table};

/// The answer to `routes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutesReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The address that was asked for.
    pub address: Option<IpAddr>,
    /// Routes, by prefix, the selected one first.
    pub routes: Vec<RouteEntry>,
}

/// What becomes of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteStanding {
    /// In use.
    Selected,
    /// Could be used, another is better.
    Feasible,
    /// Would risk a loop (RFC 8966 section 3.5.1).
    Unfeasible,
    /// Withdrawn by its neighbour, kept for a while.
    Retracted,
    /// Not accepted by our import rules.
    Rejected,
    /// Announced by this node.
    Local,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RouteEntry {
    /// Destination.
    pub prefix: IpNet,
    /// Source prefix of a source-specific route (RFC 9079).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpNet>,
    /// In use or not.
    pub standing: RouteStanding,
    /// Node that announces it, if the registry knows its router-id.
    pub origin: Option<String>,
    /// Neighbour node that we have it from; `None` for our own.
    pub neighbour: Option<String>,
    /// The neighbour's address on the link.
    pub next_hop: Option<IpAddr>,
    /// Link in words: `0 > bravo/0`.
    pub link: Option<String>,
    /// Our metric; `None` is infinite.
    pub metric: Option<u32>,
    /// Metric as the neighbour announced it; `None` is infinite.
    pub announced_metric: Option<u32>,
    /// Babel sequence number.
    pub seqno: u16,
    /// Babel router-id, hexadecimal with colons.
    pub router_id: String,
    /// Smoothed round trip of the link.
    pub rtt_ms: Option<f64>,
    /// Seconds until it is forgotten unless it is announced again; `None` for our own.
    pub expires_in_seconds: Option<u64>,
    /// The feasibility distance of its source: only what is announced with a newer sequence number, or the same and a
    /// smaller metric, is feasible (RFC 8966 section 3.5.1). `None` before this node has announced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feasibility_distance: Option<FeasibilityDistance>,
    /// Why it is in use, or is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a route's announcement must be better than.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeasibilityDistance {
    /// Sequence number.
    pub seqno: u16,
    /// Metric.
    pub metric: u16,
}

impl Text for RoutesReport {
    fn text(&self) -> String {
        if self.routes.is_empty() {
            return match self.address {
                Some(address) => format!("no route covers {address}\n"),
                None => "no routes\n".to_owned(),
            };
        }
        let mut table = Table::new(&[
            ("PREFIX", Align::Left),
            ("STATE", Align::Left),
            ("VIA", Align::Left),
            ("METRIC", Align::Right),
            ("ANNOUNCED", Align::Right),
            ("SEQNO", Align::Right),
            ("RTT", Align::Right),
            ("ORIGIN", Align::Left),
            ("ROUTER-ID", Align::Left),
            ("EXPIRES", Align::Left),
            ("WHY", Align::Left),
        ]);
        for route in &self.routes {
            table.row(route.cells());
        }
        table.text()
    }
}

impl RouteEntry {
    fn cells(&self) -> [String; 11] {
        let prefix = match self.source {
            Some(source) => format!("{} from {source}", self.prefix),
            None => self.prefix.to_string(),
        };
        let local = self.standing == RouteStanding::Local;
        [
            prefix,
            self.standing.to_string(),
            or_dash(self.neighbour.clone()),
            or_infinite(self.metric),
            if local { "-".to_owned() } else { or_infinite(self.announced_metric) },
            self.seqno.to_string(),
            or_dash(self.rtt_ms.map(round_trip)),
            or_dash(self.origin.clone()),
            self.router_id.clone(),
            or_dash(self.expires_in_seconds.map(ahead)),
            or_dash(self.reason.clone()),
        ]
    }
}

fn or_infinite(metric: Option<u32>) -> String {
    metric.map_or_else(|| "infinite".to_owned(), |metric| metric.to_string())
}

impl fmt::Display for RouteStanding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Selected => "selected",
            Self::Feasible => "feasible",
            Self::Unfeasible => "unfeasible",
            Self::Retracted => "retracted",
            Self::Rejected => "rejected",
            Self::Local => "local",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;

    fn route(
        prefix: &str,
        standing: RouteStanding,
        neighbour: Option<&str>,
        metric: Option<u32>,
    ) -> RouteEntry {
        RouteEntry {
            prefix: prefix.parse().unwrap(),
            source: None,
            standing,
            origin: Some("delta".to_owned()),
            neighbour: neighbour.map(str::to_owned),
            next_hop: Some("fe80::1".parse().unwrap()),
            link: Some("0 > bravo/0".to_owned()),
            metric,
            announced_metric: metric.map(|metric| metric - 8),
            seqno: 7,
            router_id: "02:00:5e:10:00:00:00:01".to_owned(),
            rtt_ms: neighbour.map(|_| 40.2),
            expires_in_seconds: Some(42),
            feasibility_distance: Some(FeasibilityDistance { seqno: 7, metric: 168 }),
            reason: None,
        }
    }

    #[test]
    fn selected_and_alternative_routes_stand_side_by_side() {
        let mut rejected = route("0.0.0.0/0", RouteStanding::Rejected, Some("charlie"), None);
        rejected.reason = Some("default route".to_owned());
        rejected.origin = None;
        let mut own = route("10.1.0.0/16", RouteStanding::Local, None, Some(8));
        own.metric = Some(0);
        own.expires_in_seconds = None;
        let mut best = route("10.4.0.0/16", RouteStanding::Selected, Some("bravo"), Some(168));
        best.reason = Some("the least metric".to_owned());
        let report = RoutesReport {
            format: FORMAT,
            address: None,
            routes: vec![
                own,
                best,
                route("10.4.0.0/16", RouteStanding::Feasible, Some("charlie"), Some(1068)),
                rejected,
            ],
        };
        insta::assert_snapshot!(report.text(), @"
        PREFIX        STATE      VIA         METRIC   ANNOUNCED   SEQNO     RTT   ORIGIN   ROUTER-ID                 EXPIRES   WHY
        10.1.0.0/16   local      -                0           -       7       -   delta    02:00:5e:10:00:00:00:01   -         -
        10.4.0.0/16   selected   bravo          168         160       7   40 ms   delta    02:00:5e:10:00:00:00:01   in 42 s   the least metric
        10.4.0.0/16   feasible   charlie       1068        1060       7   40 ms   delta    02:00:5e:10:00:00:00:01   in 42 s   -
        0.0.0.0/0     rejected   charlie   infinite    infinite       7   40 ms   -        02:00:5e:10:00:00:00:01   in 42 s   default route
        ");
    }

    #[test]
    fn nothing_found_is_said() {
        let report =
            RoutesReport { format: FORMAT, address: Some("10.4.0.9".parse().unwrap()), routes: Vec::new() };
        assert_eq!(report.text(), "no route covers 10.4.0.9\n");
    }
}
