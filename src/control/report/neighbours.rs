//! `viamesh neighbours`: Babel's view of each link.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Text;
use crate::control::quantity::{ahead, or_dash, round_trip, whole_span};
use crate::control::table::{Align, Table};

/// The answer to `neighbours`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeighboursReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// One entry per neighbour and link.
    pub neighbours: Vec<NeighbourEntry>,
}

/// One neighbour on one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeighbourEntry {
    /// The node.
    pub node: String,
    /// Link in words: `0 > bravo/0`.
    pub link: String,
    /// Its link-local address.
    pub address: IpAddr,
    /// The last multicast Hellos, newest in bit 15: 1 heard, 0 lost.
    pub hello_history: u16,
    /// The last unicast Hellos; `None` where it sends none.
    pub unicast_history: Option<u16>,
    /// Cost at which we hear it.
    pub rxcost: Option<u32>,
    /// Cost at which it hears us.
    pub txcost: Option<u32>,
    /// Cost of the link; `None` is infinite.
    pub cost: Option<u32>,
    /// Smoothed round trip.
    pub rtt_ms: Option<f64>,
    /// Seconds between its Hellos.
    pub hello_interval_seconds: f64,
    /// Seconds between its fast unicast Hellos; `None` where it sends none.
    pub unicast_interval_seconds: Option<f64>,
    /// Hellos of it that got lost, in percent.
    pub loss_percent: u8,
    /// Mean deviation of the round trips.
    pub rtt_deviation_ms: Option<f64>,
    /// The part of the cost that is due to the round trip.
    pub rtt_cost: u16,
    /// Seconds for which its last word on how it hears us counts.
    pub ihu_expires_in_seconds: Option<u64>,
    /// Routes that we have from it.
    pub routes: usize,
    /// Routes by it that are in use.
    pub selected: usize,
    /// Whether the peer is a viamesh node.
    pub ours: bool,
    /// Seconds since it was first heard.
    pub since_seconds: u64,
}

impl Text for NeighboursReport {
    fn text(&self) -> String {
        if self.neighbours.is_empty() {
            return "no neighbours\n".to_owned();
        }
        let mut table = Table::new(&[
            ("NODE", Align::Left),
            ("LINK", Align::Left),
            ("ADDRESS", Align::Left),
            ("HEARD", Align::Right),
            ("FAST", Align::Right),
            ("LOSS", Align::Right),
            ("RXCOST", Align::Right),
            ("TXCOST", Align::Right),
            ("COST", Align::Right),
            ("RTT", Align::Right),
            ("ROUTES", Align::Right),
            ("USED", Align::Right),
            ("EXPIRES", Align::Left),
            ("SINCE", Align::Left),
        ]);
        for neighbour in &self.neighbours {
            table.row([
                neighbour.node.clone(),
                neighbour.link.clone(),
                neighbour.address.to_string(),
                format!("{}/16", neighbour.hello_history.count_ones()),
                or_dash(neighbour.unicast_history.map(|history| format!("{}/16", history.count_ones()))),
                format!("{} %", neighbour.loss_percent),
                or_infinite(neighbour.rxcost),
                or_infinite(neighbour.txcost),
                or_infinite(neighbour.cost),
                or_dash(neighbour.rtt_ms.map(round_trip)),
                neighbour.routes.to_string(),
                neighbour.selected.to_string(),
                or_dash(neighbour.ihu_expires_in_seconds.map(ahead)),
                whole_span(neighbour.since_seconds),
            ]);
        }
        table.text()
    }
}

fn or_infinite(cost: Option<u32>) -> String {
    cost.map_or_else(|| "infinite".to_owned(), |cost| cost.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;

    fn neighbour(node: &str) -> NeighbourEntry {
        NeighbourEntry {
            node: node.to_owned(),
            link: format!("0 > {node}/0"),
            address: "fe80::1".parse().unwrap(),
            hello_history: 0xfffe,
            unicast_history: Some(0xffff),
            rxcost: Some(8),
            txcost: Some(8),
            cost: Some(164),
            rtt_ms: Some(40.2),
            hello_interval_seconds: 4.0,
            unicast_interval_seconds: Some(0.1),
            loss_percent: 1,
            rtt_deviation_ms: Some(0.4),
            rtt_cost: 156,
            ihu_expires_in_seconds: Some(38),
            routes: 12,
            selected: 3,
            ours: true,
            since_seconds: 7200,
        }
    }

    #[test]
    fn each_neighbour_has_a_line() {
        let silent = NeighbourEntry {
            hello_history: 0,
            unicast_history: None,
            ihu_expires_in_seconds: None,
            selected: 0,
            cost: None,
            txcost: None,
            rtt_ms: None,
            routes: 0,
            ..neighbour("charlie")
        };
        let report = NeighboursReport { format: FORMAT, neighbours: vec![neighbour("bravo"), silent] };
        insta::assert_snapshot!(report.text(), @"
        NODE      LINK            ADDRESS   HEARD    FAST   LOSS   RXCOST     TXCOST       COST     RTT   ROUTES   USED   EXPIRES   SINCE
        bravo     0 > bravo/0     fe80::1   15/16   16/16    1 %        8          8        164   40 ms       12      3   in 38 s   2 h
        charlie   0 > charlie/0   fe80::1    0/16       -    1 %        8   infinite   infinite       -        0      0   -         2 h
        ");
    }
}
