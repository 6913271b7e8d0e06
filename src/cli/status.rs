//! `viamesh status`

use super::arguments::{Global, Status};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(_: &Status, _: &Global, _: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::not_built("status"))
}
