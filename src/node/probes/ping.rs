//! One `ping`.

use super::echo::Outcome;
use super::{FULL_HOP_LIMIT, ProbeOrder, ProbeRoute, Sample};
use crate::control::report::{FORMAT, PingReply, PingReport};
use std::time::{Duration, Instant};

pub(crate) struct PingSession {
    report: PingReport,
    route: ProbeRoute,
    count: u32,
    interval: Duration,
    timeout: Duration,
    next_send: Instant,
}

impl PingSession {
    pub(super) fn new(
        node: &str,
        via: &[String],
        route: ProbeRoute,
        count: u32,
        interval: Duration,
        timeout: Duration,
        now: Instant,
    ) -> Self {
        let report = PingReport {
            format: FORMAT,
            node: node.to_owned(),
            address: route.destination,
            via: via.to_vec(),
            sent: 0,
            replies: Vec::new(),
        };
        Self { report, route, count: count.clamp(1, 10_000), interval, timeout, next_send: now }
    }

    pub(super) fn next_send(&self) -> Option<Instant> {
        (self.report.sent < self.count).then_some(self.next_send)
    }

    pub(super) fn order(&mut self, now: Instant) -> Option<ProbeOrder> {
        if self.next_send()? > now {
            return None;
        }
        self.report.sent += 1;
        self.next_send = now + self.interval;
        Some(ProbeOrder {
            route: self.route.clone(),
            number: self.report.sent,
            hop_limit: FULL_HOP_LIMIT,
            timeout: self.timeout,
        })
    }

    pub(super) fn take(&mut self, sample: Sample) {
        let rtt_ms = match sample.answer {
            Some((_, Outcome::Reply, rtt)) => Some(rtt.as_secs_f64() * 1000.0),
            Some((_, Outcome::HopLimit | Outcome::Error(_), _)) | None => None,
        };
        self.report.replies.push(PingReply { sequence: sample.number, rtt_ms });
    }

    pub(super) fn is_finished(&self) -> bool {
        self.report.replies.len() >= self.count as usize
    }

    pub(super) fn into_report(mut self) -> PingReport {
        self.report.replies.sort_by_key(|reply| reply.sequence);
        self.report
    }
}
