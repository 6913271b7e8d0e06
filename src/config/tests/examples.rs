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
        let said = loaded.diagnostics.render(false);
        // ranet's script is accepted, and not run: the one thing that may be said of an example.
        let expected = usize::from(node.contains("updown\":"));
        assert_eq!(said.matches("[config/not-used]").count(), expected, "{}: {said}", directory.display());
        assert_eq!(said.matches("error[").count() + said.matches("warning[").count(), expected, "{said}");
        assert!(loaded.settings.is_some());
        checked += 1;
    }
    assert!(checked >= 8, "{checked}");
}

/// Nobody has the private keys of the examples, so the first public key gives way to one that the test has.
fn with_our_key(registry: &str) -> String {
    let ours = key::public_pem(&acme_key().verifying_key()).unwrap();
    let begin = registry.find("MCow").unwrap();
    let theirs = &registry[begin..begin + ours.lines().nth(1).unwrap().len()];
    registry.replacen(theirs, ours.lines().nth(1).unwrap(), 1)
}
