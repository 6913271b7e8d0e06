//! Metrics for Prometheus and its like: the same reports that the commands print, as series.
//!
//! Labels are names of the registry, of policies and of our own enumerations: none is an address, and none can be
//! chosen by a stranger.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::control::report::{AssociationsReport, CountersReport, PolicyState, StatusReport};

/// How a scrape is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// What Prometheus asks for today.
    OpenMetrics,
    /// The older text, for collectors that do not.
    Prometheus,
}

impl Dialect {
    /// By the `Accept` header of a request.
    pub fn accepted(header: &str) -> Self {
        if header.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What a scrape shows.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Nodes, links, policies, problems, drops.
    pub status: StatusReport,
    /// IKE and ESP.
    pub associations: AssociationsReport,
    /// What happened so far.
    pub counters: CountersReport,
}

/// The text of an observation.
///
/// # Errors
/// Never: writing to a `String` does not fail.
pub fn render(observation: Observation, dialect: Dialect) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("viamesh");
    registry.register_collector(Box::new(observation));
    let mut text = String::new();
    match dialect {
        Dialect::OpenMetrics => text::encode(&mut text, &registry)?,
        Dialect::Prometheus => prometheus_text::encode(&mut text, &registry)?,
    }
    Ok(text)
}

type Labels = Vec<(&'static str, String)>;

/// A family whose series are `(labels, value)`.
fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    series: impl IntoIterator<Item = (Labels, f64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in series {
        labelled(&mut family, &labels, |metric| metric.encode_gauge(&value))?;
    }
    Ok(())
}

/// The same for counters; the encoder appends `_total`.
fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    series: impl IntoIterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for (labels, value) in series {
        labelled(&mut family, &labels, |metric| metric.encode_counter::<NoLabelSet, _, f64>(&value, None))?;
    }
    Ok(())
}

fn labelled(
    family: &mut MetricEncoder<'_>,
    labels: &Labels,
    write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() { write(family) } else { write(&mut family.encode_family(labels)?) }
}

fn one(name: &'static str, value: impl Into<String>) -> Labels {
    vec![(name, value.into())]
}

impl Collector for Observation {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        self.daemon(encoder)?;
        self.peers(encoder)?;
        self.links(encoder)?;
        self.policies(encoder)?;
        self.security(encoder)?;
        self.events(encoder)
    }
}

impl Observation {
    fn daemon(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.status;
        let labels = vec![("version", status.version.clone()), ("node", status.node.clone())];
        gauges(encoder, "build_info", "The daemon's version and name, always 1", None, [(labels, 1.0)])?;
        let up = whole(status.uptime_seconds);
        gauges(encoder, "uptime", "Time since the daemon started", Some(&Unit::Seconds), [(Vec::new(), up)])?;
        let mut severities: BTreeMap<String, f64> =
            ["notice", "warning", "error"].map(|severity| (severity.to_owned(), 0.0)).into();
        for problem in &status.problems {
            *severities.entry(problem.severity.to_string()).or_default() += 1.0;
        }
        let series = severities.into_iter().map(|(severity, number)| (one("severity", severity), number));
        gauges(encoder, "health_messages", "Problems that the daemon knows of now", None, series)?;
        let problems = status.problems.iter().map(|problem| {
            // Only nodes and policies have names of a bounded kind.
            let named = problem.code.starts_with("peer/") || problem.code.starts_with("policy/");
            let labels = vec![
                ("code", problem.code.clone()),
                ("subject", if named { problem.subject.clone() } else { String::new() }),
                ("severity", problem.severity.to_string()),
            ];
            (labels, 1.0)
        });
        // The same code and subject may be reported twice; a series must be unique.
        let unique: BTreeMap<Labels, f64> = problems.collect();
        gauges(encoder, "problem", "Each problem by its stable code, 1 while it lasts", None, unique)?;
        let drops = status.drops.iter().map(|(reason, packets)| (one("reason", reason), *packets));
        counters(encoder, "dropped_packets", "Packets discarded, by reason", None, drops)
    }

