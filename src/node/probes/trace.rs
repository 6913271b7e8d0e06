//! One `trace`: probes with growing hop limit, so that each node on the way answers in turn.

use super::echo::Outcome;
use super::{ProbeOrder, ProbeRoute, Sample};
use crate::control::report::{FORMAT, TraceHop, TraceReport};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The longest way that is followed.
const MAX_HOPS: u8 = 32;
/// Silent hops in a row after which the trace ends.
const MAX_SILENT: usize = 4;

pub(crate) struct TraceSession {
    destination: IpAddr,
    policy: Option<String>,
    /// Names of the policy's stops in order.
    journey: Vec<String>,
    route: ProbeRoute,
    count: u32,
    timeout: Duration,
    hops: Vec<Hop>,
    ended: Option<End>,
}

#[derive(Default)]
struct Hop {
    sent: u32,
    finished: u32,
    from: Option<IpAddr>,
    rtts: Vec<Duration>,
    arrived: bool,
    error: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Arrived,
    Refused(&'static str),
    Silent,
}

impl TraceSession {
    pub(super) fn new(
        destination: IpAddr,
        policy: Option<String>,
        journey: Vec<String>,
        route: ProbeRoute,
        count: u32,
        timeout: Duration,
    ) -> Self {
        let count = count.clamp(1, 100);
        Self { destination, policy, journey, route, count, timeout, hops: vec![Hop::default()], ended: None }
    }

    /// Probes go out as soon as they are wanted; only answers and their lack move a trace on.
    pub(super) fn next_send(&self) -> Option<Instant> {
        None
    }

    pub(super) fn order(&mut self) -> Option<ProbeOrder> {
        if self.ended.is_some() {
            return None;
        }
        if self.hops.last().is_some_and(|hop| hop.finished >= self.count) {
            self.advance();
        }
        let hop_limit = u8::try_from(self.hops.len()).ok()?;
        let hop = self.hops.last_mut()?;
        if self.ended.is_some() || hop.sent >= self.count {
            return None;
        }
        hop.sent += 1;
        Some(ProbeOrder {
            route: self.route.clone(),
            number: u32::from(hop_limit),
            hop_limit,
            timeout: self.timeout,
        })
    }

    fn advance(&mut self) {
        let silent = self.hops.iter().rev().take_while(|hop| hop.from.is_none()).count();
        self.ended = match self.hops.last() {
            Some(Hop { arrived: true, .. }) => Some(End::Arrived),
            Some(Hop { error: Some(error), .. }) => Some(End::Refused(error)),
            _ if silent >= MAX_SILENT || self.hops.len() >= usize::from(MAX_HOPS) => Some(End::Silent),
            _ => None,
        };
        if self.ended.is_none() {
            self.hops.push(Hop::default());
        }
    }

    pub(super) fn take(&mut self, sample: Sample) {
        let index = (sample.number as usize).saturating_sub(1);
        let Some(hop) = self.hops.get_mut(index) else { return };
        hop.finished += 1;
        let Some((from, outcome, rtt)) = sample.answer else { return };
        hop.from = Some(from);
        hop.rtts.push(rtt);
        match outcome {
            Outcome::Reply => hop.arrived = true,
            Outcome::Error(error) => hop.error = Some(error),
            Outcome::HopLimit => {}
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn into_report(mut self, name: impl Fn(IpAddr) -> Option<String>) -> TraceReport {
        if self.ended == Some(End::Silent) {
            let heard = self.hops.iter().rposition(|hop| hop.from.is_some()).map_or(0, |last| last + 1);
            self.hops.truncate(heard + 1);
        }
        let mut hops: Vec<TraceHop> = Vec::new();
        for (index, hop) in self.hops.iter().enumerate() {
            let node = hop.from.and_then(&name);
            let visits = hops.iter().filter(|earlier| node.is_some() && earlier.node == node).count();
            hops.push(describe(hop, index, node, visits));
        }
        let remark = match self.ended {
            Some(End::Refused(error)) => Some(format!("ended by an error: {error}")),
            Some(End::Silent) => Some("no further node answers".to_owned()),
            Some(End::Arrived) if !self.journey.is_empty() => {
                Some(format!("the journey of the policy is {}", self.journey.join(" > ")))
            }
            Some(End::Arrived) | None => None,
        };
        TraceReport {
            format: FORMAT,
            destination: self.destination,
            policy: self.policy,
            hops,
            complete: self.ended == Some(End::Arrived),
            remark,
        }
    }
}

fn describe(hop: &Hop, index: usize, node: Option<String>, visits: usize) -> TraceHop {
    let mut rtts = hop.rtts.clone();
    rtts.sort_unstable();
    let median = rtts.get(rtts.len() / 2).map(|rtt| rtt.as_secs_f64() * 1000.0);
    TraceHop {
        hop: u8::try_from(index + 1).unwrap_or(u8::MAX),
        node,
        address: hop.from,
        rtt_ms: median,
        sent: hop.sent,
        received: u32::try_from(hop.rtts.len()).unwrap_or(u32::MAX),
        remark: match visits {
            0 => None,
            1 => Some("second visit".to_owned()),
            2 => Some("third visit".to_owned()),
            more => Some(format!("visit {}", more + 1)),
        },
    }
}
