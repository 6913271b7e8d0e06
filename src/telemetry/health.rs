//! Health messages: what is wrong, how bad it is, and what to do next.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::health_code::HealthCode;

/// How bad a health message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing, nothing is lost.
    Notice,
    /// Something works less well than configured.
    Warning,
    /// Traffic is lost.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One thing that is wrong now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Stable code such as `kernel/no-nftables`; has a heading in the manual.
    pub code: String,
    /// What it is about: a node, a policy, a table; empty for the host as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, one sentence.
    pub text: String,
    /// What to do next.
    pub next_step: String,
}

impl Health {
    /// A message about `subject`, as severe as its code.
    pub fn new(
        code: HealthCode,
        subject: impl Into<String>,
        text: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        Self {
            code: code.name().to_owned(),
            subject: subject.into(),
            severity: code.severity(),
            text: text.into(),
            next_step: next_step.into(),
        }
    }
}
