//! The mesh as one node sees it: nodes, links, and the journeys of its policies.
//!
//! Links of this node are measured. Of the others it knows what Babel tells, distances from each neighbour to each
//! node; a link between two others is drawn where no third node explains the distance between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::status::{LinkStatus, NodeState, NodeStatus, PathStatus, PolicyState, StatusReport};
use super::{RouteStanding, RoutesReport, Text};
use crate::control::quantity::{percent, round_trip};

/// More nodes than this are drawn without the links between others: finding them takes time with the third power.
const NODES_TO_RELATE: usize = 150;

/// Nodes and links. Made from `status` and `routes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// All nodes of the registry, this one first.
    pub nodes: Vec<GraphNode>,
    /// Links, this node's own first.
    pub links: Vec<GraphLink>,
    /// What the policies of this node ask for.
    pub journeys: Vec<Journey>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphNode {
    /// Its name.
    pub node: String,
    /// Whether it is the one that reports.
    pub this_node: bool,
    /// Reachable or not.
    pub state: NodeState,
    /// Round trip by the selected way.
    pub rtt_ms: Option<f64>,
    /// The selected way to it, this node first; beyond the first hop as far as Babel tells.
    pub path: Vec<String>,
}

/// How a link is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// It is this node's own.
    Measured,
    /// Deduced from what neighbours announce.
    Announced,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphLink {
    /// One end; this node for its own links.
    pub from: String,
    /// The other end.
    pub to: String,
    /// Its name in histories and in `associations`: `0 > bravo/0`; only of this node's own links.
    pub link: Option<String>,
    /// How it is known.
    pub knowledge: Knowledge,
    /// Up or not.
    pub state: NodeState,
    /// Round trip; of a link between others an estimate.
    pub rtt_ms: Option<f64>,
    /// Lost Hellos in percent.
    pub loss_percent: Option<f64>,
    /// Babel's cost.
    pub cost: Option<u32>,
    /// How many nodes are reached by it now.
    pub carries: usize,
}

/// What a policy asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journey {
    /// The policy.
    pub policy: String,
    /// Up or not.
    pub state: PolicyState,
    /// Its stops in order, this node first; a node may come more than once.
    pub stops: Vec<String>,
}

/// Distances that Babel announces: from a neighbour to a node.
type Distances = BTreeMap<(String, String), u32>;

impl GraphReport {
    /// The graph that the two reports describe.
    pub fn of(status: &StatusReport, routes: &RoutesReport) -> Self {
        let own = own_name(status, routes);
        let distances = distances(status, routes);
        let mut links = own_links(&own, status);
        let between = links_between_others(status, &distances);
        let scale = milliseconds_per_cost(status);
        for ((from, to), cost) in &between {
            links.push(GraphLink {
                from: from.clone(),
                to: to.clone(),
                link: None,
                knowledge: Knowledge::Announced,
                state: NodeState::Up,
                rtt_ms: scale.map(|scale| f64::from(*cost) * scale),
                loss_percent: None,
                cost: Some(*cost),
                carries: 0,
            });
        }
        let mut nodes = vec![GraphNode {
            node: own.clone(),
            this_node: true,
            state: NodeState::Up,
            rtt_ms: None,
            path: vec![own.clone()],
        }];
        nodes.extend(status.nodes.iter().map(|node| GraphNode {
            node: node.node.clone(),
            this_node: false,
            state: node.state,
            rtt_ms: node.rtt_ms,
            path: path_to(&own, node, &between),
        }));
        count_carried(&mut links, &nodes);
        let journeys = status.policies.iter().map(|policy| Journey {
            policy: policy.policy.clone(),
            state: policy.state,
            stops: policy.path.clone(),
        });
        Self { format: super::FORMAT, nodes, links, journeys: journeys.collect() }
    }
}

/// This node as others of the graph are named: its own routes tell; else its name without the organization.
fn own_name(status: &StatusReport, routes: &RoutesReport) -> String {
    let local = routes.routes.iter().find(|route| route.standing == RouteStanding::Local);
    let told = local.and_then(|route| route.origin.clone());
    let told = told.or_else(|| status.policies.first().and_then(|policy| policy.path.first().cloned()));
    told.unwrap_or_else(|| status.node.split('.').next().unwrap_or_default().to_owned())
}

