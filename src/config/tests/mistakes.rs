//! The mistakes that people make most, and how they are shown.

use super::support::{Files, acme_key, alpha, registry};
use crate::config::key;

/// Policies of a file with most of them.
const MISTAKES: &str = r#"anounce: [10.1.0.0/16]
policies:
  - name: inspected
    from: [10.1.0.0/16]
    to: [10.4.0.7/16]
    via: [bravo, charly, bravo]
    exit: delta
  - name: office-web
    from: [10.1.0.0/16]
    to: [10.4.2.0/24]
    exit: delta
    if_unreachable: drop
  - name: mixed
    from: [10.1.0.0/16]
    to: [2001:db8:d::/48]
    exit: delta
    if_unreachable: drop
"#;

#[test]
fn all_mistakes_of_a_file_in_one_run() {
    insta::assert_snapshot!(Files::new(&alpha(MISTAKES), &registry()).render());
}

#[test]
fn the_same_as_json() {
    let diagnostics = Files::new(&alpha(MISTAKES), &registry()).load().diagnostics;
    insta::assert_snapshot!(format!("{:#}", diagnostics.to_json()));
}

#[test]
fn colours_change_no_word() {
    let diagnostics = Files::new(&alpha(MISTAKES), &registry()).load().diagnostics;
    let coloured = diagnostics.render(true);
    assert!(coloured.contains("\x1b["));
    let mut bare = String::new();
    for (index, part) in coloured.split("\x1b[").enumerate() {
        bare.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(bare, diagnostics.render(false));
}

#[test]
fn an_exit_that_cannot_deliver() {
    let remarks = "      remarks: { viamesh: { announce: [10.5.0.0/16] } }\n";
    let offer = "      remarks: { viamesh: { offer: [internet] } }\n";
    let mut registry = registry();
    let echo = registry.find("- organization: partner").unwrap();
    registry.insert_str(echo, remarks);
    registry.push_str(offer);
    let node = alpha(
        "policies:\n  - name: guests\n    from: [10.1.99.0/24]\n    to: [0.0.0.0/0]\n    exit: echo\n    if_unreachable: drop\n",
    );
    insta::assert_snapshot!(Files::new(&node, &registry).render(), @r"
    error[policy/exit-cannot-deliver]: `echo` does not offer the internet
      --> /etc/viamesh/node.yaml:11:11
       |
    11 |     exit: echo
       |           ^^^^ `echo` announces only 10.5.0.0/16
       |
    help: offering it are: partner/delta. Or write `exit: nearest`
    ");
}

#[test]
fn a_path_that_is_too_long_for_ipv6() {
    let node = alpha(
        r#"  - { serial_number: "1", address_family: ip6, port: 13000 }
policies:
  - name: scenic
    from: [10.2.0.0/16]
    to: [10.4.0.0/16]
    via: [bravo, charlie, delta, echo, bravo, charlie]
    exit: delta
    if_unreachable: drop
"#,
    );
    let second = "      endpoints: [{ serial_number: \"0\", address_family: ip4, address: alpha.acme.example, port: 13000 }, { serial_number: \"1\", address_family: ip6, port: 13000 }]\n";
    let registry = registry();
    let line = registry.lines().find(|line| line.contains("alpha.acme")).unwrap();
    let registry = registry.replace(&format!("{line}\n"), second);
    insta::assert_snapshot!(Files::new(&node, &registry).render(), @r"
    error[policy/path-too-long]: policy `scenic` leaves 1274 bytes per packet, IPv6 needs 1280
      --> /etc/viamesh/node.yaml:12:10
       |
    12 |     via: [bravo, charlie, delta, echo, bravo, charlie]
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 7 stops cost 144 of the tunnel's 1418 bytes
       |
    help: at most 6 stops fit (exit included); drop one, or raise the MTU of the underlay
    ");
}

#[test]
fn seven_stops_fit_an_ipv4_tunnel_and_eight_do_not() {
    let node = |stops: &str| {
        alpha(&format!(
            "policies:\n  - name: scenic\n    from: [10.2.0.0/16]\n    to: [10.4.0.0/16]\n    via: [{stops}]\n    exit: delta\n    if_unreachable: drop\n"
        ))
    };
    let six = "bravo, charlie, bravo, charlie, bravo, charlie";
    assert_eq!(Files::new(&node(six), &registry()).render(), "");
    let rendered = Files::new(&node(&format!("{six}, bravo")), &registry()).render();
    assert!(rendered.contains("leaves 1278 bytes"), "{rendered}");
    assert!(rendered.contains("at most 7 stops fit"), "{rendered}");
}

#[test]
fn a_key_that_is_not_the_registrys() {
    let mut files = Files::new(&alpha(""), &registry());
    let other = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    files.set("acme.pem", key::private_pem(&other).unwrap().as_bytes(), 0o600);
    insta::assert_snapshot!(files.render());
    files.set("acme.pem", key::private_pem(&acme_key()).unwrap().as_bytes(), 0o600);
    assert_eq!(files.render(), "");
}

#[test]
fn text_that_is_not_yaml() {
    let rendered = |text: &str| Files::new(text, &registry()).render();
    insta::assert_snapshot!(rendered("organization: acme\nannounce: [10.1.0.0/16\npolicies:\n"));
    insta::assert_snapshot!(rendered("organization: acme\ncommon_name: a: b\n"));
    insta::assert_snapshot!(rendered("organization: \"acme\n"));
    insta::assert_snapshot!(rendered("{\"organization\": \"acme\",\n \"endpoints\": [}"));
    insta::assert_snapshot!(rendered(
        "{\n  \"organization\": \"acme\", // who we are\n  \"common_name\": \"alpha\"\n}\n"
    ));
}
