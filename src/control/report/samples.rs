//! One of each report, as people and as programs see it. A snapshot that changes is a change for whoever reads
//! `--json`: within a format fields are only added.

use std::collections::BTreeMap;

use super::tests::{chain, link, status_of};
use super::*;
use crate::control::Reply;
use crate::telemetry::{Health, HealthCode};

fn status() -> StatusReport {
    let mut status = status_of(vec![
        ("bravo", vec![link(Some(23.0), 1_288_490_188, 325_058_560)]),
        ("partner/delta", vec![link(Some(78.0), 8_388_608, 9_437_184)]),
        ("echo", vec![link(None, 0, 0)]),
    ]);
    status.nodes[1].path = PathStatus::Through { node: "bravo".to_owned() };
    status.policies = vec![
        PolicyStatus {
            policy: "inspected".to_owned(),
            state: PolicyState::Up,
            path: ["alpha", "bravo", "charlie", "bravo", "partner/delta"].map(str::to_owned).to_vec(),
            remark: None,
            reason: None,
            mtu: Some(1342),
            packets: 120_433,
            dropped: 0,
        },
        PolicyStatus {
            policy: "scenic".to_owned(),
            state: PolicyState::Down,
            path: Vec::new(),
            remark: None,
            reason: Some("echo does not answer".to_owned()),
            mtu: None,
            packets: 0,
            dropped: 44,
        },
    ];
    status.problems = vec![Health::new(
        HealthCode::PeerNoAnswer,
        "echo",
        "echo has not answered for 4 min",
        "is udp 13000 open there?",
    )];
    status.drops = BTreeMap::from([("no_route".to_owned(), 7), ("replayed".to_owned(), 2)]);
    status
}

fn explain() -> ExplainReport {
    let flow = FlowDescription {
        source: "10.1.3.4".parse().unwrap(),
        destination: "10.4.0.9".parse().unwrap(),
        protocol: Some("tcp".to_owned()),
        source_port: None,
        destination_port: Some(443),
        ingress: None,
        fwmark: None,
    };
    let rule = |matched, policy: &str, position: &str, reason: &str| RuleVerdict {
        matched,
        policy: policy.to_owned(),
        position: position.to_owned(),
        reason: reason.to_owned(),
    };
    let path = ["alpha", "bravo", "charlie", "bravo", "partner/delta"].map(str::to_owned).to_vec();
    let candidate = |number, state, problem: Option<&str>| CandidateReport {
        number,
        path: path.clone(),
        priority: number.into(),
        weight: 1,
        state,
        problem: problem.map(str::to_owned),
        rtt_ms: Some(201.3),
        loss_percent: Some(0),
    };
    ExplainReport {
        format: FORMAT,
        flow,
        rules: vec![
            rule(false, "guests", "node.yaml:9", "source is not in 10.1.99.0/24"),
            rule(true, "inspected", "node.yaml:13", "first match"),
        ],
        path: path.clone(),
        segments: ["fd5d:ac:0:b::e", "fd5d:ac:0:c::e", "fd5d:ac:0:b::e", "fd5d:ac:0:d::46"]
            .map(|segment| segment.parse().unwrap())
            .to_vec(),
        encoding: Some("routing header".to_owned()),
        exit: Some("partner/delta announces 10.4.0.0/16".to_owned()),
        candidates: vec![
            candidate(1, CandidateState::Chosen, None),
            candidate(2, CandidateState::Down, Some("echo does not answer")),
        ],
        size: Some(SizeBudget { mtu: 1342, routing_header: 96, tunnel_mtu: 1438 }),
        next: Some("bravo, ESP SPI 0x0badcafe".to_owned()),
        now: Some("every stop is reachable".to_owned()),
        verdict: Verdict::Forwarded(Delivery::Link { node: "bravo".to_owned() }),
    }
}

fn associations() -> AssociationsReport {
    let child = ChildAssociation {
        state: "installed".to_owned(),
        inbound_spi: "0x0a0b0c0d".to_owned(),
        outbound_spi: "0x01020304".to_owned(),
        algorithm: "AES-256-GCM-16".to_owned(),
        extended_sequence: true,
        local_selectors: vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()],
        remote_selectors: vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()],
        age_seconds: 240,
        rekey_in_seconds: Some(3240),
        received_packets: 1000,
        received_bytes: 1_048_576,
        sent_packets: 900,
        sent_bytes: 943_718,
        replayed_packets: 0,
        integrity_failures: 0,
        idle_seconds: Some(0.5),
    };
    let association = IkeAssociation {
        node: "bravo".to_owned(),
        link: "0-0".to_owned(),
        state: "established".to_owned(),
        initiator: true,
        local: Some("198.51.100.1:13000".parse().unwrap()),
        remote: "198.51.100.2:13000".parse().unwrap(),
        initiator_spi: "0x1111111111111111".to_owned(),
        responder_spi: "0x2222222222222222".to_owned(),
        encryption: "AES-256-GCM-16".to_owned(),
        prf: "HMAC-SHA2-256".to_owned(),
        key_exchange: "x25519 + ml-kem-768".to_owned(),
        vendor: Some("viamesh".to_owned()),
        age_seconds: 240,
        rekey_in_seconds: Some(14_000),
        children: vec![child],
    };
    AssociationsReport { format: FORMAT, associations: vec![association] }
}