fn own_links(own: &str, status: &StatusReport) -> Vec<GraphLink> {
    let link = |node: &NodeStatus, link: &LinkStatus| GraphLink {
        from: own.to_owned(),
        to: node.node.clone(),
        link: Some(link.name(&node.node)),
        knowledge: Knowledge::Measured,
        state: link.state,
        rtt_ms: link.rtt_ms,
        loss_percent: link.loss_percent,
        cost: link.cost,
        carries: 0,
    };
    status.nodes.iter().flat_map(|node| node.links.iter().map(move |each| link(node, each))).collect()
}

fn distances(status: &StatusReport, routes: &RoutesReport) -> Distances {
    let mut distances = Distances::new();
    for route in &routes.routes {
        let (Some(neighbour), Some(metric)) = (&route.neighbour, route.announced_metric) else { continue };
        // A node's locator is the /64 around its address.
        let is_locator = |node: &&NodeStatus| {
            route.prefix.prefix_len() == 64
                && node.addresses.first().is_some_and(|address| route.prefix.contains(address))
        };
        let Some(node) = status.nodes.iter().find(is_locator) else { continue };
        if node.node != *neighbour {
            let known = distances.entry((neighbour.clone(), node.node.clone())).or_insert(metric);
            *known = metric.min(*known);
        }
    }
    distances
}

/// Pairs of other nodes whose distance no third node explains, with that distance.
fn links_between_others(status: &StatusReport, distances: &Distances) -> BTreeMap<(String, String), u32> {
    let mut links = BTreeMap::new();
    if status.nodes.len() > NODES_TO_RELATE {
        return links;
    }
    // The distance between two nodes, whoever of them is our neighbour and tells.
    let between = |from: &str, to: &str| {
        let told = |from: &str, to: &str| distances.get(&(from.to_owned(), to.to_owned())).copied();
        told(from, to).into_iter().chain(told(to, from)).min()
    };
    let ours: BTreeMap<&str, u32> = status
        .nodes
        .iter()
        .filter_map(|node| Some((node.node.as_str(), node.links.iter().filter_map(|link| link.cost).min()?)))
        .collect();
    for (from, to) in distances.keys() {
        let Some(direct) = between(from, to) else { continue };
        let explains = |by_way: u32| by_way <= direct + direct / 50 + 2;
        let by_us = ours.get(from.as_str()).zip(ours.get(to.as_str()));
        let mut others = status.nodes.iter().filter(|node| node.node != *from && node.node != *to);
        let by_another = others.any(|node| {
            let ways = between(from, &node.node).zip(between(&node.node, to));
            ways.is_some_and(|(first, second)| explains(first.saturating_add(second)))
        });
        if !by_another && !by_us.is_some_and(|(first, second)| explains(first.saturating_add(*second))) {
            let key = if from < to { (from.clone(), to.clone()) } else { (to.clone(), from.clone()) };
            links.insert(key, direct);
        }
    }
    links
}

