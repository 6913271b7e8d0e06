//! Policies of the registry, seen from both ends and from elsewhere.

use super::support::{Files, alpha, codes, registry};
use crate::config::NodeName;
use crate::config::load::Loaded;
use crate::config::settings::{Exit, Stop};

/// Alpha has a policy in the registry; echo may have SIDs of its own.
fn load(node: &str, policy: &str, echo: &str) -> Loaded {
    let alpha_line = "    - common_name: alpha\n";
    let policies = format!(
        "      remarks:\n        viamesh:\n          policies:\n          - name: both\n            from: [10.1.0.0/16]\n            \
         to: [10.4.0.0/16]\n            if_unreachable: drop\n{policy}"
    );
    let registry = registry().replace(alpha_line, &format!("{alpha_line}{policies}"));
    let echo_line = "    - common_name: echo\n";
    let registry = registry.replace(echo_line, &format!("{echo_line}{echo}"));
    let file = alpha("").replace("common_name: alpha", &format!("common_name: {node}"));
    Files::new(&file, &registry).load()
}

fn acme(name: &str) -> NodeName {
    NodeName::new("acme", name)
}

const POLICY: &str = "            protocol: tcp\n            ports: 443\n            via: [bravo!, charlie]\n            \
                      exit: echo!\n";

#[test]
fn both_ends_follow_it_over_the_same_stops() {
    let there = load("alpha", POLICY, "");
    assert_eq!(codes(&there.diagnostics), [""; 0], "{}", there.diagnostics.render(false));
    let there = there.settings.unwrap().policies.remove(0);
    let strict = |name: &str| Stop { strict: true, ..Stop::at(acme(name)) };
    assert_eq!(there.candidates[0].via, [strict("bravo"), Stop::at(acme("charlie"))]);
    assert!(there.shared && there.candidates[0].exit_strict);

    let back = load("echo", POLICY, "");
    assert_eq!(codes(&back.diagnostics), [""; 0], "{}", back.diagnostics.render(false));
    let back = back.settings.unwrap().policies.remove(0);
    assert_eq!((back.name.as_str(), &back.from, &back.to), ("both, back", &there.to, &there.from));
    assert_eq!((&back.source_ports, back.ports.len(), back.protocol), (&there.ports, 0, Some(6)));
    // echo to charlie, and bravo to alpha, are the direct links.
    assert_eq!(back.candidates[0].via, [strict("charlie"), Stop::at(acme("bravo"))]);
    assert_eq!(back.candidates[0].exit, Exit::Node(acme("alpha")));
    assert!(back.candidates[0].exit_strict && back.shared);

    for elsewhere in ["bravo", "charlie"] {
        let loaded = load(elsewhere, POLICY, "");
        assert!(loaded.settings.is_some_and(|settings| settings.policies.is_empty()), "{elsewhere}");
    }
}

#[test]
fn each_exit_takes_back_what_left_there() {
    let paths = "            paths: [{via: [bravo], exit: echo, weight: 2}, {via: [charlie], exit: delta}, {exit: echo}]\n";
    let back = load("echo", paths, "").settings.unwrap().policies.remove(0);
    let ways: Vec<_> =
        back.candidates.iter().map(|path| (path.via.len(), path.priority, path.weight)).collect();
    assert_eq!(ways, [(1, 1, 2), (0, 3, 1)]);
}

#[test]
fn what_the_other_end_cannot_know_is_refused() {
    let found = |policy: &str| codes(&load("alpha", policy, "").diagnostics);
    assert_eq!(found("            exit: nearest\n").len(), 1);
    let group = "            via: [{any_of: [bravo, charlie]}]\n            exit: echo\n";
    assert!(found(group)[0].starts_with("error config/invalid-value"), "{:?}", found(group));
    // The same at the other end.
    assert_eq!(codes(&load("echo", group, "").diagnostics).len(), 1);
}

#[test]
fn for_a_foreign_exit_there_is_the_command_for_its_kernel() {
    let echo = "      remarks: {viamesh: {locator: \"fd5d:ac:0:9::/64\", sids: {end: \"fd5d:ac:0:9::e\", dt46: \"fd5d:ac:0:9::46\"}}}\n";
    let policy = "            via: [bravo, charlie, bravo]\n            exit: echo\n";
    let loaded = load("alpha", policy, echo);
    let text = loaded.diagnostics.render(false);
    assert_eq!(codes(&loaded.diagnostics).len(), 1, "{text}");
    assert!(codes(&loaded.diagnostics)[0].starts_with("warning policy/mirror-by-hand"), "{text}");
    let locator = |name| srv6::Locator::derive("fd5d:ac::/32".parse().unwrap(), "acme", name).unwrap();
    let (alpha, bravo, charlie) = (locator("alpha"), locator("bravo"), locator("charlie"));
    let list = [bravo.end(), charlie.end(), bravo.end(), alpha.dt46()].map(|sid| sid.to_string()).join(",");
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = format!("ip -4 route replace 10.1.0.0/16 encap seg6 mode encap.red segs {list} dev DEVICE");
    assert!(text.contains(&command), "{text}");
}
