//! `viamesh registry`

use super::arguments::Global;
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;

pub(super) fn run(global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    ask::print(&Request::Registry, global, output)
}
