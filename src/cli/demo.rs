//! `viamesh demo`

use super::arguments::{Demo, DemoCommand, Global};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(demo: &Demo, _: &Global, _: &mut Output) -> Result<Exit, Failure> {
    match &demo.command {
        None => Err(Failure::not_built("demo")),
        Some(DemoCommand::Shell { .. }) => Err(Failure::not_built("demo shell")),
    }
}
