//! `viamesh status`

use super::arguments::{Global, HealthCheck, Status};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::report::{LinkStatus, NodeState, PolicyState, StatusReport};
use crate::control::{Reply, Request};

pub(super) fn run(status: &Status, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let request = Request::Status { node: status.node.clone() };
    let Some(check) = status.check else {
        return ask::print_or_watch(&request, &status.watch, global, output);
    };
    let Reply::Status(report) = ask::ask(&request, global)? else { return Ok(Exit::Failed) };
    let healthy = match check {
        HealthCheck::Live => true,
        HealthCheck::Ready => is_ready(&report),
    };
    Ok(if healthy { Exit::Done } else { Exit::Failed })
}

/// At least one tunnel is up, and no policy is down.
fn is_ready(report: &StatusReport) -> bool {
    let mut links = report.nodes.iter().flat_map(|node| &node.links);
    let up = |link: &LinkStatus| link.state == NodeState::Up;
    links.any(up) && report.policies.iter().all(|policy| policy.state != PolicyState::Down)
}
