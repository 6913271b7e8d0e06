//! viamesh

pub mod cli;
pub mod config;
pub mod control;
pub mod kernel;
pub mod telemetry;
