//! Policies with several paths, groups and direct links, and compressed SIDs.

use std::time::Duration;

use super::support::{Files, alpha, codes, registry};
use crate::config::NodeName;
use crate::config::settings::{Exit, Policy, PolicyProbe, Stop};

fn text(rest: &str) -> String {
    alpha(&format!(
        "policies:\n  - name: p\n    from: [10.1.0.0/16]\n    to: [10.4.0.0/16]\n    if_unreachable: next\n{rest}"
    ))
}

/// The policy, which must be without fault.
fn policy(rest: &str) -> Policy {
    let loaded = Files::new(&text(rest), &registry()).load();
    assert_eq!(codes(&loaded.diagnostics), [""; 0], "{}", loaded.diagnostics.render(false));
    loaded.settings.unwrap().policies.remove(0)
}

fn faults(rest: &str) -> Vec<String> {
    codes(&Files::new(&text(rest), &registry()).load().diagnostics)
}

fn acme(name: &str) -> NodeName {
    NodeName::new("acme", name)
}

#[test]
fn paths_take_from_the_policy_what_they_do_not_say() {
    let policy = policy(
        "    exit: delta\n    paths:\n    - via: [bravo, {any_of: [charlie, echo]}]\n      weight: 3\n    \
         - { via: [echo!], priority: 1 }\n    - exit: nearest\n",
    );
    let [first, second, third] = policy.candidates.as_slice() else { panic!("{:?}", policy.candidates) };
    let group = Stop { any_of: vec![acme("charlie"), acme("echo")], strict: false };
    assert_eq!(first.via, [Stop::at(acme("bravo")), group]);
    assert_eq!((first.priority, first.weight), (1, 3));
    assert_eq!(first.exit, Exit::Node(NodeName::new("partner", "delta")));
    assert_eq!(second.via, [Stop { strict: true, ..Stop::at(acme("echo")) }]);
    assert_eq!((second.priority, second.weight), (1, 1));
    assert_eq!((third.priority, &third.exit, third.via.len()), (3, &Exit::Nearest, 0));
    assert_eq!(policy.probe, None);
}

#[test]
fn probes_say_what_is_asked_of_a_path() {
    let policy = policy("    exit: delta!\n    probe: { interval: 1s, max_rtt: 150ms, max_loss: 10 }\n");
    let interval = Duration::from_secs(1);
    let max_rtt = Some(Duration::from_millis(150));
    assert_eq!(policy.probe, Some(PolicyProbe { interval, max_rtt, max_loss: 10 }));
    assert!(policy.candidates[0].exit_strict);
    let defaults = self::policy("    exit: delta\n    probe: {}\n").probe.unwrap();
    assert_eq!((defaults.interval, defaults.max_rtt, defaults.max_loss), (Duration::from_secs(5), None, 30));
}

#[test]
fn mistakes_in_paths_are_found() {
    assert_eq!(faults("    via: [bravo]\n"), ["error config/missing-field 8"]);
    assert_eq!(faults("    exit: delta\n    paths: []\n"), ["error config/invalid-value 13"]);
    assert_eq!(faults("    paths: [{exit: delta, weight: 0}]\n"), ["error config/invalid-value 12"]);
    assert_eq!(faults("    paths: [{exit: delta, weight: 101}]\n"), ["error config/invalid-value 12"]);
    assert_eq!(faults("    paths: [{exit: foxtrot}]\n"), ["error policy/unknown-node 12"]);
    assert_eq!(faults("    paths: [{exit: delta, wait: 1}]\n"), ["error config/unknown-field 12"]);
    assert_eq!(faults("    exit: delta\n    via: [{any_of: []}]\n"), ["error config/invalid-value 13"]);
    assert_eq!(
        faults("    exit: delta\n    via: [{any_of: [bravo, brava]}]\n"),
        ["error policy/unknown-node 13"]
    );
    assert_eq!(faults("    exit: delta\n    via: [{all_of: [bravo]}]\n").len(), 2);
    assert_eq!(faults("    exit: delta\n    via: [[bravo]]\n"), ["error config/wrong-type 13"]);
    assert_eq!(faults("    exit: delta\n    probe: {interval: 10ms}\n"), ["error config/invalid-value 13"]);
    assert_eq!(faults("    exit: delta\n    probe: {max_loss: 101}\n"), ["error config/invalid-value 13"]);
    let many = "{exit: delta}, ".repeat(17);
    assert_eq!(faults(&format!("    paths: [{many}]\n")), ["error config/invalid-value 12"]);
}

/// The registry with remarks for some nodes.
fn remarked(remarks: &[(&str, &str)]) -> String {
    remarks.iter().fold(registry(), |registry, (name, remark)| {
        let line = format!("    - common_name: {name}\n");
        registry.replace(&line, &format!("{line}      remarks: {{viamesh: {{{remark}}}}}\n"))
    })
}

