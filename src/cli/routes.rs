//! `viamesh routes`

use super::arguments::{Global, Routes};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(_: &Routes, _: &Global, _: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::not_built("routes"))
}
