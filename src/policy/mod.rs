//! Steering: which policy takes a packet.
//!
//! [`SteeringTable::compile`] turns the rules of a node file into tables; [`SteeringTable::classify`] finds the first
//! rule that matches, and serves the data path, `explain` and `trace` alike. [`idle_rules`] finds rules that can
//! never match.
//!
//! Each part of a rule (source, destination, protocol, ports, DSCP, class) is compiled on its own: a value of that part, say
//! a source address, leads to the set of rules whose part accepts it. A packet belongs to the rules that are in all
//! seven sets, and the first of them takes it. Rules are few kinds of sets, so the sets are shared, and the time does
//! not depend on how many prefixes a rule lists.
//!
//! **Fragments** never show their ports, not even the first one, so that all fragments of a datagram go one way. A rule
//! that names ports takes them all the same, if everything else matches: a policy exists because its traffic must not
//! leave by another way.

mod axis;
mod class;
mod idle;
mod outcome;
mod rule;
mod rule_set;
mod sorted_keys;
mod steering_table;

pub use class::{Class, ClassTable, Membership, count as count_classes};
pub use idle::{Idle, IdleReason, idle_rules};
pub use outcome::RuleOutcome;
pub use rule::{PolicyIndex, Rule};
pub use steering_table::SteeringTable;