#[test]
fn nobody_can_tell_foreign_software_its_next_hop() {
    let sids = "sids: {end: \"2001:db8::e\", dt46: \"2001:db8::46\"}";
    let registry = remarked(&[("bravo", sids)]);
    let found = |rest: &str| codes(&Files::new(&text(rest), &registry).load().diagnostics);
    assert_eq!(
        found("    via: [bravo!, charlie]\n    exit: delta\n"),
        [""; 0],
        "this node knows its own links"
    );
    assert_eq!(found("    via: [bravo, charlie!]\n    exit: delta\n"), ["error policy/foreign-stop 12"]);
    assert_eq!(found("    via: [bravo]\n    exit: delta!\n"), ["error policy/foreign-stop 13"]);
    assert_eq!(found("    via: [bravo, echo, charlie!]\n    exit: delta\n"), [""; 0]);
}

#[test]
fn micro_sids_belong_to_one_node_and_cover_no_locator() {
    let found = |remarks: &[(&str, &str)]| {
        codes(&Files::new(&text("    exit: delta\n"), &remarked(remarks)).load().diagnostics)
            .into_iter()
            .map(|code| code.rsplit_once(' ').unwrap().0.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&[("alpha", "usid: 1"), ("bravo", "usid: 0xdfff")]), [""; 0]);
    assert_eq!(found(&[("alpha", "usid: 0xb"), ("bravo", "usid: 11")]), ["error registry/sid-collision"]);
    for wrong in ["usid: 0", "usid: 0xe000"] {
        assert_eq!(found(&[("alpha", wrong)]), ["error config/invalid-value"], "{wrong}");
    }
    // Outside the mesh prefix, but with the same name among the links of its neighbours.
    let twins = [("alpha", "locator: \"fd5d:ac:1:2::/64\""), ("bravo", "locator: \"2001:db8:1:2::/64\"")];
    assert!(found(&twins).contains(&"error registry/sid-collision".to_owned()));
    let inside = [("alpha", "usid: 0x12"), ("bravo", "locator: \"fd5d:ac:12:3::/64\"")];
    assert_eq!(found(&inside), ["error registry/sid-collision"]);
}

#[test]
fn a_list_that_is_too_long_fits_when_it_is_compressed() {
    let via = ["bravo, charlie"; 4].join(", ");
    let rest = format!("    via: [{via}]\n    exit: delta\n");
    assert_eq!(faults(&rest), ["error policy/path-too-long 12"]);
    let numbers = [("bravo", "usid: 1"), ("charlie", "usid: 2"), ("delta", "usid: 3")];
    let found = |rest: &str, numbers| codes(&Files::new(&text(rest), &remarked(numbers)).load().diagnostics);
    assert_eq!(found(&rest, &numbers), [""; 0]);
    assert_eq!(found(&rest, &numbers[1..]), ["error policy/path-too-long 12"], "all or none");
    let strict = rest.replace("exit: delta", "exit: delta!");
    assert_eq!(found(&strict, &numbers), ["error policy/path-too-long 12"], "a direct link needs a segment");
}

#[test]
fn signed_lists_need_a_key() {
    let with = |top: &str, policy: &str| {
        let node = format!("{}{top}", text(&format!("    exit: delta\n{policy}")));
        Files::new(&node, &registry()).load()
    };
    let keys = "hmac_keys: [{id: 7, file: segments.key}]\n";
    let loaded = with(&format!("{keys}require_hmac_from: [bravo]\n"), "    hmac: 7\n");
    assert_eq!(codes(&loaded.diagnostics), [""; 0]);
    let settings = loaded.settings.unwrap();
    assert_eq!(settings.policies[0].hmac, Some(7));
    assert_eq!(settings.hmac_keys[0].file, std::path::Path::new("/etc/viamesh/segments.key"));
    assert_eq!(settings.require_hmac_from, [acme("bravo")]);

    let found = |top: &str, policy: &str| codes(&with(top, policy).diagnostics);
    assert_eq!(found(keys, "    hmac: 8\n"), ["error config/invalid-value 13"]);
    assert_eq!(found("hmac_keys: [{id: 0, file: k}]\n", ""), ["error config/invalid-value 13"]);
    assert_eq!(found("hmac_keys: [{id: 1, file: k}, {id: 1, file: k}]\n", "").len(), 1);
    assert_eq!(found("require_hmac_from: [bravo]\n", ""), ["error config/invalid-value 13"]);
    assert_eq!(found(&format!("{keys}require_hmac_from: [brave]\n"), ""), ["error policy/unknown-node 14"]);
}

#[test]
fn a_signature_counts_for_the_length() {
    let stops = |number: usize, rest: &str| {
        let via = ["bravo", "charlie"].into_iter().cycle().take(number).collect::<Vec<_>>().join(", ");
        let top = "hmac_keys: [{id: 7, file: segments.key}]\n";
        codes(
            &Files::new(&(text(&format!("    via: [{via}]\n    exit: delta\n{rest}")) + top), &registry())
                .load()
                .diagnostics,
        )
    };
    // 1438 - 40 - 8 - 16 n, and 40 more when signed.
    assert_eq!(stops(6, ""), [""; 0]);
    assert_eq!(stops(7, ""), ["error policy/path-too-long 12"]);
    assert_eq!(stops(4, "    hmac: 7\n"), [""; 0]);
    assert_eq!(stops(5, "    hmac: 7\n"), ["error policy/path-too-long 12"]);
}
