//! `explain`: the data path's own decision, in words.

use crate::config::settings::NodeName;
use crate::control::report::{
    CandidateReport, CandidateState, Delivery, ExplainReport, FORMAT, FlowDescription, RuleVerdict,
    SizeBudget, Verdict,
};
use crate::forwarding::{Decision, Forwarding, LinkId, Origin, Steered, decide};
use crate::node::policy_candidate::CandidateRuntime;
use crate::node::{Node, PolicyRuntime};
use crate::policy::{Class, Membership, PolicyIndex};
use srv6::ip::{FlowKey, protocol};
use std::net::IpAddr;
use std::time::Instant;

impl Node {
    /// What the data path does with a packet from an application of this host or its LAN. Asks the very
    /// function that the workers call.
    pub(in crate::node) fn decide(&self, flow: &FlowDescription) -> Result<(Decision, FlowKey), String> {
        let key = flow_key(flow)?;
        let origin = Origin::Tun(self.class_of(flow));
        if !self.forwarding_changed {
            return Ok((decide(&self.forwarding, &key, origin), key));
        }
        // The published snapshot is older than what has arrived in this turn.
        let forwarding: Forwarding = self.build_forwarding();
        Ok((decide(&forwarding, &key, origin), key))
    }

    pub(in crate::node) fn explain(
        &self,
        flow: &FlowDescription,
        _now: Instant,
    ) -> Result<ExplainReport, String> {
        let (decision, key) = self.decide(flow)?;
        let policy = match decision {
            Decision::Link { policy: Some(steered), .. } => self.steered(steered),
            _ => None,
        };
        let mut report = ExplainReport {
            format: FORMAT,
            flow: flow.clone(),
            rules: self.rule_verdicts(&key, self.class_of(flow)),
            path: vec![self.settings.display_name(&self.settings.name)],
            segments: Vec::new(),
            encoding: None,
            exit: None,
            candidates: Vec::new(),
            size: None,
            next: None,
            now: None,
            verdict: self.verdict(decision),
        };
        if let Decision::Link { link, .. } = decision {
            report.next = self.next_link(link);
            match policy {
                Some((policy, candidate)) => {
                    self.explain_policy(policy, candidate, flow.destination, &mut report);
                }
                None => self.explain_route(link, flow.destination, &mut report),
            }
        }
        Ok(report)
    }

    fn class_of(&self, flow: &FlowDescription) -> Class {
        let packet = Membership { ingress: flow.ingress.clone(), fwmark: flow.fwmark };
        self.classes.class_of(&packet)
    }

    fn rule_verdicts(&self, key: &FlowKey, class: Class) -> Vec<RuleVerdict> {
        let verdicts = self.steering.explain(key, class).into_iter();
        verdicts
            .filter_map(|(index, outcome)| {
                let policy = self.settings.policies.get(usize::from(index.0))?;
                Some(RuleVerdict {
                    matched: outcome.is_match(),
                    policy: policy.name.clone(),
                    position: format!(
                        "{}:{}",
                        if policy.shared { "registry.yaml" } else { "node.yaml" },
                        policy.line
                    ),
                    reason: self.match_reason(index, &outcome.to_string(), outcome.is_match()),
                })
            })
            .collect()
    }

    /// A match that steps aside says so.
    fn match_reason(&self, index: PolicyIndex, reason: &str, matched: bool) -> String {
        let problem = self.policies.get(usize::from(index.0)).and_then(|policy| policy.problem.as_ref());
        match problem {
            Some(problem) if matched => format!("{reason}, but it has no path: {problem}"),
            _ => reason.to_owned(),
        }
    }

    /// The policy and candidate that the data path speaks of.
    pub(in crate::node) fn steered(&self, steered: Steered) -> Option<(&PolicyRuntime, &CandidateRuntime)> {
        let policy = self.policies.get(usize::from(steered.policy.0))?;
        Some((policy, policy.in_use().nth(usize::from(steered.candidate))?))
    }

    fn explain_policy(
        &self,
        policy: &PolicyRuntime,
        candidate: &CandidateRuntime,
        destination: IpAddr,
        report: &mut ExplainReport,
    ) {
        report.path.extend(candidate.journey.iter().map(|name| self.settings.display_name(name)));
        report.segments.clone_from(&candidate.segments);
        let signed = candidate.hmac.map(|key| format!(", signed with key {key}")).unwrap_or_default();
        report.encoding = Some(format!("{}{signed}", encoding(candidate)));
        report.exit = candidate.exit_node().map(|name| self.delivery(name, destination));
        let header = candidate.encapsulation.as_ref().map_or(0, srv6::Encapsulation::header_len);
        let header = u32::try_from(header).unwrap_or(u32::MAX);
        report.size = Some(SizeBudget {
            mtu: u32::from(candidate.mtu),
            routing_header: header,
            tunnel_mtu: u32::from(candidate.mtu) + header,
        });
        if policy.candidates.len() > 1 || policy.probe.is_some() {
            let chosen = candidate.number;
            let paths = policy.candidates.iter();
            report.candidates = paths.map(|path| self.candidate_report(policy, path, chosen)).collect();
        }
        let packets = policy.counters.steered.packets.get();
        let state = policy.problem.as_deref().unwrap_or("every stop is reachable");
        report.now = Some(format!("{state}; the policy has taken {packets} packets"));
    }

