//! `CONFORMANCE.md` names functions and tests: they must exist.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::path::Path;

/// The table rows: clause, demand, function, test.
fn rows() -> Vec<Vec<&'static str>> {
    let lines = include_str!("../CONFORMANCE.md").lines().filter(|line| line.starts_with("| §"));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What stands between backquotes and looks like `src/sid.rs::is_segment`.
fn references(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains(".rs::"))
}

fn exists(reference: &str) -> bool {
    let (file, name) = reference.split_once("::").expect("file::name");
    let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    let source = source.unwrap_or_default();
    let words: Vec<&str> = source.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let keywords = ["fn", "struct", "enum", "const"];
    words.windows(2).any(|pair| keywords.contains(&pair[0]) && pair[1] == name)
}

#[test]
fn every_reference_resolves() {
    let rows = rows();
    assert!(rows.len() > 50, "{} rows", rows.len());
    let all = rows.iter().flatten().flat_map(|cell| references(cell));
    let missing: Vec<_> = all.filter(|reference| !exists(reference)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_clause_has_code_and_a_test_or_a_reason() {
    for row in rows() {
        let [clause, _, function, test] = row[..] else { panic!("four cells: {row:?}") };
        let proven = references(function).next().is_some() && references(test).next().is_some();
        let excused = ["not done: ", "elsewhere: "].iter().any(|reason| test.starts_with(reason));
        assert!(proven || excused, "{clause}: {test}");
    }
}
