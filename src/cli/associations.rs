//! `viamesh associations`

use super::arguments::{Associations, Global};
use super::failure::{Exit, Failure};
use super::output::Output;

pub(super) fn run(_: &Associations, _: &Global, _: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::not_built("associations"))
}
