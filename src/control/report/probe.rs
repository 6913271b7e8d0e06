//! `viamesh trace` and `viamesh ping`: what probes found.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Text;
use crate::control::quantity::{measured, percent};

/// The answer to `trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The destination.
    pub destination: IpAddr,
    /// The policy that takes the probes.
    pub policy: Option<String>,
    /// Stops in order.
    pub hops: Vec<TraceHop>,
    /// Whether the last stop was reached.
    pub complete: bool,
    /// Why not, or another remark.
    pub remark: Option<String>,
}

/// One stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceHop {
    /// 1 is the first stop after this node.
    pub hop: u8,
    /// Node's name, or `None` if nobody answered or the address is not in the registry.
    pub node: Option<String>,
    /// Address that answered.
    pub address: Option<IpAddr>,
    /// Median round trip.
    pub rtt_ms: Option<f64>,
    /// Probes sent.
    pub sent: u32,
    /// Answers received.
    pub received: u32,
    /// `second visit`.
    pub remark: Option<String>,
}

/// The answer to `ping`, and its progress: a report with the replies so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PingReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The node, or the address that was given.
    pub node: String,
    /// Its address.
    pub address: IpAddr,
    /// Stops of a hand-written path.
    #[serde(default)]
    pub via: Vec<String>,
    /// Probes sent.
    pub sent: u32,
    /// Answers, by sequence number.
    pub replies: Vec<PingReply>,
}

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PingReply {
    /// Sequence number, from 1.
    pub sequence: u32,
    /// Round trip; `None` is lost.
    pub rtt_ms: Option<f64>,
}

impl Text for TraceReport {
    fn text(&self) -> String {
        let width = self.hops.iter().map(|hop| hop.name().chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for hop in &self.hops {
            let _ = writeln!(text, "{}", hop.line(width));
        }
        let remark = self
            .remark
            .clone()
            .or_else(|| (!self.complete).then(|| "the destination did not answer".to_owned()));
        if let Some(remark) = remark {
            let _ = writeln!(text, "{remark}");
        }
        text
    }
}

impl TraceHop {
    /// One line without its end; names are padded to `width`. For printing stops as they answer.
    pub fn line(&self, width: usize) -> String {
        let rtt = self.rtt_ms.map_or_else(|| "no answer".to_owned(), measured);
        let lost = percent(lost(self.sent, self.received));
        let word = if self.hop == 1 { " lost" } else { "" };
        let loss = format!("{lost}{word}");
        let remark = self.remark.as_deref().unwrap_or_default();
        let line = format!("{:>3}  {:<width$}  {rtt:>9}   {loss:<8}   {remark}", self.hop, self.name());
        line.trim_end().to_owned()
    }

    fn name(&self) -> String {
        match (&self.node, self.address) {
            (Some(node), _) => node.clone(),
            (None, Some(address)) => address.to_string(),
            (None, None) => "?".to_owned(),
        }
    }
}

impl Text for PingReport {
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        for reply in &self.replies {
            let _ = writeln!(text, "{}", reply.line());
        }
        let _ = writeln!(text, "{}", self.summary());
        text
    }
}

impl PingReport {
    /// The first line: whom and by which way.
    pub fn headline(&self) -> String {
        match self.via.as_slice() {
            [] => format!("{} ({})", self.node, self.address),
            via => format!("{} ({}) via {}", self.node, self.address, via.join(" > ")),
        }
    }

    /// The last line: loss, and least, median and greatest round trip.
    pub fn summary(&self) -> String {
        let mut times: Vec<f64> = self.replies.iter().filter_map(|reply| reply.rtt_ms).collect();
        times.sort_by(f64::total_cmp);
        let received = u32::try_from(times.len()).unwrap_or(u32::MAX);
        let counts =
            format!("{} sent, {received} received, {} lost", self.sent, percent(lost(self.sent, received)));
        match (times.first(), times.get(times.len() / 2), times.last()) {
            (Some(least), Some(median), Some(greatest)) => format!(
                "{counts}; least {}, median {}, greatest {}",
                measured(*least),
                measured(*median),
                measured(*greatest)
            ),
            _ => counts,
        }
    }
}

impl PingReply {
    /// One line without its end.
    pub fn line(&self) -> String {
        let rtt = self.rtt_ms.map_or_else(|| "lost".to_owned(), measured);
        format!("{:>3}  {rtt:>9}", self.sequence)
    }
}

/// Percent lost; answers to more than was sent (duplicates) are no loss.
fn lost(sent: u32, received: u32) -> f64 {
    if sent == 0 { 0.0 } else { f64::from(sent.saturating_sub(received)) * 100.0 / f64::from(sent) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;

    fn hop(
        hop: u8,
        node: Option<&str>,
        rtt_ms: Option<f64>,
        received: u32,
        remark: Option<&str>,
    ) -> TraceHop {
        let address = node.map(|_| "fd5d:ac:1:2::1".parse().unwrap());
        TraceHop {
            hop,
            node: node.map(str::to_owned),
            address,
            rtt_ms,
            sent: 50,
            received,
            remark: remark.map(str::to_owned),
        }
    }

    #[test]
    fn each_stop_has_a_line() {
        let report = TraceReport {
            format: FORMAT,
            destination: "10.4.0.9".parse().unwrap(),
            policy: Some("inspected".to_owned()),
            hops: vec![
                hop(1, Some("bravo"), Some(23.1), 50, None),
                hop(2, Some("charlie"), Some(84.7), 50, None),
                hop(3, Some("bravo"), Some(146.0), 50, Some("second visit")),
                hop(4, Some("partner/delta"), Some(201.3), 49, None),
                hop(5, None, None, 0, None),
            ],
            complete: false,
            remark: None,
        };
        insta::assert_snapshot!(report.text(), @"
          1  bravo            23.1 ms   0 % lost
          2  charlie          84.7 ms   0 %
          3  bravo           146.0 ms   0 %        second visit
          4  partner/delta   201.3 ms   2 %
          5  ?              no answer   100 %
        the destination did not answer
        ");
    }

    fn ping(replies: &[Option<f64>]) -> PingReport {
        let replies =
            replies.iter().zip(1..).map(|(rtt_ms, sequence)| PingReply { sequence, rtt_ms: *rtt_ms });
        PingReport {
            format: FORMAT,
            node: "delta".to_owned(),
            address: "fd5d:ac:1:2::1".parse().unwrap(),
            via: vec!["bravo".to_owned(), "charlie".to_owned()],
            sent: 3,
            replies: replies.collect(),
        }
    }

    #[test]
    fn a_ping_ends_with_its_summary() {
        insta::assert_snapshot!(ping(&[Some(23.1), None, Some(25.0)]).text(), @"
        delta (fd5d:ac:1:2::1) via bravo > charlie
          1    23.1 ms
          2       lost
          3    25.0 ms
        3 sent, 2 received, 33 % lost; least 23.1 ms, median 25.0 ms, greatest 25.0 ms
        ");
    }

    #[test]
    fn a_ping_without_answers_has_no_times() {
        assert_eq!(ping(&[None, None, None]).summary(), "3 sent, 0 received, 100 % lost");
    }
}
