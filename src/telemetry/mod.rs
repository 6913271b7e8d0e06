//! Logs, health messages and readiness.

mod event_log;
mod health;
pub mod logging;
mod notify;

pub use event_log::log_event;
pub use health::{Health, Severity};
pub use notify::Notifier;
