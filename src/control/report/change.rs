//! `viamesh reload`, `apply`, `confirm`, `undo` and `check --live`: what changes.

use serde::{Deserialize, Serialize};

use super::Text;
use crate::control::quantity::whole_span;

/// The answer to everything that changes the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Whether the changes are in force; `false` for a question what would change.
    pub applied: bool,
    /// One line for each thing that changed or would change.
    pub changes: Vec<String>,
    /// Fields that differ and that only a restart changes.
    pub needs_restart: Vec<String>,
    /// Warnings about the configuration.
    pub warnings: u64,
    /// Seconds until the change is undone unless it is confirmed.
    pub confirm_seconds: Option<u64>,
}

impl Text for ChangeReport {
    fn text(&self) -> String {
        let mut text = match (self.changes.is_empty(), self.applied) {
            (true, _) => "nothing changes\n".to_owned(),
            (false, true) => "changed:\n".to_owned(),
            (false, false) => "would change:\n".to_owned(),
        };
        for change in &self.changes {
            text.push_str(&format!("  {change}\n"));
        }
        if !self.needs_restart.is_empty() {
            text.push_str(&format!("needs a restart: {}\n", self.needs_restart.join(", ")));
        }
        if self.warnings > 0 {
            text.push_str("the configuration has warnings: `viamesh check` shows them\n");
        }
        if let Some(seconds) = self.confirm_seconds {
            let within = whole_span(seconds);
            text.push_str(&format!("undone in {within} unless `viamesh confirm` says that it works\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;

    #[test]
    fn a_change_that_waits_for_confirmation_says_so() {
        let report = ChangeReport {
            format: FORMAT,
            applied: true,
            changes: vec!["node added: delta".to_owned()],
            needs_restart: vec!["workers".to_owned()],
            warnings: 0,
            confirm_seconds: Some(300),
        };
        insta::assert_snapshot!(report.text(), @r"
        changed:
          node added: delta
        needs a restart: workers
        undone in 5 min unless `viamesh confirm` says that it works
        ");
    }

    #[test]
    fn nothing_is_something_to_say() {
        let report = ChangeReport {
            format: FORMAT,
            applied: true,
            changes: Vec::new(),
            needs_restart: Vec::new(),
            warnings: 2,
            confirm_seconds: None,
        };
        insta::assert_snapshot!(report.text(), @r"
        nothing changes
        the configuration has warnings: `viamesh check` shows them
        ");
    }
}
