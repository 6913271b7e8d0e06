//! `viamesh neighbours`

use super::arguments::Global;
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(_: &Global, _: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::not_built("neighbours"))
}
