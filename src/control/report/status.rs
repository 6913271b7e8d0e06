//! `viamesh status`: who is up, which way, how far.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::{DropRow, Text};
use crate::control::quantity::{bytes, count, or_dash, percent, round_trip, whole_span};
use crate::control::table::{Align, Table};
use crate::telemetry::Health;

/// The answer to `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// This node, `common_name.organization`.
    pub node: String,
    /// Version of the daemon.
    pub version: String,
    /// Seconds since the daemon started.
    pub uptime_seconds: u64,
    /// UDP ports that we listen on.
    pub listening: Vec<u16>,
    /// Addresses of this node on the TUN.
    pub addresses: Vec<IpAddr>,
    /// The other nodes, or the one that was asked for.
    pub nodes: Vec<NodeStatus>,
    /// Our policies in file order.
    pub policies: Vec<PolicyStatus>,
    /// What is wrong, worst first.
    pub problems: Vec<Health>,
    /// Packets discarded since the daemon started, by the name of the reason; what never happened is not listed.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// State of another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// Reachable.
    Up,
    /// Being dialled.
    Connecting,
    /// Not reachable.
    Down,
}

/// Who began the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialled {
    /// We did.
    Us,
    /// The other node did.
    Them,
}

/// The way to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PathStatus {
    /// By a tunnel of our own.
    Direct {
        /// The peer's underlay address and port.
        remote: SocketAddr,
        /// Who dialled.
        dialled: Dialled,
    },
    /// Relayed.
    Through {
        /// The next node on the way.
        node: String,
    },
    /// No way; why.
    None {
        /// Reason in words: `no answer for 4 min`.
        reason: String,
    },
}

/// One line of `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node's name.
    pub node: String,
    /// Reachable or not.
    pub state: NodeState,
    /// Seconds in this state.
    pub since_seconds: u64,
    /// The way to it.
    pub path: PathStatus,
    /// Round trip by that way, as Babel measures it.
    pub rtt_ms: Option<f64>,
    /// Bytes received on its links, since the daemon started.
    pub received_bytes: Option<u64>,
    /// Bytes sent on its links.
    pub sent_bytes: Option<u64>,
    /// Negotiated key exchange; `None` where there is no tunnel.
    pub key_exchange: Option<String>,
    /// Addresses that the node announces for itself.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// The links between us and it.
    #[serde(default)]
    pub links: Vec<LinkStatus>,
}

/// One link: a pair of endpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Our endpoint's serial number.
    pub local_endpoint: String,
    /// Their endpoint's serial number.
    pub remote_endpoint: String,
    /// Up, connecting or down.
    pub state: NodeState,
    /// Their address, where known.
    pub remote: Option<SocketAddr>,
    /// Smoothed round trip of the link.
    pub rtt_ms: Option<f64>,
    /// Lost Hellos in percent.
    pub loss_percent: Option<f64>,
    /// Babel cost; `None` is unreachable.
    pub cost: Option<u32>,
    /// Largest inner packet in bytes.
    pub mtu: Option<u32>,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// State of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyState {
    /// Every stop is reachable.
    Up,
    /// Traffic takes another way than written (`any-path`, or a later candidate).
    Degraded,
    /// Traffic is dropped.
    Down,
}

/// One policy line of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// The policy's name.
    pub policy: String,
    /// Up or not.
    pub state: PolicyState,
    /// The journey, this node first.
    pub path: Vec<String>,
    /// Remark on the path: `nearest internet exit`.
    pub remark: Option<String>,
    /// Why it is not up: `echo does not answer`.
    pub reason: Option<String>,
    /// Largest inner packet in bytes.
    pub mtu: Option<u32>,
    /// Packets sent by it.
    pub packets: u64,
    /// Packets dropped by it.
    pub dropped: u64,
}

impl Text for StatusReport {
    fn text(&self) -> String {
        let mut text = self.headline();
        for part in
            [self.node_table(), self.policy_table(), DropRow::table(&DropRow::of(self)), self.problem_list()]
        {
            if !part.is_empty() {
                text.push('\n');
                text.push_str(&part);
            }
        }
        text
    }
}

