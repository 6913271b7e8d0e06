//! `viamesh neighbours`

use super::arguments::{Global, Neighbours};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;

pub(super) fn run(neighbours: &Neighbours, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    ask::print_or_watch(&Request::Neighbours, &neighbours.watch, global, output)
}
