//! The pages that people read, and what they tell people to type.

use std::path::{Path, PathBuf};

/// The repository's root.
///
/// # Panics
/// If this crate is not in a workspace.
pub fn root() -> PathBuf {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    parent.and_then(|path| path.canonicalize().ok()).unwrap_or_else(|| panic!("no workspace"))
}

/// All Markdown files for readers: those of the root, of `docs`, and of each crate.
pub fn pages() -> Vec<PathBuf> {
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

/// The text of a page.
///
/// # Panics
/// If it cannot be read.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text without blocks of code, and those blocks.
pub fn split(text: &str) -> (String, Vec<String>) {
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

/// The lines with `viamesh` in a page's blocks of code, without comments.
pub fn command_lines(page: &str) -> Vec<String> {
    let blocks = split(page).1;
    let lines = blocks.iter().flat_map(|block| block.lines()).map(|line| {
        let line = line.trim().trim_start_matches("$ ").trim_start_matches("sudo ");
        line.split(" #").next().unwrap_or_default().trim().to_owned()
    });
    lines.filter(|line| line.starts_with("viamesh ") && !line.contains('…')).collect()
}

/// The commands that a page mentions between backticks.
pub fn mentioned_commands(page: &str) -> Vec<String> {
    let prose = split(page).0;
    let spans = prose.split('`').skip(1).step_by(2);
    let spans = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    spans.filter(|span| span.starts_with("viamesh ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_blocks_and_in_sentences() {
        let page = "Type `viamesh help\nCODE`, not `ip`.\n```\n$ viamesh top   # live\nip link\n```\nor `viamesh top`.\n";
        assert_eq!(command_lines(page), ["viamesh top"]);
        assert_eq!(mentioned_commands(page), ["viamesh help CODE", "viamesh top"]);
    }
}
