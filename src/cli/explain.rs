//! `viamesh explain`

use super::arguments::{Explain, Global};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;

pub(super) fn run(explain: &Explain, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let flow = ask::flow(explain.source, explain.destination, &explain.flow);
    ask::print_or_watch(&Request::Explain { flow }, &explain.watch, global, output)
}
