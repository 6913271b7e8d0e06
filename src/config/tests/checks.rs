//! Every other check: what is written, and which code and line come out.

use ed25519_dalek::SigningKey;

use super::support::{Files, acme_key, alpha, codes, registry};
use crate::config::{Code, key};

/// Codes for alpha's node file with `rest` from line 7 on.
fn node(rest: &str) -> Vec<String> {
    codes(&Files::new(&alpha(rest), &registry()).load().diagnostics)
}

/// Codes for a policy with these lines, which begin on line 12.
fn policy(lines: &str) -> Vec<String> {
    node(&format!(
        "policies:\n  - name: p\n    if_unreachable: drop\n    from: [10.1.0.0/16]\n    to: [10.4.0.0/16]\n{lines}"
    ))
}

/// Codes for a registry.
fn with_registry(registry: &str) -> Vec<String> {
    codes(&Files::new(&alpha(""), registry).load().diagnostics)
}

#[test]
fn nothing_is_wrong_with_the_fixtures() {
    assert_eq!(node(""), [""; 0]);
    assert_eq!(policy("    exit: delta\n"), [""; 0]);
}

#[test]
fn fields() {
    assert_eq!(node("announce: 10.1.0.0/16\n"), ["error config/wrong-type 7"]);
    assert_eq!(node("announce: [10.1.0.0]\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("announce: [[10.1.0.0/16]]\n"), ["error config/wrong-type 7"]);
    assert_eq!(node("kernel: 1\n"), ["error config/wrong-type 7"]);
    assert_eq!(node("offer: [internets]\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("timers: { hello: 4 }\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("organization: acme\n"), ["error config/duplicate-field 7"]);
    assert_eq!(node("workers: 0\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("announce:\noffer: ~\n"), [""; 0]);
    let missing = Files::new("organization: acme\n", &registry()).load().diagnostics;
    assert_eq!(
        codes(&missing),
        [
            "error config/missing-field 1",
            "error config/missing-field 1",
            "error identity/unreadable-key null"
        ]
    );
}

#[test]
fn networks() {
    assert_eq!(node("announce: [10.1.2.3/16, 10.3.0.0/16]\n"), ["error config/host-bits-set 7"]);
    assert_eq!(node("announce: [0.0.0.0/0]\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("announce: [\"fd5d:ac:1::/48\"]\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("mesh_prefix: fd00::/48\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("mesh_prefix: 10.0.0.0/8\n"), ["error config/invalid-value 7"]);
    assert_eq!(node("mesh_prefix: fd00:1::/32\n"), [""; 0]);
}

#[test]
fn endpoints() {
    let second = |text: &str| node(&format!("  - {{ {text} }}\n"));
    assert_eq!(
        second("serial_number: \"0\", address_family: ip4, port: 13001"),
        ["error identity/duplicate-endpoint 7", "warning identity/unlisted-endpoint 7"]
    );
    assert_eq!(
        second("serial_number: \"1\", address_family: ip4, port: 13000"),
        ["error identity/duplicate-endpoint 7", "error identity/unlisted-endpoint 7"]
    );
    assert_eq!(
        second("serial_number: \"1\", address_family: ip6, port: 13000"),
        ["error identity/unlisted-endpoint 7"]
    );
    assert_eq!(
        second("serial_number: \"0\", address_family: ip4, port: 13000, address: \"::1\""),
        ["error identity/duplicate-endpoint 7", "error config/invalid-value 7"]
    );
    assert_eq!(
        second("serial_number: \"0\", address_family: ip5, port: 0"),
        ["error config/invalid-value 7"; 2]
    );
}

#[test]
fn ipv6_on_a_host_without_it() {
    let text = alpha("").replace("ip4", "ip6");
    let mut files = Files::new(&text, &registry().replace("ip4, address: alpha.acme.example", "ip6"));
    assert_eq!(codes(&files.load().diagnostics), [""; 0]);
    files.ipv6 = false;
    assert_eq!(codes(&files.load().diagnostics), ["warning config/no-ipv6 6"]);
    assert!(files.load().settings.is_some());
}

#[test]
fn marks_of_others() {
    assert_eq!(node("kernel: { fwmark: 0x80000 }\n"), ["warning config/reserved-mark 7"]);
    assert_eq!(node("kernel: { fwmark: \"0x1bd00\" }\n"), ["warning config/reserved-mark 7"]);
    assert_eq!(node("kernel: { fwmark: 0x100 }\n"), ["warning config/reserved-mark 7"]);
    assert_eq!(node("kernel: { fwmark: 0x1000000 }\n"), [""; 0]);
}

#[test]
fn kernel_timers_and_cost() {
    for wrong in [
        "kernel: { tun: a-very-long-name }",
        "kernel: { tun: a/b }",
        "kernel: { tun_mtu: 1279 }",
        "kernel: { table: 254 }",
        "kernel: { underlay_priority: 95 }",
        "timers: { child_rekey: 0s }",
        "timers: { child_rekey_packets: 999 }",
        "timers: { hello: 11m }",
        "cost: { rxcost: 0 }",
        "cost: { rtt_min: 2s }",
    ] {
        assert_eq!(node(&format!("{wrong}\n")), ["error config/invalid-value 7"], "{wrong}");
    }
}

#[test]
fn names_in_policies() {
    assert_eq!(policy("    exit: partner/delta\n"), [""; 0]);
    assert_eq!(policy("    exit: nearest\n"), [""; 0]);
    assert_eq!(policy("    exit: foxtrot\n"), ["error policy/unknown-node 12"]);
    assert_eq!(
        policy("    via: [acme/bravo, acme/delta]\n    exit: delta\n"),
        ["error policy/unknown-node 12"]
    );
    assert_eq!(policy("    via: [bravo!]\n    exit: delta\n"), [""; 0]);
    assert_eq!(policy("    via: [brave!]\n    exit: delta\n"), ["error policy/unknown-node 12"]);
    assert_eq!(policy("    via: [bravo, bravo]\n    exit: delta\n"), ["error policy/repeated-stop 12"]);
    assert_eq!(policy("    via: [delta]\n    exit: partner/delta\n"), ["error policy/repeated-stop 13"]);
    assert_eq!(policy("    via: [alpha]\n    exit: delta\n"), ["error policy/own-name 12"]);
    assert_eq!(policy("    via: [bravo, alpha]\n    exit: delta\n"), ["warning policy/own-name 12"]);
    assert_eq!(policy("    exit: alpha\n"), ["error policy/exit-cannot-deliver 12"]);
}

#[test]
fn a_name_that_two_organizations_have() {
    let registry = registry().replace("common_name: delta", "common_name: bravo");
    let node = |exit: &str| {
        let lines = format!(
            "policies: [{{ name: p, from: [10.1.0.0/16], to: [10.4.0.0/16], exit: {exit}, if_unreachable: drop }}]\n"
        );
        codes(&Files::new(&alpha(&lines), &registry).load().diagnostics)
    };
    assert_eq!(node("bravo"), ["error policy/ambiguous-node 7"]);
    assert_eq!(node("partner/bravo"), [""; 0]);
}

#[test]
fn matches_of_policies() {
    assert_eq!(policy("    exit: delta\n    ports: 443\n"), ["error policy/ports-without-protocol 13"]);
    assert_eq!(
        policy("    exit: delta\n    ports: 443\n    protocol: icmp\n"),
        ["error policy/ports-without-protocol 13"]
    );
    assert_eq!(
        policy("    exit: delta\n    ports: [443, 8000-8100]\n    protocol: tcp\n    dscp: [ef, 10]\n"),
        [""; 0]
    );
    let two = |second: &str| {
        policy(&format!("    exit: delta\n  - {{ name: q, exit: delta, if_unreachable: drop, {second} }}\n"))
    };
    assert_eq!(two("from: [10.1.0.0/24], to: [10.4.1.0/24]"), ["warning policy/never-matches 13"]);
    assert_eq!(two("from: [10.0.0.0/8], to: [10.4.1.0/24]"), [""; 0]);
    assert_eq!(
        two("from: [10.1.0.0/24], to: [10.4.1.0/24], protocol: tcp"),
        ["warning policy/never-matches 13"]
    );
    assert_eq!(
        two("from: [10.1.0.0/24], to: [10.4.1.0/24, 2001:db8::/32]"),
        ["warning policy/never-matches 13", "warning policy/mixed-families 13"]
    );
    assert_eq!(two("from: [10.1.0.0/24], to: []"), ["error config/invalid-value 13"]);
    let same_name = policy(
        "    exit: delta\n  - { name: p, exit: delta, if_unreachable: drop, from: [10.9.0.0/16], to: [10.4.0.0/16] }\n",
    );
    assert_eq!(same_name, ["error policy/duplicate-name 13"]);
}

#[test]
fn a_policy_with_next_lets_go_of_its_packets() {
    let both = "policies:\n  - { name: p, from: [10.1.0.0/16], to: [10.4.0.0/16], exit: delta, if_unreachable: next }\n  - { name: q, from: [10.1.0.0/16], to: [10.4.0.0/16], via: [bravo], exit: delta, if_unreachable: drop }\n";
    assert_eq!(node(both), [""; 0]);
}

#[test]
fn several_policies_take_all_of_it_together() {
    let text = "policies:\n  - { name: p, from: [10.1.0.0/17], to: [10.4.0.0/16], exit: delta, if_unreachable: drop }\n  - { name: q, from: [10.1.128.0/17], to: [10.0.0.0/8], exit: delta, if_unreachable: drop }\n  - { name: r, from: [10.1.0.0/17, 10.1.128.0/17], to: [10.4.2.0/24], exit: delta, if_unreachable: drop }\n";
    let rendered = Files::new(&alpha(text), &registry()).render();
    assert!(rendered.contains("`p` and `q` take all of it first"), "{rendered}");
    let halves = text.replace(
        "from: [10.1.0.0/17], to: [10.4.0.0/16]",
        "from: [10.1.0.0/17, 10.1.128.0/17], to: [10.4.0.0/16]",
    );
    let rendered = Files::new(
        &alpha(&halves.replace("[10.1.0.0/17, 10.1.128.0/17], to: [10.4.2", "[10.1.0.0/16], to: [10.4.2")),
        &registry(),
    )
    .render();
    assert!(rendered.contains("`p` on line 8 takes all of it first"), "{rendered}");
}

#[test]
fn who_this_node_is() {
    let absent = |from: &str, to: &str| {
        codes(&Files::new(&alpha("").replace(from, to), &registry()).load().diagnostics)
    };
    assert_eq!(absent("common_name: alpha", "common_name: alfa"), ["error identity/not-in-registry 2"]);
    assert_eq!(absent("organization: acme", "organization: acne"), ["error identity/not-in-registry 1"]);
    let mut files = Files::new(&alpha(""), &registry());
    files.set("acme.pem", key::private_pem(&acme_key()).unwrap().as_bytes(), 0o644);
    assert_eq!(codes(&files.load().diagnostics), ["error identity/key-readable-by-others 3"]);
    files.set("acme.pem", b"nonsense", 0o600);
    assert_eq!(codes(&files.load().diagnostics), ["error identity/unreadable-key 3"]);
    let missing = alpha("").replace("acme.pem", "gone.pem");
    assert_eq!(
        codes(&Files::new(&missing, &registry()).load().diagnostics),
        ["error identity/unreadable-key 3"]
    );
}

#[test]
fn files_that_cannot_be_read() {
    let missing = alpha("").replace("registry.yaml", "gone.yaml");
    let loaded = Files::new(&missing, &registry()).load();
    assert_eq!(codes(&loaded.diagnostics), ["error config/unreadable-file null"]);
    let rendered = loaded.diagnostics.render(false);
    assert!(rendered.contains("cannot read /etc/viamesh/gone.yaml: no such file or directory"), "{rendered}");
    let mut files = Files::new("", &registry());
    files.set("node.yaml", &[0xff, 0xfe, 0x00], 0o644);
    assert_eq!(codes(&files.load().diagnostics), ["error config/unreadable-file null"]);
}

#[test]
fn nodes_of_the_registry() {
    let duplicate = registry().replace("common_name: echo", "common_name: bravo");
    assert_eq!(with_registry(&duplicate), ["error registry/duplicate-node 13"]);
    let bad_key = registry().replacen("BEGIN PUBLIC KEY", "BEGIN SOME KEY", 1);
    assert_eq!(with_registry(&bad_key), ["error registry/bad-public-key 3"]);
    let pem = key::public_pem(&SigningKey::from_bytes(&[2; 32]).verifying_key()).unwrap();
    let own = key::public_pem(&acme_key().verifying_key()).unwrap();
    let (partner_key, acme_key) = (pem.lines().nth(1).unwrap(), own.lines().nth(1).unwrap());
    assert_eq!(with_registry(&registry().replace(partner_key, acme_key)), ["error registry/shared-key 16"]);
    let no_key = "- organization: acme\n  nodes: [{ common_name: alpha, endpoints: [] }]\n";
    assert_eq!(
        with_registry(no_key),
        ["error identity/unlisted-endpoint 6", "error registry/no-public-key 2"]
    );
    let wrong_family = registry().replace("ip4, address: 198.51.100.2", "ip6, address: 198.51.100.2");
    assert_eq!(with_registry(&wrong_family), ["error config/invalid-value 10"]);
    let no_host = registry().replace("198.51.100.2", "\"not a host\"");
    assert_eq!(with_registry(&no_host), ["error config/invalid-value 10"]);
}

/// The fixture with remarks for delta, which are on line 23.
fn delta(remarks: &str) -> String {
    format!("{}      remarks: {{ viamesh: {{ {remarks} }} }}\n", registry())
}

#[test]
fn remarks_of_the_registry() {
    assert_eq!(with_registry(&delta("trasnit: false")), ["warning config/unknown-field 23"]);
    assert_eq!(
        with_registry(&delta("id: \"fqdn:r1.example\", transit: false, accept: [10.9.0.0/16], usid: 0x9")),
        [""; 0]
    );
    assert_eq!(with_registry(&delta("id: r1.example")), ["error config/invalid-value 23"]);
    assert_eq!(with_registry(&delta("locator: \"fd5d:ac:0:9::/48\"")), ["error config/host-bits-set 23"]);
    assert_eq!(with_registry(&delta("locator: \"fd5d:ac::/48\"")), ["error registry/bad-locator 23"]);
    assert_eq!(with_registry(&delta("locator: \"fd00:0:0:9::/64\"")), ["warning registry/bad-locator 23"]);
    assert_eq!(with_registry(&delta("locator: \"fd5d:ac:0:9::/64\"")), [""; 0]);
    let anything = registry() + "      remarks: [whatever, 1, { viamesh: 2 }]\n";
    assert_eq!(with_registry(&anything), [""; 0]);
}

#[test]
fn segments_that_collide() {
    let alpha_locator =
        srv6::sid::Locator::derive(crate::config::settings::DEFAULT_MESH_PREFIX, "acme", "alpha").unwrap();
    assert_eq!(
        with_registry(&delta(&format!("locator: \"{alpha_locator}\""))),
        ["error registry/sid-collision 23"]
    );
    let sids = format!("sids: {{ end: \"{}\" }}", alpha_locator.end());
    assert_eq!(with_registry(&delta(&sids)), ["error registry/sid-collision 21"]);
}

#[test]
fn foreign_nodes_need_listed_sids() {
    let load = |sids: &str, lines: &str| {
        let node = format!(
            "policies: [{{ name: p, from: [10.1.0.0/16], to: [10.4.0.0/16], if_unreachable: drop, {lines} }}]\n"
        );
        codes(&Files::new(&alpha(&node), &delta(sids)).load().diagnostics)
    };
    let sids = "sids: { dt46: \"fd5d:ac:0:9::46\" }";
    assert_eq!(load(sids, "exit: delta"), [""; 0]);
    assert_eq!(load(sids, "via: [delta], exit: bravo"), ["error policy/foreign-stop 7"]);
    assert_eq!(load("sids: { end: \"fd5d:ac:0:9::e\" }", "exit: delta"), ["error policy/foreign-stop 7"]);
}

#[test]
fn networks_that_two_nodes_announce() {
    let files = Files::new(&alpha("announce: [10.1.0.0/16]\n"), &delta("announce: [10.0.0.0/8]"));
    assert_eq!(codes(&files.load().diagnostics), ["warning registry/overlapping-announcements 7"]);
    let files = Files::new(&alpha("announce: [10.1.0.0/16]\n"), &delta("announce: [10.2.0.0/16]"));
    assert_eq!(codes(&files.load().diagnostics), [""; 0]);
}

#[test]
fn code_names_are_well_formed_and_unique() {
    let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
    for name in &names {
        let (area, rest) = name.split_once('/').unwrap();
        assert!(["config", "identity", "registry", "policy"].contains(&area), "{name}");
        assert!(
            rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{name}"
        );
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Code::ALL.len());
}

#[test]
fn an_exit_delivers_to_itself() {
    let node = |to: &str| {
        let registry = delta("announce: [10.4.0.0/16]");
        let lines = format!(
            "policies: [{{ name: p, from: [10.1.0.0/16, \"fd5d:ac::/32\"], to: [{to}], exit: delta, if_unreachable: drop }}]\n"
        );
        codes(&Files::new(&alpha(&lines), &registry).load().diagnostics)
    };
    let locator =
        srv6::sid::Locator::derive(crate::config::settings::DEFAULT_MESH_PREFIX, "partner", "delta").unwrap();
    assert_eq!(node(&format!("\"{locator}\"")), [""; 0]);
    assert_eq!(node("10.4.7.0/24"), [""; 0]);
    assert_eq!(node("10.5.0.0/16"), ["error policy/exit-cannot-deliver 7"]);
}

#[test]
fn classes_of_traffic() {
    let with = |lines: &str| policy(&format!("    exit: delta\n{lines}"));
    assert_eq!(with("    ingress: lan0\n    fwmark: \"0x20\"\n"), [""; 0]);
    assert_eq!(with("    ingress: \"no/name\"\n"), ["error config/invalid-value 13"]);
    assert_eq!(with("    ingress: viamesh0\n"), ["error config/invalid-value 13"]);
    assert_eq!(with("    fwmark: 0\n"), ["error config/invalid-value 13"]);
    // The mark of our own encrypted packets.
    assert_eq!(with("    fwmark: 0x76000000\n"), ["error config/invalid-value 13"]);
    let kernel = |section: &str| with(&format!("    ingress: lan0\nkernel: {{ {section} }}\n"));
    assert_eq!(kernel("overlay_priority: 91"), ["error config/invalid-value 13"]);
    assert_eq!(kernel("underlay_priority: 0"), ["error config/invalid-value 13"]);
    assert_eq!(kernel("tun: thirteen-long"), ["error config/invalid-value 13"]);
    assert_eq!(kernel("tun: twelve-longs"), [""; 0]);
    let two = |second: &str| {
        with(&format!(
            "    ingress: lan0\n  - {{ name: q, exit: delta, if_unreachable: drop, from: [10.1.0.0/24], \
             to: [10.4.1.0/24]{second} }}\n"
        ))
    };
    assert_eq!(two(", ingress: lan0, fwmark: 0x20"), ["warning policy/never-matches 14"]);
    assert_eq!(two(", ingress: lan1"), [""; 0]);
    assert_eq!(two(""), [""; 0]);
    let many: String = (1..=6)
        .map(|number| {
            format!(
                "  - {{ name: r{number}, exit: delta, if_unreachable: drop, from: [10.2.0.0/24], \
                 to: [10.4.1.0/24], ingress: lan{number} }}\n  - {{ name: s{number}, exit: delta, if_unreachable: drop, \
                 from: [10.3.0.0/24], to: [10.4.1.0/24], fwmark: {number} }}\n"
            )
        })
        .collect();
    assert_eq!(policy(&format!("    exit: delta\n{many}")), ["error config/invalid-value 24"]);
}
