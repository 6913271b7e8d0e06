//! What the web page shows: the other reports in one document, so that they belong to one moment.

use serde::{Deserialize, Serialize};

use super::{GraphReport, Samples, StatusReport};
use crate::control::quantity::count;
use crate::control::table::{Align, Table};
use crate::forwarding::DropReason;

/// The answer to `/api/view`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// Number of the newest sample: what to ask for next as `since`.
    pub number: u64,
    /// As `viamesh status --json`.
    pub status: StatusReport,
    /// As `viamesh graph --json`.
    pub graph: GraphReport,
    /// Samples of links that are newer than what was asked for.
    pub history: Samples,
    /// What was discarded, most first, in words.
    pub drops: Vec<DropRow>,
}

/// Packets that were discarded for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropRow {
    /// Stable name.
    pub reason: String,
    /// The same in words.
    pub text: String,
    /// How many since the daemon started.
    pub packets: u64,
}

impl DropRow {
    /// The rows of a report, most packets first.
    pub fn of(status: &StatusReport) -> Vec<Self> {
        let words = |name: &str| {
            let reason = DropReason::ALL.iter().find(|reason| reason.name() == name);
            reason.map_or_else(String::new, |reason| reason.explanation().to_owned())
        };
        let row = |(reason, packets): (&String, &u64)| Self {
            reason: reason.clone(),
            text: words(reason),
            packets: *packets,
        };
        let mut rows: Vec<Self> = status.drops.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.packets));
        rows
    }

    /// The rows for people; nothing if nothing was discarded.
    pub fn table(rows: &[Self]) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let mut table =
            Table::new(&[("DROPPED", Align::Left), ("PACKETS", Align::Right), ("WHY", Align::Left)]);
        for row in rows {
            table.row([row.reason.clone(), count(row.packets), row.text.clone()]);
        }
        table.text()
    }
}
