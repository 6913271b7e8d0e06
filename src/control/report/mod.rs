//! What the daemon reports: each shape once, for text, `--json`, the page and metrics.
//!
//! Every top-level report carries `"format": 1`; within a format fields are only added. Durations are in
//! seconds, round trips in milliseconds, sizes in bytes. Names are as shown to people (`bravo`, or
//! `partner/bravo` where ambiguous).

mod associations;
mod change;
mod counters;
mod explain;
mod graph;
mod history;
mod neighbours;
mod probe;
mod registry;
mod routes;
#[cfg(test)]
mod samples;
mod status;
#[cfg(test)]
pub(crate) mod tests;
mod view;

pub use associations::{AssociationsReport, ChildAssociation, IkeAssociation};
pub use change::ChangeReport;
pub use counters::{CountersReport, DelayHistogram};
pub use explain::{
    CandidateReport, CandidateState, Delivery, ExplainReport, FlowDescription, RuleVerdict, SizeBudget,
    Verdict,
};
pub use graph::{GraphLink, GraphNode, GraphReport, Journey, Knowledge};
pub use history::{History, LinkSample, Samples};
pub use neighbours::{NeighbourEntry, NeighboursReport};
pub use probe::{PingReply, PingReport, TraceHop, TraceReport};
pub use registry::{RegistryEndpoint, RegistryNode, RegistryOrganization, RegistryReport};
pub use routes::{FeasibilityDistance, RouteEntry, RouteStanding, RoutesReport};
pub use status::{
    Dialled, LinkStatus, NodeState, NodeStatus, PathStatus, PolicyState, PolicyStatus, StatusReport,
};
pub use view::{DropRow, ViewReport};

/// The format number of all reports.
pub const FORMAT: u32 = 1;

/// The text form of a report, for people. The JSON form is serde's.
pub trait Text {
    /// Renders the whole report, with a line end after each line.
    fn text(&self) -> String;
}