    fn peers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let nodes = &self.status.nodes;
        let mut states: BTreeMap<String, f64> =
            ["up", "connecting", "down"].map(|state| (state.to_owned(), 0.0)).into();
        for node in nodes {
            *states.entry(node.state.to_string()).or_default() += 1.0;
        }
        let series = states.into_iter().map(|(state, number)| (one("state", state), number));
        gauges(encoder, "peers", "Other nodes of the registry, by state", None, series)?;
        let rtt = nodes.iter().filter_map(|node| Some((one("peer", &node.node), seconds(node.rtt_ms?))));
        let help = "Round trip to the node by the selected way";
        gauges(encoder, "peer_rtt", help, Some(&Unit::Seconds), rtt)?;
        let received = nodes.iter().filter_map(|node| Some((one("peer", &node.node), node.received_bytes?)));
        let help = "Inner packets received on the links with the node";
        counters(encoder, "peer_received", help, Some(&Unit::Bytes), received)?;
        let sent = nodes.iter().filter_map(|node| Some((one("peer", &node.node), node.sent_bytes?)));
        let help = "Inner packets sent on the links with the node";
        counters(encoder, "peer_sent", help, Some(&Unit::Bytes), sent)
    }

    fn links(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let links = || {
            self.status.nodes.iter().flat_map(|node| {
                node.links.iter().map(|link| {
                    let name = format!("{} > {}", link.local_endpoint, link.remote_endpoint);
                    (vec![("peer", node.node.clone()), ("link", name)], link)
                })
            })
        };
        let up = links().map(|(labels, link)| (labels, truth(link.state.is_up())));
        gauges(encoder, "link_up", "Whether the link has a security association that sends", None, up)?;
        let rtt = links().filter_map(|(labels, link)| Some((labels, seconds(link.rtt_ms?))));
        gauges(encoder, "link_rtt", "Smoothed round trip of the link", Some(&Unit::Seconds), rtt)?;
        let loss = links().filter_map(|(labels, link)| Some((labels, link.loss_percent? / 100.0)));
        gauges(encoder, "link_loss", "Share of lost Hellos", Some(&Unit::Ratios), loss)
    }

    fn policies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let policies = &self.status.policies;
        let name = |policy: &str| one("policy", policy);
        let up = policies.iter().map(|policy| (name(&policy.policy), truth(policy.state == PolicyState::Up)));
        gauges(encoder, "policy_up", "Whether traffic takes the way that the policy names", None, up)?;
        let packets = policies.iter().map(|policy| (name(&policy.policy), policy.packets));
        counters(encoder, "policy_packets", "Packets sent along the policy's way", None, packets)?;
        let dropped = policies.iter().map(|policy| (name(&policy.policy), policy.dropped));
        let help = "Packets dropped because a stop was unreachable";
        counters(encoder, "policy_dropped_packets", help, None, dropped)
    }

    fn security(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut states: BTreeMap<(&'static str, &str), f64> = BTreeMap::new();
        let mut replayed: BTreeMap<&str, u64> = BTreeMap::new();
        let mut forged: BTreeMap<&str, u64> = BTreeMap::new();
        for ike in &self.associations.associations {
            *states.entry(("ike", &ike.state)).or_default() += 1.0;
            for child in &ike.children {
                *states.entry(("child", &child.state)).or_default() += 1.0;
                *replayed.entry(&ike.node).or_default() += child.replayed_packets;
                *forged.entry(&ike.node).or_default() += child.integrity_failures;
            }
        }
        let series = states.into_iter().map(|((kind, state), number)| {
            (vec![("kind", kind.to_owned()), ("state", state.to_owned())], number)
        });
        gauges(encoder, "associations", "Security associations, by kind and state", None, series)?;
        let help = "Packets that were received before, on the present security associations";
        let series = replayed.into_iter().map(|(peer, number)| (one("peer", peer), whole(number)));
        gauges(encoder, "replayed_packets", help, None, series)?;
        let help = "Packets whose integrity check failed, on the present security associations";
        let series = forged.into_iter().map(|(peer, number)| (one("peer", peer), whole(number)));
        gauges(encoder, "forged_packets", help, None, series)
    }

    fn events(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counted = &self.counters;
        let changes = [(Vec::new(), counted.route_changes)];
        counters(encoder, "route_changes", "Changes of the best way to a prefix", None, changes)?;
        let rekeys = counted
            .rekeys
            .iter()
            .map(|(kind, number)| (vec![("kind", kind.clone()), ("result", "done".to_owned())], *number));
        counters(encoder, "rekeys", "Security associations that were replaced", None, rekeys)?;
        let failures = counted.dial_failures.iter().map(|(reason, number)| (one("reason", reason), *number));
        counters(encoder, "ike_failures", "Dials that failed, by reason", None, failures)?;
        let refused = [(Vec::new(), counted.refused_messages)];
        counters(
            encoder,
            "refused_messages",
            "Messages of strangers and peers that were refused",
            None,
            refused,
        )?;
        let delay = &counted.loop_delay;
        let bounds = delay.bounds_seconds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(delay.counts.iter().copied()).collect();
        let help = "By how much the control loop woke too late";
        encoder
            .encode_descriptor("event_loop_delay", help, Some(&Unit::Seconds), MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(delay.sum_seconds, delay.counts.iter().sum(), &buckets, None)
    }
}

/// Milliseconds as seconds, to the microsecond.
fn seconds(milliseconds: f64) -> f64 {
    (milliseconds * 1000.0).round() / 1e6
}

fn truth(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn whole(value: u64) -> f64 {
    value as f64
}
