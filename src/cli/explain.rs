//! `viamesh explain`

use super::arguments::{Explain, Global};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(_: &Explain, _: &Global, _: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::not_built("explain"))
}
