//! `viamesh trace`

use super::arguments::{Global, Trace};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::Request;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn run(trace: &Trace, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let any = match trace.destination {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let flow = ask::flow(trace.from.unwrap_or(any), trace.destination, &trace.flow);
    let timeout_ms = super::ping::milliseconds(trace.timeout);
    ask::print(&Request::Trace { flow, count: trace.count, timeout_ms }, global, output)
}
