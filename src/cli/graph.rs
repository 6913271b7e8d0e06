//! `viamesh graph`

use super::arguments::{Global, Graph, GraphFormat};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::report::{GraphReport, Text};
use crate::control::{Reply, Request};

pub(super) fn run(graph: &Graph, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let report = fetch(global)?;
    if output.json() {
        let document =
            serde_json::to_value(&report).map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        output.document(&document)?;
    } else {
        output.text(&match graph.format {
            GraphFormat::Dot => report.text(),
            GraphFormat::Mermaid => report.mermaid(),
        })?;
    }
    Ok(Exit::Done)
}

/// The graph, from the two reports that it is made of.
pub(super) fn fetch(global: &Global) -> Result<GraphReport, Failure> {
    let status = ask::ask(&Request::Status { node: None }, global)?;
    let routes = ask::ask(&Request::Routes { address: None }, global)?;
    match (status, routes) {
        (Reply::Status(status), Reply::Routes(routes)) => Ok(GraphReport::of(&status, &routes)),
        _ => Err(Failure::new(Exit::Failed, "the daemon's answer makes no sense")),
    }
}
