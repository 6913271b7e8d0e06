//! `viamesh trace`

use super::arguments::{Global, Trace};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(_: &Trace, _: &Global, _: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::not_built("trace"))
}