impl StatusReport {
    /// The text form for one node: with its links.
    pub fn detail_text(&self) -> String {
        let mut text = self.text();
        for node in self.nodes.iter().filter(|node| !node.links.is_empty()) {
            let _ = write!(text, "\nLinks with {}\n", node.node);
            text.push_str(&node.link_table());
        }
        text
    }

    fn headline(&self) -> String {
        let mut parts = vec![format!("{} ", self.node), format!("up {}", whole_span(self.uptime_seconds))];
        if !self.policies.is_empty() {
            let up = self.policies.iter().filter(|policy| policy.state != PolicyState::Down).count();
            let down = self.policies.len() - up;
            let noun = if self.policies.len() == 1 { "policy" } else { "policies" };
            let down = if down == 0 { String::new() } else { format!(", {down} down") };
            parts.push(format!("{up} {noun} up{down}"));
        }
        if !self.listening.is_empty() {
            let ports: Vec<String> = self.listening.iter().map(u16::to_string).collect();
            parts.push(format!("listening on udp {}", ports.join(", ")));
        }
        parts.join("   ") + "\n"
    }

    fn node_table(&self) -> String {
        let mut table = Table::new(&[
            ("NODE", Align::Left),
            ("STATE", Align::Left),
            ("PATH", Align::Left),
            ("RTT", Align::Right),
            ("RECEIVED", Align::Right),
            ("SENT", Align::Right),
            ("KEY EXCHANGE", Align::Left),
        ]);
        for node in &self.nodes {
            table.row([
                node.node.clone(),
                node.state.to_string(),
                node.path.to_string(),
                or_dash(node.rtt_ms.map(round_trip)),
                or_dash(node.received_bytes.map(bytes)),
                or_dash(node.sent_bytes.map(bytes)),
                or_dash(node.key_exchange.clone()),
            ]);
        }
        table.text()
    }

    fn policy_table(&self) -> String {
        let mut table = Table::new(&[
            ("POLICY", Align::Left),
            ("STATE", Align::Left),
            ("PATH", Align::Left),
            ("MTU", Align::Right),
            ("PACKETS", Align::Left),
        ]);
        for policy in &self.policies {
            table.row([
                policy.policy.clone(),
                policy.state.to_string(),
                policy.way(),
                or_dash(policy.mtu.map(|mtu| mtu.to_string())),
                policy.traffic(),
            ]);
        }
        table.text()
    }

    fn problem_list(&self) -> String {
        if self.problems.is_empty() {
            return String::new();
        }
        let mut text = "Problems\n".to_owned();
        for problem in &self.problems {
            let Health { severity, text: what, next_step, .. } = problem;
            let end = if what.ends_with(['.', '?']) || next_step.is_empty() { "" } else { "." };
            let line = format!("  {severity:<7}  {what}{end} {next_step}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

impl NodeState {
    /// Whether it is [`NodeState::Up`].
    pub fn is_up(self) -> bool {
        self == Self::Up
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Up => "up",
            Self::Connecting => "connecting",
            Self::Down => "down",
        })
    }
}

impl fmt::Display for PolicyState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Up => "up",
            Self::Degraded => "degraded",
            Self::Down => "down",
        })
    }
}

impl fmt::Display for PathStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct { remote, dialled: Dialled::Us } => write!(formatter, "direct {}", remote.ip()),
            Self::Direct { dialled: Dialled::Them, .. } => formatter.write_str("direct (they dialled)"),
            Self::Through { node } => write!(formatter, "through {node}"),
            Self::None { reason } => formatter.write_str(reason),
        }
    }
}

impl LinkStatus {
    /// Its name towards `node`, as `associations` and histories have it: `0 > bravo/0`.
    pub fn name(&self, node: &str) -> String {
        format!("{} > {node}/{}", self.local_endpoint, self.remote_endpoint)
    }
}

