//! Text tables without borders.

use std::fmt::Write;

/// Spaces between columns.
const GAP: usize = 3;

/// Which side of a column its cells stand at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table that is as wide as its cells.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Cells that are missing are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text; nothing at all without rows.
    pub(crate) fn text(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let headings: Vec<String> = self.columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|column| self.width(&headings, column)).collect();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            self.write_row(&mut text, row, &widths);
        }
        text
    }

    fn width(&self, headings: &[String], column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).chain(headings.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    fn write_row(&self, text: &mut String, row: &[String], widths: &[usize]) {
        let mut line = String::new();
        for (column, (width, (_, align))) in widths.iter().zip(&self.columns).enumerate() {
            let cell = row.get(column).map_or("", String::as_str);
            let gap = if column == 0 { 0 } else { GAP };
            // Writing to a String cannot fail.
            let _ = match align {
                Align::Left => write!(line, "{:gap$}{cell:<width$}", ""),
                Align::Right => write!(line, "{:gap$}{cell:>width$}", ""),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_have_no_tail() {
        let mut table = Table::new(&[("NODE", Align::Left), ("RTT", Align::Right), ("NOTE", Align::Left)]);
        table.row(["bravo".to_owned(), "23 ms".to_owned(), String::new()]);
        table.row(["partner/délta".to_owned(), "178 ms".to_owned(), "far".to_owned()]);
        insta::assert_snapshot!(table.text(), @"
        NODE               RTT   NOTE
        bravo            23 ms
        partner/délta   178 ms   far
        ");
    }

    #[test]
    fn an_empty_table_is_nothing() {
        assert_eq!(Table::new(&[("NODE", Align::Left)]).text(), "");
    }
}
