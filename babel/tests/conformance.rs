//! Every function and test that `CONFORMANCE.md` names exists, and every row has both or says why not.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

use std::{fs, path::Path};

const DOCUMENT: &str = include_str!("../CONFORMANCE.md");

/// What stands between backticks and names something in a Rust file: (file, name).
fn references(text: &str) -> Vec<(&str, &str)> {
    text.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.split_once(".rs::")).collect()
}

fn defines(file: &str, name: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{file}.rs"));
    let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let words: Vec<_> =
        source.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| matches!(pair[0], "fn" | "struct" | "enum" | "const") && pair[1] == name)
}

#[test]
fn references_resolve() {
    let all = references(DOCUMENT);
    assert!(all.len() > 120, "only {} references", all.len());
    let missing: Vec<_> = all.into_iter().filter(|(file, name)| !defines(file, name)).collect();
    assert_eq!(missing, Vec::<(&str, &str)>::new());
}

#[test]
fn rows_are_complete() {
    for row in DOCUMENT.lines().filter(|line| line.starts_with("| §")) {
        let [_, _, _, function, test, _] = row.split('|').collect::<Vec<_>>()[..] else {
            panic!("not four columns: {row}")
        };
        let excused = ["not done: ", "elsewhere: "].iter().any(|excuse| test.trim().starts_with(excuse));
        let covered = !references(function).is_empty() && !references(test).is_empty();
        assert!(excused != covered, "{row}");
    }
}