impl NodeStatus {
    fn link_table(&self) -> String {
        let mut table = Table::new(&[
            ("LINK", Align::Left),
            ("STATE", Align::Left),
            ("REMOTE", Align::Left),
            ("RTT", Align::Right),
            ("LOSS", Align::Right),
            ("COST", Align::Right),
            ("MTU", Align::Right),
            ("RECEIVED", Align::Right),
            ("SENT", Align::Right),
        ]);
        for link in &self.links {
            table.row([
                format!("{} > {}", link.local_endpoint, link.remote_endpoint),
                link.state.to_string(),
                or_dash(link.remote.map(|remote| remote.to_string())),
                or_dash(link.rtt_ms.map(round_trip)),
                or_dash(link.loss_percent.map(percent)),
                or_dash(link.cost.map(|cost| cost.to_string())),
                or_dash(link.mtu.map(|mtu| mtu.to_string())),
                bytes(link.received_bytes),
                bytes(link.sent_bytes),
            ]);
        }
        table.text()
    }
}

impl PolicyStatus {
    pub(crate) fn way(&self) -> String {
        let path = self.path.join(" > ");
        match (&self.reason, &self.remark) {
            (Some(reason), _) if self.state == PolicyState::Down => reason.clone(),
            (Some(reason), _) => format!("{path} ({reason})"),
            (None, Some(remark)) => format!("{path} ({remark})"),
            (None, None) => path,
        }
    }

