//! `viamesh man`: manual pages from the definitions of the commands, for packages.

use clap::CommandFactory;

use super::arguments::{Arguments, Man};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(man: &Man, output: &mut Output) -> Result<Exit, Failure> {
    match &man.dir {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            output.text(&String::from_utf8_lossy(&page))?;
        }
        Some(directory) => {
            let failed = |error: std::io::Error| {
                Failure::new(
                    Exit::Failed,
                    format!("cannot write manual pages to {}: {error}", directory.display()),
                )
            };
            std::fs::create_dir_all(directory).map_err(failed)?;
            clap_mangen::generate_to(Arguments::command(), directory).map_err(failed)?;
        }
    }
    Ok(Exit::Done)
}
