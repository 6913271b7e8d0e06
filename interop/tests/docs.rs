//! The documentation holds together: links lead somewhere, the book has every page, and what it
//! tells people to type is what the program takes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::Parser;
use interop::documentation::{command_lines, pages, read, root, split};
use std::collections::BTreeSet;
use std::ffi::OsString;
use viamesh::cli::arguments::{Arguments, normalised};

/// Targets of `[text](target)`.
fn targets(prose: &str) -> Vec<String> {
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

/// Headings as anchors, in the way of forges and of mdBook.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        for target in targets(&split(&read(&page)).0) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let place = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let there = place.exists();
            let named =
                anchor.is_empty() || there && place.is_file() && anchors(&read(&place)).contains(anchor);
            if !there || !named {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn the_book_has_every_page_once() {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let listed = targets(&summary);
    let unique: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len());
    let pages = pages();
    let pages = pages.iter().filter(|page| page.parent().unwrap().ends_with("docs"));
    for page in pages.filter(|page| !page.ends_with("SUMMARY.md")) {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(listed.contains(&name), "docs/SUMMARY.md does not list {name}");
    }
}

#[test]
fn every_test_that_the_page_on_robustness_names_exists() {
    let page = read(&root().join("docs/robustness.md"));
    let rows = page.lines().filter(|line| line.starts_with("| ") && *line != "| what happens | test |");
    let mut missing = Vec::new();
    for row in rows {
        let named: Vec<(&str, &str)> = row.split('`').filter_map(|part| part.split_once("::")).collect();
        let exists = |(file, name): &(&str, &str)| {
            let source = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            source.contains(&format!("fn {name}("))
        };
        if named.is_empty() || !named.iter().all(exists) {
            missing.push(row);
        }
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn commands_in_the_documentation_are_commands() {
    let mut lines = Vec::new();
    for page in pages() {
        lines.extend(command_lines(&read(&page)).into_iter().map(|line| (page.clone(), line)));
    }
    assert!(lines.len() > 15, "{lines:?}");
    for (page, line) in lines {
        let line = line.split([';', '|', '>']).next().unwrap_or_default().trim();
        // What stands for something: SRC is an address there.
        let line = line.replace("SRC", "10.1.3.4").replace("DST", "10.4.0.9").replace("ADDRESS", "10.4.0.9");
        let words = normalised(line.split_whitespace().map(OsString::from));
        if let Err(error) = Arguments::try_parse_from(words) {
            assert!(!error.use_stderr(), "{}: {line}\n{error}", page.display());
        }
    }
}