    pub(crate) fn traffic(&self) -> String {
        match self.dropped {
            0 => count(self.packets),
            dropped => format!("{} ({} dropped)", count(self.packets), count(dropped)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;
    use crate::telemetry::Severity;

    fn node(
        node: &str,
        path: PathStatus,
        traffic: Option<(f64, u64, u64)>,
        key_exchange: Option<&str>,
    ) -> NodeStatus {
        NodeStatus {
            node: node.to_owned(),
            state: if traffic.is_some() { NodeState::Up } else { NodeState::Down },
            since_seconds: 60,
            path,
            rtt_ms: traffic.map(|(rtt, _, _)| rtt),
            received_bytes: traffic.map(|(_, received, _)| received),
            sent_bytes: traffic.map(|(_, _, sent)| sent),
            key_exchange: key_exchange.map(str::to_owned),
            addresses: Vec::new(),
            links: Vec::new(),
        }
    }

    fn policy(policy: &str, path: &[&str], traffic: (u64, u64)) -> PolicyStatus {
        PolicyStatus {
            policy: policy.to_owned(),
            state: PolicyState::Up,
            path: path.iter().map(|stop| (*stop).to_owned()).collect(),
            remark: None,
            reason: None,
            mtu: Some(1342),
            packets: traffic.0,
            dropped: traffic.1,
        }
    }

    fn report() -> StatusReport {
        let bravo =
            PathStatus::Direct { remote: "198.51.100.2:13000".parse().unwrap(), dialled: Dialled::Us };
        let charlie =
            PathStatus::Direct { remote: "192.0.2.7:40112".parse().unwrap(), dialled: Dialled::Them };
        let nearest = PolicyStatus {
            remark: Some("nearest internet exit".to_owned()),
            mtu: Some(1398),
            ..policy("everyone-else", &["alpha", "partner/delta"], (9_001_225, 0))
        };
        let scenic = PolicyStatus {
            state: PolicyState::Down,
            reason: Some("echo does not answer".to_owned()),
            mtu: None,
            ..policy("scenic", &["alpha", "echo"], (0, 44))
        };
        StatusReport {
            format: FORMAT,
            node: "alpha.acme".to_owned(),
            version: "0.1.0".to_owned(),
            uptime_seconds: 3 * 86_400,
            listening: vec![13000],
            addresses: vec!["fd5d:ac:1:2::1".parse().unwrap()],
            nodes: vec![
                node("bravo", bravo, Some((23.1, 1_288_490_189, 325_058_560)), Some("x25519 + ml-kem-768")),
                node("charlie", charlie, Some((61.0, 41_943_040, 12_582_912)), Some("x25519")),
                node(
                    "partner/delta",
                    PathStatus::Through { node: "bravo".to_owned() },
                    Some((78.0, 8 << 20, 9 << 20)),
                    None,
                ),
                node("echo", PathStatus::None { reason: "no answer for 4 min".to_owned() }, None, None),
            ],
            policies: vec![
                policy("inspected", &["alpha", "bravo", "charlie", "bravo", "partner/delta"], (120_433, 0)),
                nearest,
                scenic,
            ],
            problems: vec![Health {
                code: "peer/no-answer".to_owned(),
                subject: "echo".to_owned(),
                severity: Severity::Warning,
                text: "echo has not answered since 14:02 (IKE_SA_INIT, 7 tries)".to_owned(),
                next_step: "Is udp 13000 open there?".to_owned(),
            }],
            drops: BTreeMap::from([("unknown_spi".to_owned(), 3)]),
        }
    }

    #[test]
    fn the_overview_is_one_line_a_node() {
        insta::assert_snapshot!(report().text(), @"
        alpha.acme    up 3 days   2 policies up, 1 down   listening on udp 13000

        NODE            STATE   PATH                      RTT   RECEIVED      SENT   KEY EXCHANGE
        bravo           up      direct 198.51.100.2     23 ms    1.2 GiB   310 MiB   x25519 + ml-kem-768
        charlie         up      direct (they dialled)   61 ms     40 MiB    12 MiB   x25519
        partner/delta   up      through bravo           78 ms    8.0 MiB   9.0 MiB   -
        echo            down    no answer for 4 min         -          -         -   -

        POLICY          STATE   PATH                                               MTU   PACKETS
        inspected       up      alpha > bravo > charlie > bravo > partner/delta   1342   120,433
        everyone-else   up      alpha > partner/delta (nearest internet exit)     1398   9,001,225
        scenic          down    echo does not answer                                 -   0 (44 dropped)

        DROPPED       PACKETS   WHY
        unknown_spi         3   no inbound security association has this SPI

        Problems
          warning  echo has not answered since 14:02 (IKE_SA_INIT, 7 tries). Is udp 13000 open there?
        ");
    }

    #[test]
    fn a_node_alone_shows_its_links() {
        let mut report = report();
        report.nodes.truncate(1);
        report.policies.clear();
        report.problems.clear();
        report.nodes[0].links.push(LinkStatus {
            local_endpoint: "0".to_owned(),
            remote_endpoint: "bravo/0".to_owned(),
            state: NodeState::Up,
            remote: Some("198.51.100.2:13000".parse().unwrap()),
            rtt_ms: Some(23.1),
            loss_percent: Some(0.2),
            cost: Some(96),
            mtu: Some(1438),
            received_bytes: 1_288_490_189,
            sent_bytes: 325_058_560,
        });
        insta::assert_snapshot!(report.detail_text(), @"
        alpha.acme    up 3 days   listening on udp 13000

        NODE    STATE   PATH                    RTT   RECEIVED      SENT   KEY EXCHANGE
        bravo   up      direct 198.51.100.2   23 ms    1.2 GiB   310 MiB   x25519 + ml-kem-768

        DROPPED       PACKETS   WHY
        unknown_spi         3   no inbound security association has this SPI

        Links with bravo
        LINK          STATE   REMOTE                 RTT   LOSS   COST    MTU   RECEIVED      SENT
        0 > bravo/0   up      198.51.100.2:13000   23 ms   <1 %     96   1438    1.2 GiB   310 MiB
        ");
    }

    #[test]
    fn json_says_its_format_and_comes_back_the_same() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["format"], 1);
        assert_eq!(json["nodes"][0]["path"]["kind"], "direct");
        assert_eq!(serde_json::from_value::<StatusReport>(json).unwrap(), report());
    }
}
