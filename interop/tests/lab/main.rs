//! Real daemons in network namespaces, joined by emulated links. Needs root:
//! `cargo test --workspace --test lab -- --test-threads=2`.
//!
//! Nothing here waits for a fixed time or judges an absolute one: tests wait for events, and compare what they
//! measure with something measured in the same run.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod capture;
mod cleanliness;
mod commands;
mod crash;
mod demo;
mod dialling;
mod examples;
mod exit_codes;
mod frames;
mod full_disk;
mod guide;
mod hostile;
mod internet_exit;
mod nat;
mod observe;
mod package;
mod page;
mod path_mtu;
mod policy_forms;
mod policy_outage;
mod policy_traffic;
mod redistribution;
mod registry_source;
mod rekey;
mod relay;
mod reload;
mod scene;
mod soak;
mod traffic_classes;
mod tshark;
mod tunnels;
mod waypoints;
mod web_server;
