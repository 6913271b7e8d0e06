//! `viamesh demo`

use super::arguments::{Demo as DemoArguments, DemoCommand, Global};
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::demo::{self, DemoOptions};

pub(super) fn run(demo: &DemoArguments, _: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let failed = |text: String| Failure::new(Exit::Failed, text);
    // The demo and the shell write for themselves.
    output.flush()?;
    match &demo.command {
        None => {
            let DemoArguments { keep, report, capture, .. } = demo.clone();
            demo::run(&DemoOptions { keep, json: report, capture }).map_err(failed)?;
        }
        Some(DemoCommand::Shell { city }) => demo::shell(city).map_err(failed)?,
    }
    Ok(Exit::Done)
}
