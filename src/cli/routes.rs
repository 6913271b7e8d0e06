//! `viamesh routes`

use super::arguments::{Global, Routes};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;

pub(super) fn run(routes: &Routes, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    ask::print_or_watch(&Request::Routes { address: routes.address }, &routes.watch, global, output)
}
