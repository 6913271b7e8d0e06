//! `viamesh associations`

use super::arguments::{Associations, Global};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;

pub(super) fn run(
    associations: &Associations,
    global: &Global,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let request = Request::Associations { node: associations.node.clone() };
    ask::print_or_watch(&request, &associations.watch, global, output)
}
