//! What a correct configuration means.

use std::time::Duration;

use super::support::{Files, alpha, registry};
use crate::config::NodeName;
use crate::config::settings::{Exit, IfUnreachable, Stop};

#[test]
fn policies_are_resolved() {
    let text = alpha(
        r#"policies:
  - name: inspected
    from: [10.1.0.0/16]
    to: [10.4.0.0/16]
    protocol: tcp
    ports: [443, 8000-8100]
    dscp: ef
    via: [bravo, charlie, bravo]
    exit: delta
    if_unreachable: any-path
"#,
    );
    let settings = Files::new(&text, &registry()).load().settings.unwrap();
    let policy = &settings.policies[0];
    let bravo = NodeName::new("acme", "bravo");
    assert_eq!(
        policy.candidates[0].via,
        [bravo.clone(), NodeName::new("acme", "charlie"), bravo].map(Stop::at)
    );
    assert_eq!(policy.candidates[0].exit, Exit::Node(NodeName::new("partner", "delta")));
    assert_eq!((policy.protocol, policy.line, policy.if_unreachable), (Some(6), 8, IfUnreachable::AnyPath));
    assert_eq!((policy.ports.clone(), policy.dscp.clone()), (vec![443..=443, 8000..=8100], vec![46]));
    assert_eq!(settings.display_name(&NodeName::new("partner", "delta")), "partner/delta");
    assert_eq!(settings.display_name(&NodeName::new("acme", "bravo")), "bravo");
}

#[test]
fn everything_can_be_set() {
    let text = alpha(
        r#"announce: [10.1.0.0/16, "2001:db8:a::/48"]
offer: [internet]
mesh_prefix: "fd00:1::/32"
addresses: [10.255.0.1]
workers: 4
metrics: 127.0.0.1:9586
page: /run/viamesh/page.sock
state_dir: /tmp/state
control_socket: /tmp/control.sock
kernel: { tun: mesh0, tun_mtu: 1400, table: 77, underlay_table: 10, underlay_priority: 190, overlay_priority: 192, fwmark: 0x2000000, rtproto: 77 }
timers: { child_rekey: 10s, child_rekey_packets: 50000, child_rekey_bytes: 7000000, ike_rekey: 25s, liveness: 2s, retransmit: 100ms, redial: 200ms, hello: 400ms, update: 1600ms, fast_hello: 50ms }
cost: { rxcost: 96, rtt_min: 10ms, rtt_max: 120ms, rtt_cost: 150, loss_cost: 5 }
"#,
    );
    let loaded = Files::new(&text, &registry()).load();
    assert_eq!(loaded.diagnostics.render(false), "");
    let settings = loaded.settings.unwrap();
    assert!(settings.offer_internet && settings.mesh_prefix.contains(&settings.locator));
    assert_eq!((settings.announce.len(), settings.addresses.len(), settings.workers), (2, 1, 4));
    assert_eq!(
        (settings.kernel.tun.as_str(), settings.kernel.tun_mtu, settings.kernel.fwmark),
        ("mesh0", 1400, 0x200_0000)
    );
    assert_eq!((settings.timers.child_rekey_packets, settings.timers.child_rekey_bytes), (50_000, 7_000_000));
    assert_eq!(
        (settings.timers.child_rekey, settings.timers.fast_hello),
        (Duration::from_secs(10), Duration::from_millis(50))
    );
    assert_eq!((settings.cost.rxcost, settings.cost.rtt_max), (96, Duration::from_millis(120)));
    assert_eq!(settings.control_socket.to_str(), Some("/tmp/control.sock"));
}

#[test]
fn own_keys_go_before_the_organizations_and_may_be_two() {
    let pem = |seed: u8| {
        crate::config::key::public_pem(&ed25519_dalek::SigningKey::from_bytes(&[seed; 32]).verifying_key())
            .unwrap()
    };
    let keys = serde_json::Value::from(pem(8) + &pem(9));
    let registry = format!("{}      remarks: {{ viamesh: {{ public_key: {keys} }} }}\n", registry());
    let settings = Files::new(&alpha(""), &registry).load().settings.unwrap();
    assert_eq!(settings.node(&NodeName::new("partner", "delta")).unwrap().public_keys.len(), 2);
    assert_eq!(settings.node(&NodeName::new("acme", "bravo")).unwrap().public_keys.len(), 1);
}

#[test]
fn the_tunnel_of_an_ipv4_node_is_larger() {
    let mtu = |family: &str| {
        let node = alpha("").replace("ip4", family);
        let registry = registry().replace("ip4, address: alpha.acme.example", family);
        Files::new(&node, &registry).load().settings.unwrap().kernel.tun_mtu
    };
    assert_eq!((mtu("ip4"), mtu("ip6")), (1438, 1418));
}

#[test]
fn names_keep_their_spelling() {
    for name in ["no", "on", "1.10", "0x10", "0123", "true"] {
        let node = alpha("").replace("common_name: alpha", &format!("common_name: {name}"));
        let registry = registry().replace("common_name: alpha", &format!("common_name: {name}"));
        let settings = Files::new(&node, &registry).load().settings.unwrap();
        assert_eq!(settings.name.common_name, name);
    }
}
