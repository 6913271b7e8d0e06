//! `ping` and `trace`: probes that take the data path's own decisions, and their answers.

mod echo;
mod ping;
mod sid_echo;
mod trace;

use super::Node;
use super::name::node_address;
use super::policy_candidate::{exit_segment, waypoint};
use super::policy_health::PathPlace;
use crate::control::report::FlowDescription;
use crate::control::{Reply, Request};
use crate::forwarding::{Decision, Down, LinkId, Steered};
use echo::{Answer, Outcome};
use ping::PingSession;
use srv6::{Encapsulation, FlowSummary};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use trace::TraceSession;

/// A connection to the control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// Probes under way at once, over all clients.
const MAX_IN_FLIGHT: usize = 4096;

/// Hop limit of probes that shall arrive.
const FULL_HOP_LIMIT: u8 = 64;

/// How a probe is sent.
#[derive(Debug, Clone)]
pub(crate) struct ProbeRoute {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// The envelope of a policy or a hand-written path; without one the probe is routed like any packet.
    pub(super) envelope: Option<Encapsulation>,
    /// Whether the destination is a segment, which applications may not address.
    pub(super) segment: bool,
    /// The link that an envelope leaves by, where its first stop must be a neighbour.
    pub(super) link: Option<LinkId>,
}

impl ProbeRoute {
    /// The message to the workers that sends one probe whose outermost header has this hop limit.
    fn probe(&self, identifier: u16, sequence: u16, hop_limit: u8) -> Option<Down> {
        let Some(envelope) = &self.envelope else {
            let packet = echo::request(self.source, self.destination, identifier, sequence, hop_limit)?;
            return Some(if self.segment { Down::Originate { packet } } else { Down::Inject { packet } });
        };
        let inner = echo::request(self.source, self.destination, identifier, sequence, FULL_HOP_LIMIT)?;
        let summary = FlowSummary::parse(&inner).ok()?;
        let mut packet = vec![0; envelope.header_len()];
        envelope.write(&mut packet, &summary, inner.len()).ok()?;
        *packet.get_mut(HOP_LIMIT_OFFSET)? = hop_limit;
        packet.extend_from_slice(&inner);
        Some(match self.link {
            Some(link) => Down::Control { link, packet },
            None => Down::Originate { packet },
        })
    }
}

/// Where the hop limit stands in an IPv6 header (RFC 8200 §3).
const HOP_LIMIT_OFFSET: usize = 7;

struct InFlight {
    asker: Asker,
    /// Number inside the session: sequence of a ping, hop of a trace.
    number: u32,
    sent: Instant,
    deadline: Instant,
}

/// Who wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Client(ClientId),
    /// The policies, for the health of this path.
    Path(PathPlace),
}

enum Session {
    Ping(PingSession),
    Trace(TraceSession),
}

/// An answer, or the lack of one, as a session sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    number: u32,
    /// Who answered, with what, after how long; `None` if nobody did in time.
    answer: Option<(IpAddr, Outcome, Duration)>,
}

/// All sessions.
pub(crate) struct Probes {
    identifier: u16,
    next_sequence: u16,
    in_flight: BTreeMap<u16, InFlight>,
    sessions: BTreeMap<ClientId, Session>,
    replies: VecDeque<(ClientId, Reply)>,
    /// Round-trip times on policies' paths; `None` for lost probes.
    path_results: VecDeque<(PathPlace, Option<Duration>)>,
}

impl Probes {
    pub(crate) fn new(identifier: u16) -> Self {
        Self {
            identifier,
            next_sequence: 0,
            in_flight: BTreeMap::new(),
            sessions: BTreeMap::new(),
            replies: VecDeque::new(),
            path_results: VecDeque::new(),
        }
    }

    /// The echo identifier by which the data path knows our probes, while there are any.
    pub(crate) fn identifier(&self) -> u16 {
        self.identifier
    }

