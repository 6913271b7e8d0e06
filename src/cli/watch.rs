//! `--watch`: the same question again and again.

use super::arguments::Global;
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;
use std::time::Duration;

/// Clears a terminal and its history, and goes to the first line.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Asks every `period` until interrupted or until nobody reads any more. A daemon that restarts meanwhile is waited
/// for; one that never answered is an error.
pub(super) fn follow(
    request: &Request,
    period: Duration,
    global: &Global,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut answered = false;
    loop {
        match ask::ask(request, global) {
            Ok(reply) => {
                answered = true;
                if output.json() {
                    let text = reply.json().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
                    // No string in it holds a line break: those are written as \n.
                    output.line(&text.lines().map(str::trim_start).collect::<String>())?;
                } else {
                    output.text(if output.is_terminal() { CLEAR } else { "" })?;
                    output.text(&reply.text())?;
                    output.text(if output.is_terminal() { "" } else { "\n" })?;
                }
            }
            Err(failure) if answered => output.narrate(failure.message()),
            Err(failure) => return Err(failure),
        }
        output.flush()?;
        std::thread::sleep(period);
    }
}
