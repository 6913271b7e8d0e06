//! Whatever stands in the files: no panic, and a reason for every refusal.

use proptest::prelude::*;

use super::support::{Files, alpha, registry};
use crate::config::Loaded;

const POLICIES: &str = "announce: [10.1.0.0/16]\npolicies:\n  - name: p\n    from: [10.1.0.0/16]\n    to: [10.4.0.0/16]\n    via: [bravo, charlie]\n    exit: delta\n";

/// What YAML reads as more than text.
const PUNCTUATION: &[u8] = b"[]{}:,&*!|>'\"%@`#-? \n\t";

/// Either settings or at least one error, and everything can be shown.
fn assert_accounted_for(loaded: &Loaded) {
    assert_eq!(loaded.settings.is_none(), loaded.diagnostics.has_errors());
    let text = loaded.diagnostics.render(false);
    assert_eq!(text.is_empty(), loaded.diagnostics.sorted().is_empty());
    let _ = loaded.diagnostics.to_json();
}

/// `text` with some bytes replaced, removed or inserted.
fn mutated(text: String) -> impl Strategy<Value = Vec<u8>> {
    let edits =
        prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>(), 1..40_usize), 1..6);
    edits.prop_map(move |edits| {
        let mut bytes = text.clone().into_bytes();
        for (index, kind, byte, len) in edits {
            let at = index.index(bytes.len().max(1)).min(bytes.len());
            match kind {
                0 => bytes.insert(at, byte),
                1 => drop(bytes.drain(at..(at + len).min(bytes.len()))),
                2 => bytes.insert(at, PUNCTUATION[usize::from(byte) % PUNCTUATION.len()]),
                _ => {
                    let copy = bytes[at..(at + len).min(bytes.len())].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn any_bytes(node in prop::collection::vec(any::<u8>(), 0..300), registry in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut files = Files::new("", "");
        files.set("node.yaml", &node, 0o644);
        assert_accounted_for(&files.load());
        files.set("node.yaml", alpha(POLICIES).as_bytes(), 0o644);
        files.set("registry.yaml", &registry, 0o644);
        assert_accounted_for(&files.load());
    }

    #[test]
    fn any_text(node in "\\PC{0,200}", lines in prop::collection::vec("[-a-z0-9:{}\\[\\], &*!|>'\"#.]{0,30}", 0..20)) {
        let mut files = Files::new(&node, &registry());
        assert_accounted_for(&files.load());
        files.set("node.yaml", lines.join("\n").as_bytes(), 0o644);
        assert_accounted_for(&files.load());
    }

    #[test]
    fn damaged_files(node in mutated(alpha(POLICIES)), registry in mutated(registry())) {
        let mut files = Files::new("", "");
        files.set("node.yaml", &node, 0o644);
        files.set("registry.yaml", &registry, 0o644);
        assert_accounted_for(&files.load());
    }
}

#[test]
fn deep_nesting_and_endless_aliases_are_refused() {
    let deep = "[".repeat(100_000);
    let laughs: String =
        (1..12).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", "))).collect();
    for text in [deep, format!("a0: &a0 [lol]\n{laughs}")] {
        let loaded = Files::new(&text, &registry()).load();
        assert_accounted_for(&loaded);
        assert!(loaded.settings.is_none());
    }
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let node = alpha("\"ann\\e[31mounce\": 1\n");
    let rendered = Files::new(&node, &registry()).render();
    assert!(!rendered.contains('\x1b'), "{rendered:?}");
}

#[test]
fn thousands_of_networks_are_checked_in_no_time() {
    let networks: Vec<String> = (0..5000).map(|n| format!("10.{}.{}.0/24", n / 250, n % 250)).collect();
    let list = networks.join(", ");
    let policy = |name: &str| {
        format!(
            "  - {{ name: {name}, from: [10.0.0.0/8], to: [{list}], exit: delta, if_unreachable: drop }}\n"
        )
    };
    let text = alpha(&format!("policies:\n{}{}{}", policy("p"), policy("q"), policy("r")));
    let rendered = Files::new(&text, &registry()).load().diagnostics.sorted().len();
    assert_eq!(rendered, 2);
}