    pub(crate) fn poll_reply(&mut self) -> Option<(ClientId, Reply)> {
        self.replies.pop_front()
    }

    pub(crate) fn forget(&mut self, client: ClientId) {
        self.sessions.remove(&client);
        self.in_flight.retain(|_, probe| probe.asker != Asker::Client(client));
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.in_flight.values().map(|probe| probe.deadline);
        let sending = self.sessions.values().filter_map(|session| match session {
            Session::Ping(ping) => ping.next_send(),
            Session::Trace(trace) => trace.next_send(),
        });
        waiting.chain(sending).min()
    }

    /// The next result of a probe on a policy's path.
    /// The policies' paths have other places now: answers to what is under way would go to the wrong ones.
    pub(super) fn forget_paths(&mut self) {
        self.in_flight.retain(|_, probe| !matches!(probe.asker, Asker::Path(_)));
        self.path_results.clear();
    }

    pub(super) fn poll_path_result(&mut self) -> Option<(PathPlace, Option<Duration>)> {
        self.path_results.pop_front()
    }

    /// A probe on a policy's path.
    pub(super) fn launch_on_path(
        &mut self,
        place: PathPlace,
        route: &ProbeRoute,
        timeout: Duration,
        now: Instant,
    ) -> Option<Down> {
        let order = ProbeOrder { route: route.clone(), number: 0, hop_limit: FULL_HOP_LIMIT, timeout };
        self.launch(Asker::Path(place), &order, now)
    }

    fn launch(&mut self, asker: Asker, order: &ProbeOrder, now: Instant) -> Option<Down> {
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return None;
        }
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        let down = order.route.probe(self.identifier, sequence, order.hop_limit)?;
        let probe = InFlight { asker, number: order.number, sent: now, deadline: now + order.timeout };
        self.in_flight.insert(sequence, probe);
        Some(down)
    }

    fn hand_out(&mut self, asker: Asker, sample: Sample) {
        let client = match asker {
            Asker::Client(client) => client,
            Asker::Path(place) => {
                // Whatever else answers on the way, the exit did not.
                let reply = sample.answer.filter(|(_, outcome, _)| *outcome == Outcome::Reply);
                self.path_results.push_back((place, reply.map(|(_, _, rtt)| rtt)));
                return;
            }
        };
        match self.sessions.get_mut(&client) {
            Some(Session::Ping(ping)) => ping.take(sample),
            Some(Session::Trace(trace)) => trace.take(sample),
            None => {}
        }
    }

    fn receive(&mut self, answer: Answer, arrival: Instant) {
        if answer.identifier != self.identifier {
            return;
        }
        let Some(probe) = self.in_flight.remove(&answer.sequence) else { return };
        let rtt = arrival.saturating_duration_since(probe.sent);
        let sample = Sample { number: probe.number, answer: Some((answer.from, answer.outcome, rtt)) };
        self.hand_out(probe.asker, sample);
    }

    fn expire(&mut self, now: Instant) {
        let late: Vec<u16> =
            self.in_flight.iter().filter(|(_, probe)| probe.deadline <= now).map(|(key, _)| *key).collect();
        for sequence in late {
            if let Some(probe) = self.in_flight.remove(&sequence) {
                self.hand_out(probe.asker, Sample { number: probe.number, answer: None });
            }
        }
    }
}

/// One probe that a session wants sent.
pub(crate) struct ProbeOrder {
    route: ProbeRoute,
    number: u32,
    hop_limit: u8,
    timeout: Duration,
}

impl Node {
    pub(super) fn handle_probe_reply(&mut self, packet: &[u8], arrival: Instant) {
        if let Some(answer) = echo::answer(packet) {
            self.probes.receive(answer, arrival);
            self.take_path_results();
        }
    }

