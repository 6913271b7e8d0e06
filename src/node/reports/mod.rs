//! Answers to the control socket: what the node knows, in the shapes of `control::report`.

mod associations;
mod explain;
mod neighbours;
mod registry;
mod routes;
mod status;

use super::link::Link;
use super::{ClientId, Node};
use crate::control::protocol::Refusal;
use crate::control::{Reply, Request};
use std::time::{Duration, Instant};

impl Node {
    /// Answer at once where that is possible; `None` means that the answer comes later.
    pub(super) fn answer(&mut self, client: ClientId, request: &Request, now: Instant) -> Option<Reply> {
        let reply = match request {
            Request::Status { node } => self.status(node.as_deref(), now).map(Reply::Status),
            Request::Routes { address } => Ok(Reply::Routes(self.routes_report(*address, now))),
            Request::Neighbours => Ok(Reply::Neighbours(self.neighbours_report(now))),
            Request::Associations { node } => {
                self.associations(node.as_deref(), now).map(Reply::Associations)
            }
            Request::Explain { flow } => self.explain(flow, now).map(Reply::Explain),
            Request::Registry => Ok(Reply::Registry(self.registry_report())),
            Request::Ping { .. } | Request::Trace { .. } => match self.start_probes(client, request, now) {
                Ok(()) => return None,
                Err(text) => Err(text),
            },
            Request::Reload
            | Request::Plan { .. }
            | Request::Apply { .. }
            | Request::Confirm
            | Request::Undo
            | Request::Counters
            | Request::Log { .. } => Err("this is not for the node".to_owned()),
        };
        Some(reply.unwrap_or_else(|text| Reply::Refused(Refusal::new(1, text))))
    }
}

/// A link as people read it: our endpoint, then the peer and its endpoint.
fn link_name(link: &Link) -> String {
    format!("{} > {}/{}", link.key.local_serial, link.peer, link.key.remote_serial)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A Babel metric; infinity is none.
fn finite(metric: u16) -> Option<u32> {
    (metric != babel::INFINITY).then_some(u32::from(metric))
}

/// Whole seconds from `then` to `now`.
fn seconds_since(then: Instant, now: Instant) -> u64 {
    now.saturating_duration_since(then).as_secs()
}
