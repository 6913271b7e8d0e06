//! Stands in for `crate::policy` until it is there.

use srv6::ip::FlowKey;

/// Index in `Forwarding::policies`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyIndex(pub u16);

/// Rules in order, each with the policy it chooses.
#[derive(Debug, Clone, Default)]
pub struct SteeringTable;

impl SteeringTable {
    /// The policy of the first rule that matches.
    pub fn classify(&self, _flow: &FlowKey) -> Option<PolicyIndex> {
        None
    }

    /// The policy of the first rule that matches after those of `previous`.
    pub fn classify_after(&self, _flow: &FlowKey, _previous: PolicyIndex) -> Option<PolicyIndex> {
        None
    }
}
