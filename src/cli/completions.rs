//! `viamesh completions`

use clap::CommandFactory;
use clap_complete::Shell;

use super::arguments::Arguments;
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(shell: Shell, output: &mut Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "viamesh", &mut script);
    output.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
