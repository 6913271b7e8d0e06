//! Logs, health messages and readiness.

pub mod health;

pub use health::{Health, HealthBook, Severity};