fn neighbours() -> NeighboursReport {
    let neighbour = NeighbourEntry {
        node: "bravo".to_owned(),
        link: "0-0".to_owned(),
        address: "fe80::b".parse().unwrap(),
        hello_history: 0xffff,
        unicast_history: Some(0xfffe),
        rxcost: Some(8),
        txcost: Some(8),
        cost: Some(96),
        rtt_ms: Some(23.0),
        hello_interval_seconds: 4.0,
        unicast_interval_seconds: Some(0.1),
        loss_percent: 0,
        rtt_deviation_ms: Some(0.4),
        rtt_cost: 88,
        ihu_expires_in_seconds: Some(38),
        routes: 12,
        selected: 7,
        ours: true,
        since_seconds: 3600,
    };
    NeighboursReport { format: FORMAT, neighbours: vec![neighbour] }
}

fn trace() -> TraceReport {
    let hop = |hop, node: Option<&str>, rtt_ms, received, remark: Option<&str>| TraceHop {
        hop,
        node: node.map(str::to_owned),
        address: node.map(|_| "fd5d:ac:0:b::1".parse().unwrap()),
        rtt_ms,
        sent: 3,
        received,
        remark: remark.map(str::to_owned),
    };
    TraceReport {
        format: FORMAT,
        destination: "10.4.0.9".parse().unwrap(),
        policy: Some("inspected".to_owned()),
        hops: vec![
            hop(1, Some("bravo"), Some(23.1), 3, None),
            hop(2, None, None, 0, None),
            hop(3, Some("bravo"), Some(146.0), 2, Some("second visit")),
        ],
        complete: true,
        remark: None,
    }
}

fn ping() -> PingReport {
    let reply = |sequence, rtt_ms| PingReply { sequence, rtt_ms };
    PingReport {
        format: FORMAT,
        node: "delta".to_owned(),
        address: "fd5d:ac:0:d::1".parse().unwrap(),
        via: vec!["bravo".to_owned()],
        sent: 2,
        replies: vec![reply(1, Some(78.2)), reply(2, None)],
    }
}

fn registry() -> RegistryReport {
    let endpoint = RegistryEndpoint {
        serial_number: "0".to_owned(),
        address_family: "ip4".to_owned(),
        address: Some("198.51.100.1".to_owned()),
        port: 13000,
    };
    let node = RegistryNode {
        node: "alpha".to_owned(),
        fingerprint: Some("SHA256:abc".to_owned()),
        locator: Some("fd5d:ac:0:99::/64".to_owned()),
        this_node: true,
        endpoints: vec![endpoint],
    };
    let organization =
        RegistryOrganization { organization: "acme".to_owned(), fingerprint: None, nodes: vec![node] };
    RegistryReport {
        format: FORMAT,
        source: "/etc/viamesh/registry.yaml".to_owned(),
        version: Some(7),
        age_seconds: Some(12),
        organizations: vec![organization],
    }
}

fn change() -> ChangeReport {
    ChangeReport {
        format: FORMAT,
        applied: true,
        changes: vec!["policy inspected is new".to_owned()],
        needs_restart: vec!["workers".to_owned()],
        warnings: 1,
        confirm_seconds: Some(300),
    }
}

/// All reports by the command that prints them.
fn replies() -> Vec<(&'static str, Reply)> {
    vec![
        ("status", Reply::Status(status())),
        ("routes", Reply::Routes(chain().1)),
        ("neighbours", Reply::Neighbours(neighbours())),
        ("associations", Reply::Associations(associations())),
        ("explain", Reply::Explain(explain())),
        ("trace", Reply::Trace(trace())),
        ("ping", Reply::Ping(ping())),
        ("registry", Reply::Registry(registry())),
        ("change", Reply::Change(change())),
    ]
}

#[test]
fn programs_see_one_document_with_its_format() {
    for (command, reply) in replies() {
        let json = reply.json().unwrap();
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(document["format"], FORMAT, "{command}");
        insta::assert_snapshot!(format!("{command}.json"), json);
    }
}

#[test]
fn people_see_tables_and_sentences() {
    for (command, reply) in replies() {
        insta::assert_snapshot!(format!("{command}.text"), reply.text());
    }
}