    fn delivery(&self, exit: &NodeName, destination: IpAddr) -> String {
        let name = self.settings.display_name(exit);
        let route = self.route_to(destination);
        match route.filter(|(_, route)| self.node_of(route.router_id).is_some_and(|node| node.name == *exit))
        {
            Some((prefix, _)) => format!("{name} announces {prefix}"),
            None => format!("{name} takes it from there"),
        }
    }

    fn candidate_report(
        &self,
        policy: &PolicyRuntime,
        candidate: &CandidateRuntime,
        chosen: u8,
    ) -> CandidateReport {
        let in_use = policy.in_use().any(|used| used.number == candidate.number);
        CandidateReport {
            number: candidate.number,
            path: candidate.journey.iter().map(|name| self.settings.display_name(name)).collect(),
            priority: candidate.wanted.priority,
            weight: candidate.wanted.weight,
            state: match (candidate.problem(), in_use) {
                (Some(_), _) => CandidateState::Down,
                (None, true) if candidate.number == chosen => CandidateState::Chosen,
                (None, true) => CandidateState::InUse,
                (None, false) => CandidateState::Standby,
            },
            problem: candidate.problem().map(str::to_owned),
            rtt_ms: candidate.health.rtt().map(|rtt| rtt.as_secs_f64() * 1000.0),
            loss_percent: candidate.health.loss_percent(),
        }
    }

    /// The link and security association that the packet leaves by.
    fn next_link(&self, link: LinkId) -> Option<String> {
        let link = self.links.get(&link)?;
        let remote = link.path?.remote;
        Some(format!("{} at {remote}, SPI {:08x}", link.peer, link.outbound()?.spi()))
    }

    fn explain_route(&self, link: LinkId, destination: IpAddr, report: &mut ExplainReport) {
        let Some((prefix, route)) = self.route_to(destination) else { return };
        let next = self.links.get(&link).map(|link| link.peer.clone()).unwrap_or_default();
        let origin = self.node_of(route.router_id).map(|node| self.display(node));
        report.path.push(next.clone());
        if let Some(origin) = origin {
            report.exit = Some(format!("{origin} announces {prefix}, metric {}", route.metric));
            if origin != next {
                report.path.push(origin);
            }
        }
        let mtu = self.links.get(&link).map_or(0, |link| u32::from(link.mtu));
        report.size = Some(SizeBudget { mtu, routing_header: 0, tunnel_mtu: mtu });
    }

    fn verdict(&self, decision: Decision) -> Verdict {
        match decision {
            Decision::Local | Decision::LocalSid(_) | Decision::Punt => Verdict::Forwarded(Delivery::Local),
            Decision::Link { link, .. } => {
                let node = self.links.get(&link).map(|link| link.peer.clone()).unwrap_or_default();
                Verdict::Forwarded(Delivery::Link { node })
            }
            Decision::Drop(reason) => {
                Verdict::Dropped { reason: reason.name().to_owned(), text: reason.explanation().to_owned() }
            }
        }
    }
}

/// How a candidate's stops are written into packets.
fn encoding(candidate: &CandidateRuntime) -> &'static str {
    match (candidate.compressed, candidate.segments.len()) {
        (true, 1) => "compressed: all stops in one address, no routing header",
        (true, _) => "compressed: several stops in each segment",
        (false, 1) if candidate.hmac.is_some() => "routing header with one segment",
        (false, 1) => "one stop, no routing header",
        (false, _) => "routing header, the first segment in the destination only",
    }
}

/// The flow that a description means.
fn flow_key(flow: &FlowDescription) -> Result<FlowKey, String> {
    if flow.source.is_ipv4() != flow.destination.is_ipv4() {
        return Err("source and destination are of two address families".to_owned());
    }
    let ports = match (flow.source_port, flow.destination_port) {
        (None, None) => None,
        (source, destination) => Some((source.unwrap_or(0), destination.unwrap_or(0))),
    };
    let protocol = match flow.protocol.as_deref() {
        None if ports.is_some() => protocol::TCP,
        None | Some("icmp") if flow.source.is_ipv4() => protocol::ICMP,
        None | Some("icmp" | "icmpv6") => protocol::ICMPV6,
        Some("tcp") => protocol::TCP,
        Some("udp") => protocol::UDP,
        Some(number) => {
            number.parse().map_err(|_| format!("`{number}` is no protocol: tcp, udp, icmp or a number"))?
        }
    };
    let ports = ports.or_else(|| protocol::has_ports(protocol).then_some((0, 0)));
    Ok(FlowKey {
        source: flow.source,
        destination: flow.destination,
        protocol,
        ports,
        dscp: 0,
        fragment: false,
    })
}
