//! `viamesh log`

use super::arguments::{Global, Log};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;

pub(super) fn run(log: &Log, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let filter = (!log.levels.is_empty()).then(|| log.levels.join(","));
    let seconds = u32::try_from(log.time.as_secs()).unwrap_or(u32::MAX);
    ask::print(&Request::Log { filter, seconds: Some(seconds) }, global, output)
}
