//! `viamesh ping`

use super::arguments::{Global, Ping};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::{Reply, Request};

/// Milliseconds between probes.
const INTERVAL_MS: u32 = 200;

pub(super) fn run(ping: &Ping, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let request = Request::Ping {
        node: ping.node.clone(),
        via: ping.via.clone(),
        count: ping.count,
        interval_ms: INTERVAL_MS,
        timeout_ms: milliseconds(ping.timeout),
    };
    let reply = ask::ask(&request, global)?;
    let answered =
        matches!(&reply, Reply::Ping(report) if report.replies.iter().any(|reply| reply.rtt_ms.is_some()));
    ask::show(&reply, output)?;
    Ok(if answered { Exit::Done } else { Exit::Failed })
}

/// Seconds as whole milliseconds, at least one.
pub(super) fn milliseconds(seconds: f64) -> u32 {
    let duration = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).max(1)
}
