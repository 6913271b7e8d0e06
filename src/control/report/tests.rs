//! Reports for tests, and the graph that is made of them.

use std::collections::BTreeMap;

use super::*;

/// A link with a round trip and octets.
pub(crate) fn link(rtt_ms: Option<f64>, received_bytes: u64, sent_bytes: u64) -> LinkStatus {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small in tests")]
    let cost = rtt_ms.map(|rtt| 8 + (rtt * 4.0) as u32);
    LinkStatus {
        local_endpoint: "0".to_owned(),
        remote_endpoint: "0".to_owned(),
        state: if rtt_ms.is_some() { NodeState::Up } else { NodeState::Down },
        remote: Some("198.51.100.2:13000".parse().unwrap()),
        rtt_ms,
        loss_percent: rtt_ms.map(|_| 0.0),
        cost,
        mtu: Some(1438),
        received_bytes,
        sent_bytes,
    }
}

/// The status of alpha with these nodes; a node is up if one of its links is.
pub(crate) fn status_of(nodes: Vec<(&str, Vec<LinkStatus>)>) -> StatusReport {
    let node = |(number, (name, links)): (usize, (&str, Vec<LinkStatus>))| {
        let up = links.iter().any(|link| link.state.is_up());
        let reason = "no answer for 4 min".to_owned();
        let remote = "198.51.100.2:13000".parse().unwrap();
        NodeStatus {
            node: name.to_owned(),
            state: if up { NodeState::Up } else { NodeState::Down },
            since_seconds: 60,
            path: if up {
                PathStatus::Direct { remote, dialled: Dialled::Us }
            } else {
                PathStatus::None { reason }
            },
            rtt_ms: links.iter().find_map(|link| link.rtt_ms),
            received_bytes: Some(links.iter().map(|link| link.received_bytes).sum()),
            sent_bytes: Some(links.iter().map(|link| link.sent_bytes).sum()),
            key_exchange: up.then(|| "x25519".to_owned()),
            addresses: vec![format!("fd5d:ac:0:{}::1", number + 1).parse().unwrap()],
            links,
        }
    };
    StatusReport {
        format: FORMAT,
        node: "alpha.acme".to_owned(),
        version: "0.1.0".to_owned(),
        uptime_seconds: 3600,
        listening: vec![13000],
        addresses: vec!["fd5d:ac:0:99::1".parse().unwrap()],
        nodes: nodes.into_iter().enumerate().map(node).collect(),
        policies: Vec::new(),
        problems: Vec::new(),
        drops: BTreeMap::new(),
    }
}

/// A route to the locator of the node that is number `node` in the status, as `neighbour` announces it.
fn announced(neighbour: &str, node: usize, metric: u32) -> RouteEntry {
    RouteEntry {
        prefix: format!("fd5d:ac:0:{}::/64", node + 1).parse().unwrap(),
        source: None,
        standing: RouteStanding::Feasible,
        origin: None,
        neighbour: Some(neighbour.to_owned()),
        next_hop: None,
        link: None,
        metric: Some(metric + 100),
        announced_metric: Some(metric),
        feasibility_distance: None,
        seqno: 1,
        router_id: "02:00:5e:10:00:00:00:01".to_owned(),
        rtt_ms: None,
        expires_in_seconds: Some(40),
        reason: None,
    }
}

/// Alpha with links to bravo (40 ms) and charlie (265 ms); bravo has links to charlie and delta, and charlie reaches
/// delta through bravo.
pub(crate) fn chain() -> (StatusReport, RoutesReport) {
    let mut status = status_of(vec![
        ("bravo", vec![link(Some(40.0), 0, 0)]),
        ("charlie", vec![link(Some(265.0), 0, 0)]),
        ("delta", vec![link(None, 0, 0)]),
    ]);
    for name in [1, 2] {
        status.nodes[name].state = NodeState::Up;
        status.nodes[name].path = PathStatus::Through { node: "bravo".to_owned() };
    }
    let routes = vec![
        announced("bravo", 1, 168),
        announced("bravo", 2, 88),
        announced("charlie", 0, 168),
        announced("charlie", 2, 256),
    ];
    (status, RoutesReport { format: FORMAT, address: None, routes })
}

#[test]
fn links_between_others_are_those_that_no_third_node_explains() {
    let (status, routes) = chain();
    let graph = GraphReport::of(&status, &routes);
    let far: Vec<(&str, &str)> = graph
        .links
        .iter()
        .filter(|link| link.knowledge == Knowledge::Announced)
        .map(|link| (link.from.as_str(), link.to.as_str()))
        .collect();
    assert_eq!(far, [("bravo", "charlie"), ("bravo", "delta")]);
    let delta = graph.nodes.iter().find(|node| node.node == "delta").unwrap();
    assert_eq!(delta.path, ["alpha", "bravo", "delta"]);
    let bravo = graph.links.iter().find(|link| link.to == "bravo").unwrap();
    assert_eq!(bravo.carries, 3, "bravo itself, charlie and delta");
}

#[test]
fn the_graph_is_dot_and_mermaid() {
    let (mut status, routes) = chain();
    status.nodes[0].links[0].loss_percent = Some(3.0);
    let graph = GraphReport::of(&status, &routes);
    insta::assert_snapshot!(graph.text());
    insta::assert_snapshot!(graph.mermaid());
}

#[test]
fn names_cannot_break_out_of_the_graph() {
    let status = status_of(vec![("x\"]; evil [\"\\", vec![link(Some(1.0), 0, 0)])]);
    let graph = GraphReport::of(&status, &RoutesReport { format: FORMAT, address: None, routes: Vec::new() });
    assert!(graph.text().contains(r#""x\"]; evil [\"\\""#), "{}", graph.text());
    assert!(!graph.mermaid().contains("x\""), "{}", graph.mermaid());
}

#[test]
fn drops_are_explained_and_sorted() {
    let mut status = status_of(Vec::new());
    status.drops = BTreeMap::from([("replayed".to_owned(), 2), ("no_route".to_owned(), 7)]);
    let rows = DropRow::of(&status);
    assert_eq!(rows.iter().map(|row| row.packets).collect::<Vec<_>>(), [7, 2]);
    assert!(rows[0].text.contains("no prefix"), "{rows:?}");
}
