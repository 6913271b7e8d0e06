//! `viamesh explain`: which policy takes a packet, and which way it goes.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::Text;

/// The answer to `explain`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainReport {
    /// [`super::FORMAT`].
    pub format: u32,
    /// The packet.
    pub flow: FlowDescription,
    /// Each policy in order, up to the one that matches.
    pub rules: Vec<RuleVerdict>,
    /// Nodes on the way, this one first; without a policy as far as known.
    pub path: Vec<String>,
    /// SIDs on the way, first stop first; empty without a policy.
    pub segments: Vec<Ipv6Addr>,
    /// How the SIDs are written into packets.
    pub encoding: Option<String>,
    /// Why it leaves where it leaves: `partner/delta announces 10.4.0.0/16 (learned 2 s ago)`.
    pub exit: Option<String>,
    /// The policy's paths in order, if it has several or tries them out.
    pub candidates: Vec<CandidateReport>,
    /// Sizes.
    pub size: Option<SizeBudget>,
    /// The link and security association that it leaves by.
    pub next: Option<String>,
    /// State of the way in words: `every stop is reachable; last packet 0.3 s ago`.
    pub now: Option<String>,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// The packet that is explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowDescription {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// `tcp`, `udp`, `icmp` or a number.
    pub protocol: Option<String>,
    /// Source port.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
    /// The interface by which it came to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<String>,
    /// Its firewall mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fwmark: Option<u32>,
}

/// What one policy says to the packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleVerdict {
    /// Whether it matches.
    pub matched: bool,
    /// The policy's name.
    pub policy: String,
    /// `node.yaml:9`.
    pub position: String,
    /// `first match`, `source is not in 10.1.99.0/24`.
    pub reason: String,
}

/// One path of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateReport {
    /// Its place in the policy, from 1.
    pub number: u8,
    /// Its stops, the exit last.
    pub path: Vec<String>,
    /// Lower comes first.
    pub priority: u16,
    /// Its share of the flows among paths of one priority.
    pub weight: u8,
    /// Whether packets take it.
    pub state: CandidateState,
    /// Why they do not.
    pub problem: Option<String>,
    /// Median round-trip time of its probes.
    pub rtt_ms: Option<f64>,
    /// Probes that were lost.
    pub loss_percent: Option<u8>,
}

/// Whether packets take a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateState {
    /// This packet does.
    Chosen,
    /// Other flows do.
    InUse,
    /// Not as long as there are better ones.
    Standby,
    /// It cannot be used.
    Down,
}

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeBudget {
    /// Largest inner packet in bytes.
    pub mtu: u32,
    /// Bytes of outer IPv6 and routing header.
    pub routing_header: u32,
    /// Largest packet in the tunnel in bytes.
    pub tunnel_mtu: u32,
}

/// Where a packet that is not dropped goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// To this host or a network behind it.
    Local,
    /// Into the tunnel to a node.
    Link {
        /// The next node.
        node: String,
    },
    /// Not by the mesh: the host's own routes decide.
    Outside,
}

/// What becomes of the packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It goes on.
    Forwarded(Delivery),
    /// It is dropped.
    Dropped {
        /// Stable name of the drop reason: metric label and heading in the manual.
        reason: String,
        /// The same in words.
        text: String,
    },
}

impl Text for ExplainReport {
    fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.flow);
        text.push_str(&self.rule_lines());
        let path = (!self.path.is_empty()).then(|| self.path.join(" > "));
        let segments: Vec<String> = self.segments.iter().map(Ipv6Addr::to_string).collect();
        let segments = (!segments.is_empty()).then(|| segments.join("  "));
        let facts = [
            ("path", path),
            ("segments", segments),
            ("encoding", self.encoding.clone()),
            ("exit", self.exit.clone()),
            ("size", self.size.map(|size| size.to_string())),
            ("next", self.next.clone()),
            ("now", self.now.clone()),
        ];
        let mut any = false;
        for (name, fact) in facts {
            if let Some(fact) = fact {
                let _ = writeln!(text, "  {name:<8}  {fact}");
                any = true;
            }
        }
        for candidate in &self.candidates {
            let _ = writeln!(text, "  path {:<3}  {candidate}", candidate.number);
        }
        if any {
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.verdict);
        text
    }
}

impl ExplainReport {
    fn rule_lines(&self) -> String {
        if self.rules.is_empty() {
            return "  no policy looks at it\n\n".to_owned();
        }
        let width = |cell: fn(&RuleVerdict) -> &String| {
            self.rules.iter().map(|rule| cell(rule).chars().count()).max().unwrap_or(0)
        };
        let policy = width(|rule| &rule.policy);
        let position = width(|rule| &rule.position);
        let mut text = String::new();
        for rule in &self.rules {
            let verdict = if rule.matched { "match" } else { "skip" };
            let _ = writeln!(
                text,
                "  {verdict:<5}  {:<policy$}  {:<position$}  {}",
                rule.policy, rule.position, rule.reason
            );
        }
        text.push('\n');
        text
    }
}

