//! `viamesh run`

use super::arguments::{Global, Run};
use super::check;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::Settings;

pub(super) fn run(run: &Run, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let request = check::request(&global.config, &run.files, global);
    let loaded = crate::config::load(&request, &crate::config::load::System);
    let rendered = loaded.diagnostics.render(output.colour_stderr());
    if !rendered.is_empty() {
        output.narrate(rendered.trim_end());
    }
    let Some(settings) = loaded.settings else {
        let message = format!("the configuration in {} cannot be used", global.config.display());
        return Err(Failure::new(Exit::BadConfiguration, message));
    };
    start(&settings, run)
}

/// Runs the daemon until it is told to stop.
fn start(_: &Settings, _: &Run) -> Result<Exit, Failure> {
    Err(Failure::not_built("run"))
}
