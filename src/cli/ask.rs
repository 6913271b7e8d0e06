//! Commands that ask the daemon: one request, one answer, printed as text or JSON.

use super::arguments::{Flow, Global, Watch};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::progress::Progress;
use crate::control::protocol::Refusal;
use crate::control::report::FlowDescription;
use crate::control::{Client, ClientError, Reply, Request};
use std::net::IpAddr;
use std::time::Duration;

/// Asks and prints the answer.
pub(super) fn print(request: &Request, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    show(&ask(request, global)?, output)?;
    Ok(Exit::Done)
}

/// Prints an answer as text or JSON.
pub(super) fn show(reply: &Reply, output: &mut Output) -> Result<(), Failure> {
    if output.json() {
        let text = reply.json().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        output.line(&text)
    } else {
        output.text(&reply.text())
    }
}

/// Asks and prints the answer, once or again and again.
pub(super) fn print_or_watch(
    request: &Request,
    watch: &Watch,
    global: &Global,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match watch.watch {
        None => print(request, global, output),
        Some(seconds) => super::watch::follow(request, Duration::from_secs_f64(seconds), global, output),
    }
}

/// Asks. Whoever sits before a terminal sees that it takes a while.
pub(super) fn ask(request: &Request, global: &Global) -> Result<Reply, Failure> {
    let _progress = Progress::start("waiting for the daemon's answer");
    Client::connect(&global.socket()).and_then(|mut client| client.ask(request)).map_err(failure)
}

fn failure(error: ClientError) -> Failure {
    let mut failure = Failure::new(Exit::from_code(error.exit_code()), error.to_string());
    if let ClientError::Refused(Refusal { details: Some(details), .. }) = &error {
        failure = failure.details(details);
    }
    match error.help() {
        Some(help) => failure.help(help),
        None => failure,
    }
}

/// The packet that a person described.
pub(super) fn flow(source: IpAddr, destination: IpAddr, flow: &Flow) -> FlowDescription {
    let protocol = match (flow.tcp, flow.udp) {
        (true, _) => Some("tcp".to_owned()),
        (_, true) => Some("udp".to_owned()),
        (false, false) => None,
    };
    FlowDescription {
        source,
        destination,
        protocol,
        source_port: None,
        destination_port: flow.port,
        ingress: flow.ingress.clone(),
        fwmark: flow.fwmark,
    }
}
