//! viamesh: a policy-routed IPsec mesh node, as a library. The binary `viamesh` is a thin shell around it.

pub mod cli;
pub mod config;
pub mod control;
pub mod demo;
pub mod forwarding;
pub mod kernel;
pub mod node;
pub mod policy;
pub mod registry;
pub mod runtime;
pub mod telemetry;
pub mod web;
