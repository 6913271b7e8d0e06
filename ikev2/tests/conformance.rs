//! `CONFORMANCE.md` names functions and tests: they must exist.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::fs;
use std::path::Path;

struct Row {
    clause: &'static str,
    function: &'static str,
    test: &'static str,
}

fn rows() -> Vec<Row> {
    let table = include_str!("../CONFORMANCE.md").lines().filter(|line| line.starts_with("| §"));
    table
        .map(|line| match line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>()[..] {
            [clause, _, function, test] => Row { clause, function, test },
            _ => panic!("not four cells: {line}"),
        })
        .collect()
}

/// References of the form `path/file.rs::name` between backquotes.
fn references(cell: &str) -> Vec<(&str, &str)> {
    cell.split('`').filter_map(|quoted| quoted.split_once("::")).collect()
}

fn defines(file: &str, name: &str) -> bool {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap_or_default();
    source.contains(&format!("fn {name}(")) || source.contains(&format!("fn {name}<"))
}

#[test]
fn every_reference_names_a_function_that_exists() {
    let rows = rows();
    assert!(rows.len() > 40);
    for row in &rows {
        for (file, name) in references(row.function).into_iter().chain(references(row.test)) {
            assert!(defines(file, name), "{}: {file} has no function {name}", row.clause);
        }
    }
}

#[test]
fn every_clause_is_shown_or_excused() {
    for row in rows() {
        let shown = !references(row.function).is_empty() && !references(row.test).is_empty();
        let excused = ["not done: ", "elsewhere: "].iter().any(|reason| row.test.starts_with(reason));
        assert!(shown || excused, "{}", row.clause);
    }
}
