//! The documentation holds together: links lead somewhere, the book has every page, and what it
//! tells people to type is what the program takes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clap::Parser;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use viamesh::cli::arguments::{Arguments, normalised};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap()
}

/// All Markdown files for readers: those of the root, of `docs`, and of each crate.
fn pages() -> Vec<PathBuf> {
    let folders = [".", "docs", "ikev2", "esp", "babel", "srv6", "lab", "interop", "bench", "deploy"];
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(root().join(folder)) else { continue };
        let paths = entries.flatten().map(|entry| entry.path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text without blocks of code, and those blocks.
fn split(text: &str) -> (String, Vec<String>) {
    let (mut prose, mut blocks, mut block) = (String::new(), Vec::new(), None::<String>);
    for line in text.lines() {
        match (&mut block, line.trim_start().starts_with("```")) {
            (Some(open), true) => {
                blocks.push(std::mem::take(open));
                block = None;
            }
            (None, true) => block = Some(String::new()),
            (Some(open), false) => *open += &format!("{line}\n"),
            (None, false) => prose += &format!("{line}\n"),
        }
    }
    (prose, blocks)
}

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

/// The command lines in blocks of code.
fn command_lines() -> Vec<(PathBuf, String)> {
    let mut lines = Vec::new();
    for page in pages() {
        for block in split(&read(&page)).1 {
            for line in block.lines() {
                let line = line.trim().trim_start_matches("$ ").trim_start_matches("sudo ");
                let line = line.split(" #").next().unwrap_or_default();
                let line = line.split([';', '|', '>']).next().unwrap_or_default().trim();
                if line.starts_with("viamesh ") && !line.contains("…") {
                    lines.push((page.clone(), line.to_owned()));
                }
            }
        }
    }
    lines
}

#[test]
fn commands_in_the_documentation_are_commands() {
    let lines = command_lines();
    assert!(lines.len() > 15, "{lines:?}");
    for (page, line) in lines {
        // What stands for something: SRC is an address there.
        let line = line.replace("SRC", "10.1.3.4").replace("DST", "10.4.0.9").replace("ADDRESS", "10.4.0.9");
        let words = normalised(line.split_whitespace().map(OsString::from));
        if let Err(error) = Arguments::try_parse_from(words) {
            assert!(!error.use_stderr(), "{}: {line}\n{error}", page.display());
        }
    }
}