    /// Send what is due, give up what is late, and finish sessions that have all they wanted.
    pub(super) fn send_due_probes(&mut self, now: Instant) {
        self.probes.expire(now);
        self.take_path_results();
        self.send_path_probes(now);
        let clients: Vec<ClientId> = self.probes.sessions.keys().copied().collect();
        for client in clients {
            while let Some(order) = self.next_order(client, now) {
                if let Some(down) = self.probes.launch(Asker::Client(client), &order, now) {
                    self.down.push_back(down);
                } else {
                    self.probes
                        .hand_out(Asker::Client(client), Sample { number: order.number, answer: None });
                }
            }
            self.finish_session(client);
        }
    }

    fn next_order(&mut self, client: ClientId, now: Instant) -> Option<ProbeOrder> {
        match self.probes.sessions.get_mut(&client)? {
            Session::Ping(ping) => ping.order(now),
            Session::Trace(trace) => trace.order(),
        }
    }

    fn finish_session(&mut self, client: ClientId) {
        let finished = match self.probes.sessions.get(&client) {
            Some(Session::Ping(ping)) => ping.is_finished(),
            Some(Session::Trace(trace)) => trace.is_finished(),
            None => false,
        };
        if !finished {
            return;
        }
        let reply = match self.probes.sessions.remove(&client) {
            Some(Session::Ping(ping)) => Reply::Ping(ping.into_report()),
            Some(Session::Trace(trace)) => {
                let report =
                    trace.into_report(|address| self.node_at(address).map(|node| self.display(node)));
                Reply::Trace(report)
            }
            None => return,
        };
        self.probes.replies.push_back((client, reply));
    }

    /// Begin a session. An error is a sentence for the user.
    pub(super) fn start_probes(
        &mut self,
        client: ClientId,
        request: &Request,
        now: Instant,
    ) -> Result<(), String> {
        let session = match request {
            Request::Ping { node, via, count, interval_ms, timeout_ms } => {
                let route = self.ping_route(node, via)?;
                let interval = Duration::from_millis(u64::from(*interval_ms).max(1));
                let timeout = Duration::from_millis(u64::from(*timeout_ms).max(1));
                Session::Ping(PingSession::new(node, via, route, *count, interval, timeout, now))
            }
            Request::Trace { flow, count, timeout_ms } => {
                let timeout = Duration::from_millis(u64::from(*timeout_ms).max(1));
                Session::Trace(self.trace_session(flow, *count, timeout)?)
            }
            _ => return Err("this is no probe".to_owned()),
        };
        self.probes.forget(client);
        self.probes.sessions.insert(client, session);
        self.send_due_probes(now);
        Ok(())
    }

    /// By the routes, like any packet of this node.
    pub(super) fn route_towards(&self, destination: IpAddr) -> ProbeRoute {
        let segment = self.forwarding.sids.contains(destination);
        let source = self.probe_source(destination);
        ProbeRoute { source, destination, envelope: None, segment, link: None }
    }

    fn ping_route(&self, target: &str, via: &[String]) -> Result<ProbeRoute, String> {
        if let Ok(destination) = target.parse::<IpAddr>() {
            if !via.is_empty() {
                return Err("with --via the destination must be a node".to_owned());
            }
            if self.forwarding.locals.lookup(destination).is_some() {
                return Err(format!("{destination} is this node's own address"));
            }
            return Ok(self.route_towards(destination));
        }
        let node = self.find_node(target)?;
        if node.name == self.settings.name && via.is_empty() {
            return Err(format!("`{target}` is this node: `--via` takes a journey that comes back to it"));
        }
        let destination =
            node_address(node).ok_or_else(|| format!("`{target}` has no address in the mesh"))?;
        let mut stops = Vec::new();
        for name in via {
            let stop = self.find_node(name)?;
            stops.push(waypoint(stop).ok_or_else(|| format!("`{name}` cannot be a waypoint"))?);
        }
        let envelope = if stops.is_empty() {
            None
        } else {
            stops.push(exit_segment(node, false).ok_or_else(|| format!("`{target}` is no exit"))?);
            Some(self.envelope(&stops, None)?)
        };
        let destination = IpAddr::V6(destination);
        Ok(ProbeRoute { envelope, ..self.route_towards(destination) })
    }