impl fmt::Display for FlowDescription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} to {}", self.source, self.destination)?;
        if let Some(protocol) = &self.protocol {
            write!(formatter, ", {protocol}")?;
        }
        if let Some(port) = self.destination_port {
            write!(formatter, " {port}")?;
        }
        if let Some(port) = self.source_port {
            write!(formatter, " from port {port}")?;
        }
        if let Some(ingress) = &self.ingress {
            write!(formatter, ", by {ingress}")?;
        }
        if let Some(mark) = self.fwmark {
            write!(formatter, ", mark {mark:#x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for CandidateReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            CandidateState::Chosen => "chosen",
            CandidateState::InUse => "in use",
            CandidateState::Standby => "standby",
            CandidateState::Down => "down",
        };
        let stops = if self.path.is_empty() { "-".to_owned() } else { self.path.join(" > ") };
        write!(formatter, "{state:<7}  {stops}  (priority {}, weight {}", self.priority, self.weight)?;
        if let Some(rtt) = self.rtt_ms {
            write!(formatter, ", {rtt:.1} ms")?;
        }
        if let Some(loss) = self.loss_percent {
            write!(formatter, ", {loss} % lost")?;
        }
        formatter.write_str(")")?;
        self.problem.as_ref().map_or(Ok(()), |problem| write!(formatter, ": {problem}"))
    }
}

impl fmt::Display for SizeBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at most {} bytes", self.mtu)?;
        match self.routing_header {
            0 => Ok(()),
            header => {
                write!(formatter, "; {header} bytes of routing header on a {}-byte tunnel", self.tunnel_mtu)
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forwarded(Delivery::Link { node }) => write!(formatter, "forwarded to {node}"),
            Self::Forwarded(Delivery::Local) => formatter.write_str("delivered here"),
            Self::Forwarded(Delivery::Outside) => {
                formatter.write_str("not for the mesh: the host's own routes decide")
            }
            Self::Dropped { reason, text } => write!(formatter, "dropped: {text} ({reason})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::report::FORMAT;

    fn rule(matched: bool, policy: &str, position: &str, reason: &str) -> RuleVerdict {
        RuleVerdict {
            matched,
            policy: policy.to_owned(),
            position: position.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn report() -> ExplainReport {
        ExplainReport {
            format: FORMAT,
            flow: FlowDescription {
                source: "10.1.3.4".parse().unwrap(),
                destination: "10.4.0.9".parse().unwrap(),
                protocol: Some("tcp".to_owned()),
                source_port: None,
                destination_port: Some(443),
                ingress: None,
                fwmark: None,
            },
            rules: vec![
                rule(false, "guests", "node.yaml:9", "source is not in 10.1.99.0/24"),
                rule(true, "inspected", "node.yaml:13", "first match"),
            ],
            path: ["alpha", "bravo", "charlie", "bravo", "partner/delta"].map(str::to_owned).to_vec(),
            segments: vec!["fd5d:ac::b:e".parse().unwrap(), "fd5d:ac::d:46".parse().unwrap()],
            encoding: Some("routing header, the first segment in the destination only".to_owned()),
            exit: Some("partner/delta announces 10.4.0.0/16 (learned 2 s ago)".to_owned()),
            candidates: Vec::new(),
            size: Some(SizeBudget { mtu: 1342, routing_header: 96, tunnel_mtu: 1438 }),
            next: Some("bravo at 198.51.100.2:13000, SPI c0ffee01".to_owned()),
            now: Some("every stop is reachable; last packet 0.3 s ago".to_owned()),
            verdict: Verdict::Forwarded(Delivery::Link { node: "bravo".to_owned() }),
        }
    }

    #[test]
    fn the_reasons_stand_before_the_way() {
        insta::assert_snapshot!(report().text(), @"
        10.1.3.4 to 10.4.0.9, tcp 443

          skip   guests     node.yaml:9   source is not in 10.1.99.0/24
          match  inspected  node.yaml:13  first match

          path      alpha > bravo > charlie > bravo > partner/delta
          segments  fd5d:ac::b:e  fd5d:ac::d:46
          encoding  routing header, the first segment in the destination only
          exit      partner/delta announces 10.4.0.0/16 (learned 2 s ago)
          size      at most 1342 bytes; 96 bytes of routing header on a 1438-byte tunnel
          next      bravo at 198.51.100.2:13000, SPI c0ffee01
          now       every stop is reachable; last packet 0.3 s ago

        forwarded to bravo
        ");
    }

    #[test]
    fn a_drop_names_its_reason() {
        let report = ExplainReport {
            rules: Vec::new(),
            path: Vec::new(),
            segments: Vec::new(),
            encoding: None,
            exit: None,
            size: None,
            next: None,
            now: None,
            verdict: Verdict::Dropped {
                reason: "no-route".to_owned(),
                text: "no node announces the destination".to_owned(),
            },
            ..report()
        };
        insta::assert_snapshot!(report.text(), @"
        10.1.3.4 to 10.4.0.9, tcp 443

          no policy looks at it

        dropped: no node announces the destination (no-route)
        ");
    }

    #[test]
    fn each_path_says_how_it_is() {
        let candidate = |number, state, problem: Option<&str>, rtt_ms| CandidateReport {
            number,
            path: vec!["bravo".to_owned(), "delta".to_owned()],
            priority: u16::from(number),
            weight: 1,
            state,
            problem: problem.map(str::to_owned),
            rtt_ms,
            loss_percent: rtt_ms.map(|_| 10),
        };
        let candidates = vec![
            candidate(1, CandidateState::Down, Some("bravo is unreachable"), None),
            candidate(2, CandidateState::Chosen, None, Some(23.42)),
        ];
        let text = ExplainReport { candidates, ..report() }.text();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("  path ")).skip(1).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
          path 1    down     bravo > delta  (priority 1, weight 1): bravo is unreachable
          path 2    chosen   bravo > delta  (priority 2, weight 1, 23.4 ms, 10 % lost)
        ");
    }

    #[test]
    fn json_comes_back_the_same() {
        let json = serde_json::to_string(&report()).unwrap();
        assert_eq!(serde_json::from_str::<ExplainReport>(&json).unwrap(), report());
    }
}
