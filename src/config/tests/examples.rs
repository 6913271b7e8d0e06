//! The example configurations of `deploy/` are correct.

use std::path::Path;

use super::support::{Files, acme_key};
use crate::config::key;

/// Each example has the registry and the file of the registry's first node.
#[test]
fn every_example_passes_the_check() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples");
    let mut checked = 0;
    for entry in std::fs::read_dir(&examples).unwrap() {
        let directory = entry.unwrap().path();
        let registry = std::fs::read_to_string(directory.join("registry.yaml")).unwrap();
        let node = std::fs::read_to_string(directory.join("node.yaml")).unwrap();
        let mut files = Files::new(&node, &with_our_key(&registry));
        files.set("node.pem", key::private_pem(&acme_key()).unwrap().as_bytes(), 0o600);
        let loaded = files.load();
        assert_eq!(loaded.diagnostics.render(false), "", "{}", directory.display());
        assert!(loaded.settings.is_some());
        checked += 1;
    }
    assert!(checked >= 4, "{checked}");
}

/// Nobody has the private keys of the examples, so the first public key gives way to one that the test has.
fn with_our_key(registry: &str) -> String {
    let ours = key::public_pem(&acme_key().verifying_key()).unwrap();
    let begin = registry.lines().position(|line| line.contains("BEGIN PUBLIC KEY")).unwrap();
    let theirs = registry.lines().nth(begin + 1).unwrap().trim();
    registry.replacen(theirs, ours.lines().nth(1).unwrap(), 1)
}
