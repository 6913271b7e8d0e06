//! Logs, health messages and readiness.

pub mod component;
mod event_log;
mod health;
mod health_code;
pub mod logging;
pub mod metrics;
#[cfg(test)]
mod metrics_tests;
mod notify;
mod tally;

pub use event_log::log_event;
pub use health::{Health, Severity};
pub use health_code::{HealthCode, manual as troubleshooting};
pub use notify::Notifier;
pub use tally::Tally;
