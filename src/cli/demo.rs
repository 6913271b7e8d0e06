//! `viamesh demo`

use super::arguments::{Demo, DemoCommand, Global};
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::demo::{self, DemoOptions};

pub(super) fn run(demo: &Demo, _: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let failed = |text: String| Failure::new(Exit::Failed, text);
    // The demo and the shell write for themselves.
    output.flush()?;
    match &demo.command {
        None => demo::run(&DemoOptions { keep: demo.keep, json: demo.report.clone() }).map_err(failed)?,
        Some(DemoCommand::Shell { city }) => demo::shell(city).map_err(failed)?,
    }
    Ok(Exit::Done)
}
