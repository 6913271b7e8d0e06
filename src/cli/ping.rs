//! `viamesh ping`

use super::arguments::{Global, Ping};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(_: &Ping, _: &Global, _: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::not_built("ping"))
}
