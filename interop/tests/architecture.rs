//! The import rules of the repository, as a test: the four cores stay pure and know nothing of each
//! other, the pure parts of the daemon stay pure, and `unsafe` lives in two places only.

#![expect(clippy::expect_used, reason = "a test that cannot read the repository has failed")]

use cargo_metadata::MetadataCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const CORES: [&str; 4] = ["ikev2", "esp", "babel", "srv6"];

/// Crates that mean a socket, a clock driver or an executor.
const FORBIDDEN_IN_CORES: [&str; 12] = [
    "tokio",
    "mio",
    "async-std",
    "smol",
    "socket2",
    "quinn-udp",
    "rtnetlink",
    "netlink-sys",
    "tun-rs",
    "nix",
    "tracing-subscriber",
    "viamesh",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace root").to_path_buf()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    pending.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The lines of a file that are part of the product: no comments, and nothing behind `#[cfg(test)]`, since tests
/// stand last. Files of tests alone have none.
fn code_lines(path: &Path) -> Vec<(usize, String)> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    if name.ends_with("tests") || path.components().any(|part| part.as_os_str() == "tests") {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).expect("a readable source file");
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or("").to_owned()))
        .collect()
}

/// Every place in `folders` where a line of code contains one of `words`.
fn uses(folders: &[&str], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders {
        for path in rust_files(&root().join(folder)) {
            for (number, line) in code_lines(&path) {
                for word in words {
                    if line.contains(word) {
                        found.push(format!("{}:{number}: {word}", path.display()));
                    }
                }
            }
        }
    }
    found
}

#[test]
fn cores_depend_on_no_sibling_and_on_nothing_that_touches_the_system() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .exec()
        .expect("cargo metadata works in the workspace");
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let names: BTreeMap<_, _> = metadata.packages.iter().map(|p| (&p.id, p.name.to_string())).collect();
    for core in CORES {
        let start = metadata.packages.iter().find(|p| p.name.as_str() == core).expect("the core exists");
        let mut seen = BTreeSet::new();
        let mut pending = vec![&start.id];
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            let node = resolve.nodes.iter().find(|n| n.id == *id).expect("a node of the graph");
            pending.extend(node.deps.iter().filter_map(|dependency| {
                let normal = dependency
                    .dep_kinds
                    .iter()
                    .any(|kind| kind.kind == cargo_metadata::DependencyKind::Normal);
                normal.then_some(&dependency.pkg)
            }));
        }
        let reached: BTreeSet<String> = seen.iter().map(|id| names[*id].clone()).collect();
        for forbidden in FORBIDDEN_IN_CORES.iter().chain(CORES.iter().filter(|other| **other != core)) {
            assert!(!reached.contains(*forbidden), "{core} must not depend on {forbidden}");
        }
    }
}

#[test]
fn cores_forbid_unsafe_and_read_no_clock() {
    for core in CORES {
        let library = std::fs::read_to_string(root().join(core).join("src/lib.rs")).expect("lib.rs");
        assert!(library.contains("#![forbid(unsafe_code)]"), "{core}/src/lib.rs forbids unsafe code");
        assert!(root().join(core).join("clippy.toml").exists(), "{core} has a clippy.toml of its own");
    }
    let folders: Vec<String> = CORES.iter().map(|core| format!("{core}/src")).collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let found = uses(&folders, &["Instant::now", "SystemTime::now", "UdpSocket", "TcpStream", "getrandom"]);
    assert!(found.is_empty(), "cores are sans-IO:\n{}", found.join("\n"));
}

#[test]
fn the_pure_parts_of_the_daemon_stay_pure() {
    let folders = ["src/node", "src/policy", "src/forwarding"];
    let words =
        ["crate::runtime", "crate::kernel::apply", "tokio", "UdpSocket", "Instant::now", "SystemTime::now"];
    let found = uses(&folders, &words);
    assert!(found.is_empty(), "pure code touches no socket, clock or executor:\n{}", found.join("\n"));
}

#[test]
fn unsafe_code_lives_in_the_runtime_and_the_lab_only() {
    let mut found = Vec::new();
    for folder in ["src", "ikev2/src", "esp/src", "babel/src", "srv6/src", "interop", "xtask"] {
        for path in rust_files(&root().join(folder)) {
            if path.starts_with(root().join("src/runtime")) || path.ends_with("tests/architecture.rs") {
                continue;
            }
            for (number, line) in code_lines(&path) {
                if line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl") {
                    found.push(format!("{}:{number}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "unsafe outside src/runtime and lab:\n{}", found.join("\n"));
}

#[test]
fn processes_are_started_by_the_lab_alone() {
    let found = uses(&["interop/src", "bench/src", "src/demo"], &[".spawn()", ".status()", ".output()"]);
    assert!(found.is_empty(), "the lab owns processes:\n{}", found.join("\n"));
}

/// Files that are longer than the rule allows, with the reason. This list may only shrink.
const LONG_FILES: [&str; 0] = [];

#[test]
fn files_stay_small_enough_to_be_read() {
    let mut found = Vec::new();
    for folder in ["src", "ikev2/src", "esp/src", "babel/src", "srv6/src", "lab/src", "xtask/src"] {
        for path in rust_files(&root().join(folder)) {
            let text = std::fs::read_to_string(&path).expect("a readable source file");
            let code = text.split("#[cfg(test)]").next().unwrap_or("").lines().count();
            let name = path.strip_prefix(root()).expect("inside the repository").display().to_string();
            if code > 600 && !LONG_FILES.contains(&name.as_str()) {
                found.push(format!("{name}: {code} lines without tests"));
            }
        }
    }
    assert!(found.is_empty(), "one thing a file:\n{}", found.join("\n"));
}
