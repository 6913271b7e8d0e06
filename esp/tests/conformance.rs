//! `CONFORMANCE.md` names functions and tests: they must exist.

use std::fs;
use std::path::Path;

/// `src/wire.rs::parse` -> whether that file defines that function, type or constant.
fn resolves(reference: &str) -> bool {
    let Some((file, name)) = reference.split_once("::") else { return false };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let source = fs::read_to_string(path).unwrap_or_default();
    ["fn ", "struct ", "enum ", "const "].iter().any(|keyword| {
        source.match_indices(&format!("{keyword}{name}")).any(|(at, found)| {
            !source[at + found.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
        })
    })
}

#[test]
fn every_reference_resolves() {
    let text = include_str!("../CONFORMANCE.md");
    let references: Vec<_> =
        text.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains(".rs::")).collect();
    assert!(references.len() > 60, "{} references", references.len());
    let missing: Vec<_> = references.into_iter().filter(|reference| !resolves(reference)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_row_names_code_and_a_test_or_gives_a_reason() {
    for row in include_str!("../CONFORMANCE.md").lines().filter(|line| line.starts_with("| §")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 4, "{row}");
        let tested = cells[2].contains("src/") && (cells[3].contains("tests") || cells[3].contains("src/"));
        assert!(tested || cells[3].starts_with("not done: ") || cells[3].starts_with("elsewhere: "), "{row}");
    }
}