/// How many milliseconds a unit of cost stands for, as our own links show: the median.
fn milliseconds_per_cost(status: &StatusReport) -> Option<f64> {
    let links = status.nodes.iter().flat_map(|node| &node.links);
    let mut ratios: Vec<f64> = links
        .filter_map(|link| Some(link.rtt_ms? / f64::from(link.cost.filter(|cost| *cost > 0)?)))
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

fn path_to(own: &str, node: &NodeStatus, between: &BTreeMap<(String, String), u32>) -> Vec<String> {
    let mut path = vec![own.to_owned()];
    match &node.path {
        PathStatus::None { .. } => return Vec::new(),
        PathStatus::Direct { .. } => {}
        PathStatus::Through { node: next } => {
            path.push(next.clone());
            path.extend(stops_between(next, &node.node, between));
        }
    }
    path.push(node.node.clone());
    path
}

/// Nodes on the shortest way from one node to another over links between others, without the two.
fn stops_between(from: &str, to: &str, links: &BTreeMap<(String, String), u32>) -> Vec<String> {
    let mut best: BTreeMap<&str, (u32, Option<&str>)> = BTreeMap::from([(from, (0, None))]);
    let mut done = BTreeSet::new();
    loop {
        let open = best.iter().filter(|(node, _)| !done.contains(*node));
        let Some((node, cost)) =
            open.min_by_key(|(_, (cost, _))| *cost).map(|(node, (cost, _))| (*node, *cost))
        else {
            break;
        };
        done.insert(node);
        for ((a, b), length) in links {
            let other = if a == node {
                b.as_str()
            } else if b == node {
                a.as_str()
            } else {
                continue;
            };
            let total = cost.saturating_add(*length);
            if best.get(other).is_none_or(|(known, _)| total < *known) {
                best.insert(other, (total, Some(node)));
            }
        }
    }
    let mut stops = Vec::new();
    let mut at = best.get(to).and_then(|(_, before)| *before);
    while let Some(node) = at.filter(|node| *node != from) {
        stops.push(node.to_owned());
        at = best.get(node).and_then(|(_, before)| *before);
    }
    stops.reverse();
    stops
}

/// Counts for each pair how many nodes are reached over it; the best link of the pair gets them.
fn count_carried(links: &mut [GraphLink], nodes: &[GraphNode]) {
    let mut carried: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for node in nodes {
        for (from, to) in node.path.iter().zip(node.path.iter().skip(1)) {
            *carried.entry((from.min(to), from.max(to))).or_default() += 1;
        }
    }
    for (pair, count) in carried {
        let of_pair = links
            .iter_mut()
            .filter(|link| (link.from.as_str().min(&link.to), link.from.as_str().max(&link.to)) == pair);
        if let Some(link) = of_pair.min_by_key(|link| (!link.state.is_up(), link.cost.unwrap_or(u32::MAX))) {
            link.carries = count;
        }
    }
}

impl GraphLink {
    /// Round trip and loss in words.
    fn label(&self) -> String {
        if !self.state.is_up() {
            return self.state.to_string();
        }
        let mark = if self.knowledge == Knowledge::Announced { "~" } else { "" };
        let rtt = self.rtt_ms.map(|rtt| format!("{mark}{}", round_trip(rtt)));
        let loss = self.loss_percent.filter(|loss| *loss > 0.0).map(|loss| format!("{} lost", percent(loss)));
        rtt.into_iter().chain(loss).collect::<Vec<_>>().join(", ")
    }
}

impl Text for GraphReport {
    /// Graphviz: `viamesh graph | dot -Tsvg > mesh.svg`.
    fn text(&self) -> String {
        let mut text = "graph viamesh {\n  layout=neato; overlap=false; splines=true;\n".to_owned();
        text.push_str("  node [shape=box, style=rounded]; edge [fontsize=10];\n");
        for node in &self.nodes {
            let style = match (node.this_node, node.state.is_up()) {
                (true, _) => " [penwidth=3]",
                (false, true) => "",
                (false, false) => " [style=\"rounded,dashed\", fontcolor=gray]",
            };
            let _ = writeln!(text, "  {}{style};", quoted(&node.node));
        }
        for link in &self.links {
            let style = match (link.knowledge, link.state.is_up(), link.carries) {
                (_, false, _) => ", style=dotted, color=gray",
                (Knowledge::Measured, true, 1..) => ", penwidth=2",
                (Knowledge::Measured, true, 0) => "",
                (Knowledge::Announced, true, _) => ", style=dashed",
            };
            let (from, to) = (quoted(&link.from), quoted(&link.to));
            let _ = writeln!(text, "  {from} -- {to} [label={}{style}];", quoted(&link.label()));
        }
        for journey in &self.journeys {
            let _ =
                writeln!(text, "  // policy {}: {}", one_line(&journey.policy), journey.stops.join(" > "));
        }
        text.push_str("}\n");
        text
    }
}

impl GraphReport {
    /// Mermaid, as forges and wikis draw it.
    pub fn mermaid(&self) -> String {
        let mut text = "graph LR\n".to_owned();
        let number: BTreeMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(number, node)| (node.node.as_str(), number)).collect();
        for (number, node) in self.nodes.iter().enumerate() {
            let name = node.node.replace('"', "'");
            let shape = if node.this_node { ("([", "])") } else { ("(", ")") };
            let _ = writeln!(text, "  n{number}{}\"{name}\"{}", shape.0, shape.1);
        }
        for link in &self.links {
            let (Some(from), Some(to)) = (number.get(link.from.as_str()), number.get(link.to.as_str()))
            else {
                continue;
            };
            let line = match (link.knowledge, link.state.is_up(), link.carries) {
                (Knowledge::Measured, true, 1..) => "===",
                (Knowledge::Measured, true, 0) => "---",
                _ => "-.-",
            };
            let _ = writeln!(text, "  n{from} {line}|\"{}\"| n{to}", link.label());
        }
        text
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
