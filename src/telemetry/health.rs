//! Health messages: what is wrong, how bad it is, and what to do next.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

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

/// All health messages that hold now, at most one per code and subject.
#[derive(Debug, Clone, Default)]
pub struct HealthBook {
    entries: BTreeMap<(String, String), Health>,
}

impl HealthBook {
    /// Adds or updates a message. True if it was not there before, so that it is logged once.
    pub fn raise(&mut self, health: Health) -> bool {
        self.entries.insert((health.code.clone(), health.subject.clone()), health).is_none()
    }

    /// Removes a message. True if it was there.
    pub fn clear(&mut self, code: &str, subject: &str) -> bool {
        self.entries.remove(&(code.to_owned(), subject.to_owned())).is_some()
    }

    /// Replaces all messages whose code begins with `area` (such as `kernel/`) by `current`, and returns
    /// those that are new.
    pub fn replace_area(&mut self, area: &str, current: Vec<Health>) -> Vec<Health> {
        let known = std::mem::take(&mut self.entries);
        let (old, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            known.into_iter().partition(|((code, _), _)| code.starts_with(area));
        self.entries = kept;
        let mut fresh = Vec::new();
        for health in current {
            let key = (health.code.clone(), health.subject.clone());
            if !old.contains_key(&key) {
                fresh.push(health.clone());
            }
            self.entries.insert(key, health);
        }
        fresh
    }

    /// The messages, worst first.
    pub fn list(&self) -> Vec<Health> {
        let mut list: Vec<Health> = self.entries.values().cloned().collect();
        list.sort_by_key(|health| std::cmp::Reverse(health.severity));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(code: &str, subject: &str, severity: Severity) -> Health {
        Health {
            code: code.to_owned(),
            subject: subject.to_owned(),
            severity,
            text: format!("{code} {subject}"),
            next_step: String::new(),
        }
    }

    #[test]
    fn a_message_is_new_once_until_it_is_cleared() {
        let mut book = HealthBook::default();
        assert!(book.raise(health("peer/down", "echo", Severity::Warning)));
        assert!(!book.raise(health("peer/down", "echo", Severity::Warning)));
        assert!(book.raise(health("peer/down", "bravo", Severity::Warning)));
        assert!(book.clear("peer/down", "echo"));
        assert!(!book.clear("peer/down", "echo"));
        assert_eq!(book.list().len(), 1);
    }

    #[test]
    fn replacing_an_area_keeps_the_others_and_tells_what_is_new() {
        let mut book = HealthBook::default();
        book.raise(health("peer/down", "echo", Severity::Warning));
        book.raise(health("kernel/old", "", Severity::Notice));
        book.raise(health("kernel/same", "", Severity::Notice));
        let fresh = book.replace_area(
            "kernel/",
            vec![health("kernel/same", "", Severity::Notice), health("kernel/new", "", Severity::Error)],
        );
        assert_eq!(fresh.iter().map(|entry| entry.code.as_str()).collect::<Vec<_>>(), ["kernel/new"]);
        let codes: Vec<String> = book.list().into_iter().map(|entry| entry.code).collect();
        assert_eq!(codes, ["kernel/new", "peer/down", "kernel/same"]);
    }
}
