//! `explain`: the data path's own decision, in words.

use crate::control::report::{
    Delivery, ExplainReport, FORMAT, FlowDescription, RuleVerdict, SizeBudget, Verdict,
};
use crate::forwarding::{Decision, Forwarding, LinkId, Origin, decide};
use crate::node::{Node, PolicyRuntime};
use crate::policy::PolicyIndex;
use srv6::ip::{FlowKey, protocol};
use std::net::IpAddr;
use std::time::Instant;

impl Node {
    /// What the data path does with a packet from an application of this host or its LAN. Asks the very
    /// function that the workers call.
    pub(in crate::node) fn decide(&self, flow: &FlowDescription) -> Result<(Decision, FlowKey), String> {
        let key = flow_key(flow)?;
        if !self.forwarding_changed {
            return Ok((decide(&self.forwarding, &key, Origin::Tun), key));
        }
        // The published snapshot is older than what has arrived in this turn.
        let forwarding: Forwarding = self.build_forwarding();
        Ok((decide(&forwarding, &key, Origin::Tun), key))
    }

    pub(in crate::node) fn explain(
        &self,
        flow: &FlowDescription,
        _now: Instant,
    ) -> Result<ExplainReport, String> {
        let (decision, key) = self.decide(flow)?;
        let policy = match decision {
            Decision::Link { policy: Some(index), .. } => self.policies.get(usize::from(index.0)),
            _ => None,
        };
        let mut report = ExplainReport {
            format: FORMAT,
            flow: flow.clone(),
            rules: self.rule_verdicts(&key),
            path: vec![self.settings.display_name(&self.settings.name)],
            segments: Vec::new(),
            exit: None,
            size: None,
            now: None,
            verdict: self.verdict(decision),
        };
        if let Decision::Link { link, .. } = decision {
            match policy {
                Some(policy) => self.explain_policy(policy, flow.destination, &mut report),
                None => self.explain_route(link, flow.destination, &mut report),
            }
        }
        Ok(report)
    }

    fn rule_verdicts(&self, key: &FlowKey) -> Vec<RuleVerdict> {
        let verdicts = self.steering.explain(key).into_iter();
        verdicts
            .filter_map(|(index, outcome)| {
                let policy = self.settings.policies.get(usize::from(index.0))?;
                Some(RuleVerdict {
                    matched: outcome.is_match(),
                    policy: policy.name.clone(),
                    position: format!("node.yaml:{}", policy.line),
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

    fn explain_policy(&self, policy: &PolicyRuntime, destination: IpAddr, report: &mut ExplainReport) {
        report.path.extend(policy.journey.iter().map(|name| self.settings.display_name(name)));
        report.segments.clone_from(&policy.segments);
        report.exit = policy.exit_node().map(|name| {
            let exit = self.settings.display_name(name);
            match self.route_to(destination) {
                Some((prefix, route))
                    if self.node_of(route.router_id).is_some_and(|node| node.name == *name) =>
                {
                    format!("{exit} announces {prefix}")
                }
                _ => format!("{exit} takes it from there"),
            }
        });
        let header = policy.encapsulation.as_ref().map_or(0, srv6::Encapsulation::header_len);
        let header = u32::try_from(header).unwrap_or(u32::MAX);
        report.size = Some(SizeBudget {
            mtu: u32::from(policy.mtu),
            routing_header: header,
            tunnel_mtu: u32::from(policy.mtu) + header,
        });
        report.now = Some(match &policy.problem {
            None => "every stop is reachable".to_owned(),
            Some(problem) => problem.clone(),
        });
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