    fn trace_session(
        &self,
        flow: &FlowDescription,
        count: u32,
        timeout: Duration,
    ) -> Result<TraceSession, String> {
        let mut flow = flow.clone();
        if flow.source.is_unspecified() {
            flow.source = self.probe_source_towards(flow.destination);
        }
        let (decision, _) = self.decide(&flow)?;
        let Decision::Link { policy, .. } = decision else {
            return Err(match decision {
                Decision::Drop(reason) => {
                    format!("the packet would be dropped here: {}", reason.explanation())
                }
                _ => format!("{} is on this host or in a network behind it", flow.destination),
            });
        };
        let route = ProbeRoute { source: flow.source, ..self.route_towards(flow.destination) };
        match policy {
            None => Ok(TraceSession::new(flow.destination, None, Vec::new(), route, count, timeout)),
            Some(steered) => self.policy_trace(steered, &flow, route, count, timeout),
        }
    }

    /// A trace of a policy's journey: its own envelope, with the exit node itself as the inner destination, so
    /// that the last stop answers whatever host is behind it.
    fn policy_trace(
        &self,
        steered: Steered,
        flow: &FlowDescription,
        mut route: ProbeRoute,
        count: u32,
        timeout: Duration,
    ) -> Result<TraceSession, String> {
        let (policy, candidate) = self.steered(steered).ok_or("the policy is gone")?;
        route.envelope.clone_from(&candidate.encapsulation);
        route.link = candidate.link;
        let exit = candidate.exit_node().and_then(|name| self.settings.node(name));
        if let Some(address) = exit.and_then(node_address) {
            route.destination = IpAddr::V6(address);
            route.source = self.probe_source(route.destination);
        }
        let journey = candidate.journey.iter().map(|name| self.settings.display_name(name)).collect();
        Ok(TraceSession::new(flow.destination, Some(policy.name.clone()), journey, route, count, timeout))
    }

    /// This node's own address.
    pub(super) fn own_address(&self) -> Option<std::net::Ipv6Addr> {
        srv6::Locator::new(self.settings.locator).ok().map(|locator| locator.node_address())
    }

    /// An address of this node in the family of `destination`.
    pub(super) fn probe_source(&self, destination: IpAddr) -> IpAddr {
        let own = match destination {
            IpAddr::V6(_) => self.own_address().map(IpAddr::V6),
            IpAddr::V4(_) => self.settings.addresses.iter().copied().find(IpAddr::is_ipv4),
        };
        own.or_else(|| self.announced_address(destination))
            .unwrap_or_else(|| echo::unspecified_like(destination))
    }

    /// The source that most likely shows what users of this node get: one that a policy towards
    /// `destination` matches, else one of this node.
    fn probe_source_towards(&self, destination: IpAddr) -> IpAddr {
        let policy = self
            .settings
            .policies
            .iter()
            .find(|policy| policy.to.iter().any(|network| network.contains(&destination)));
        let own = self.probe_source(destination);
        let Some(policy) = policy else { return own };
        if policy.from.iter().any(|network| network.contains(&own)) {
            return own;
        }
        let networks = policy.from.iter().filter(|network| network.addr().is_ipv4() == destination.is_ipv4());
        networks.map(first_host).next().unwrap_or(own)
    }

    /// A host address of a network behind this node. Answers to it pass this node, which takes them.
    fn announced_address(&self, like: IpAddr) -> Option<IpAddr> {
        self.settings
            .announce
            .iter()
            .find(|network| network.addr().is_ipv4() == like.is_ipv4())
            .map(first_host)
    }
}

/// The first usable address of a network.
fn first_host(network: &ipnet::IpNet) -> IpAddr {
    network.hosts().next().unwrap_or_else(|| network.addr())
}
