//! The control plane of a node as one state machine: IKEv2, Babel and the policies put together.
//!
//! Pure: no socket, clock, thread or system randomness. A driver (`runtime::control_loop`, or a simulation)
//!
//! 1. feeds what arrives: [`Node::handle_stranger`], [`Node::handle_punt`], [`Node::handle_request`],
//!    [`Node::resolved`], and [`Node::handle_timeout`] when [`Node::poll_timeout`] said so;
//! 2. then drains what came out: [`Node::poll_down`] (to the workers), [`Node::take_forwarding`] (swap it),
//!    [`Node::take_kernel_state`] (apply it), [`Node::poll_reply`], [`Node::poll_event`] (log it),
//!    [`Node::poll_resolve`] (names to look up).

mod babel_packet;
mod event;
mod introduction;
mod kernel_progress;
mod kernel_state;
mod link;
mod link_local;
mod link_table;
mod name;
mod path_mtu;
mod policy_candidate;
mod policy_health;
mod policy_paths;
mod probes;
mod publish;
mod reconfigure;
mod redistribution;
mod reports;
mod routing;
mod security;
mod sockets;

pub use event::{Level, NodeEvent};
pub use kernel_state::claim;
pub use link::{LinkKey, RemoteAddress};
pub use probes::ClientId;
pub use reconfigure::Reconfiguration;
pub use sockets::{SocketPlan, SocketSpec};

use crate::config::credentials::Credentials;
use crate::config::settings::{Family, Settings};
use crate::control::{Reply, Request};
use crate::forwarding::{Down, Forwarding, Heard, LinkId, Punt, Stranger};
use crate::kernel::KernelState;
use crate::policy::{ClassTable, SteeringTable};
use crate::telemetry::Health;
use ikev2::Signer;
use ipnet::IpNet;
use kernel_progress::KernelProgress;
use link::Link;
use policy_paths::PolicyRuntime;
use probes::Probes;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use routing::SelectedRoute;
use srv6::hmac::{HmacKey, HmacKeys};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the node looks at what the data path counted: proof of life, first packets on new SAs.
const OBSERVATION_INTERVAL: Duration = Duration::from_millis(50);

/// How often metrics are read again: Babel tells only when a route takes another way.
const METRIC_INTERVAL: Duration = Duration::from_secs(1);

/// How often the same trouble is told.
const TROUBLE_INTERVAL: Duration = Duration::from_secs(60);

/// What a node starts with besides its settings.
pub struct Startup {
    /// Signs for the node.
    pub signer: Box<dyn Signer>,
    /// Certificate and shared keys.
    pub credentials: Credentials,
    /// By which certificates of peers are judged; without it none is accepted.
    pub wall_clock: Option<ikev2::WallClock>,
    /// All randomness of the node comes from this.
    pub seed: [u8; 32],
    /// Babel's sequence number of the last run, if it was kept.
    pub seqno: Option<u16>,
    /// Whether key material is emitted for packet analysers.
    pub keylog: bool,
    /// Keys of signed segment lists.
    pub hmac_keys: Vec<HmacKey>,
}

/// A node's control plane.
pub struct Node {
    settings: Settings,
    epoch: Instant,
    sockets: SocketPlan,
    shared_keys: link_table::SharedKeys,
    ike: ikev2::Endpoint,
    babel: babel::Router,
    links: BTreeMap<LinkId, Link>,
    /// Numbers of links that are gone, and since when.
    resting: Vec<(LinkId, Instant)>,
    /// Babel's selected routes.
    routes: BTreeMap<IpNet, SelectedRoute>,
    /// Prefixes whose routes are lost and not yet forgotten: packets for them are refused, not sent elsewhere.
    held: BTreeSet<IpNet>,
    policies: Vec<PolicyRuntime>,
    /// Keys of signed segment lists.
    hmac_keys: HmacKeys,
    /// Classes of traffic that have a TUN of their own.
    classes: ClassTable,
    /// The policies as the data path classifies by them.
    steering: SteeringTable,
    probes: Probes,
    introductions: introduction::Introductions,
    /// What this node announces, and what the host feeds it.
    announcements: redistribution::Announcements,
    forwarding: Arc<Forwarding>,
    generation: u64,
    forwarding_changed: bool,
    kernel_changed: bool,
    kernel_progress: KernelProgress,
    next_observation: Option<Instant>,
    next_metrics: Instant,
    /// Health of what the driver cares for: kernel, sockets, disk.
    host_health: Vec<Health>,
    started: Instant,
    down: VecDeque<Down>,
    events: VecDeque<NodeEvent>,
    resolve: VecDeque<(LinkId, String, u16)>,
    scratch: Vec<u8>,
    /// Troubles that were told, and when: each once a minute.
    told: BTreeMap<String, Instant>,
    stopping: bool,
}

impl Node {
    /// A node that begins to dial at once.
    ///
    /// # Errors
    /// In words, if Babel refuses the configuration.
    pub fn new(settings: Settings, startup: Startup, now: Instant) -> Result<Self, String> {
        let mut rng = ChaCha20Rng::from_seed(startup.seed);
        let sockets = SocketPlan::new(&settings);
        let mut ike_config = ikev2::Config::new(startup.signer);
        security::configure(&mut ike_config, &settings, startup.keylog);
        ike_config.certificate = startup.credentials.certificate;
        ike_config.wall_clock = startup.wall_clock;
        let ike = ikev2::Endpoint::new(ike_config, child_rng(&mut rng));
        let babel = routing::new_router(&settings, startup.seqno, child_rng(&mut rng), now)?;
        let classes = reconfigure::classes(&settings, &ClassTable::default());
        let probe_identifier = (rng.next_u32() >> 16) as u16;
        let mut node = Self {
            epoch: now,
            sockets,
            shared_keys: startup.credentials.shared_keys,
            ike,
            babel,
            links: BTreeMap::new(),
            resting: Vec::new(),
            routes: BTreeMap::new(),
            held: BTreeSet::new(),
            policies: policy_paths::compile(&settings),
            hmac_keys: HmacKeys::new(startup.hmac_keys),
            steering: SteeringTable::compile(&publish::rules(&settings, &classes)),
            classes,
            probes: Probes::new(probe_identifier),
            introductions: introduction::Introductions::default(),
            announcements: redistribution::Announcements::default(),
            forwarding: Arc::new(Forwarding::empty(now)),
            generation: 0,
            forwarding_changed: true,
            kernel_changed: true,
            kernel_progress: KernelProgress::default(),
            next_observation: None,
            next_metrics: now,
            host_health: Vec::new(),
            started: now,
            down: VecDeque::new(),
            events: VecDeque::new(),
            resolve: VecDeque::new(),
            scratch: Vec::new(),
            told: BTreeMap::new(),
            stopping: false,
            settings,
        };
        node.create_links(now);
        node.announcements.stale = true;
        node.refresh_announcements(now);
        // To be kept from the first moment: peers refuse routes that begin anew with another number.
        node.events.push_back(NodeEvent::Seqno(node.babel.seqno().0));
        node.pump(now);
        Ok(node)
    }

    /// What the node runs on.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The sockets that the driver must open, in this order.
    pub fn sockets(&self) -> &SocketPlan {
        &self.sockets
    }

    /// The classes of traffic that the driver must open a TUN for.
    pub fn classes(&self) -> &ClassTable {
        &self.classes
    }

    /// Whether a link runs over IPv4.
    pub fn is_ip4(&self, link: LinkId) -> bool {
        self.links.get(&link).is_none_or(|link| link.family == Family::Ip4)
    }

    /// The instant from which all milliseconds of the data path count.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// An IKE message from anybody, or ESP that nothing here opens.
    pub fn handle_stranger(&mut self, stranger: &Stranger, now: Instant) {
        let path = ikev2::Path { local: stranger.local, remote: stranger.remote };
        match &stranger.heard {
            Heard::Ike(message) => self.ike.handle_datagram(path, message, now),
            Heard::UnknownSpi(spi) => self.ike.unknown_esp_spi(path, *spi, now),
        }
        self.pump(now);
    }

    /// Something that a worker hands up and a security association vouches for.
    pub fn handle_punt(&mut self, punt: Punt, now: Instant) {
        match punt {
            Punt::Packet { link, packet, arrival } => self.handle_packet(link, &packet, arrival, now),
            Punt::PeerMoved { link, socket, local, remote, .. } => {
                self.handle_peer_moved(link, socket, local, remote, now);
            }
            Punt::DatagramTooBig { link, datagram } => self.handle_datagram_too_big(link, datagram, now),
            Punt::SegmentationFailed { link, errno } => {
                let what =
                    format!("segmentation offload failed (error {errno}): single datagrams for a while");
                self.trouble(link, &what, now);
            }
            Punt::SequenceExhausted { link } => self.handle_sequence_exhausted(link, now),
        }
        self.pump(now);
    }

    /// The result of a name look-up asked for by [`Self::poll_resolve`].
    pub fn resolved(&mut self, link: LinkId, address: Option<SocketAddr>, now: Instant) {
        self.ike.readdress(ikev2::ConnectionId(link.0), address, now);
        if address.is_some() && self.links.get(&link).is_some_and(|link| link.ike.is_empty()) {
            // Only a connection that was removed in the meantime refuses.
            let _ = self.ike.dial(ikev2::ConnectionId(link.0), now);
        }
        self.pump(now);
    }

    /// Health messages of the driver, shown with the node's own.
    pub fn set_host_health(&mut self, health: Vec<Health>) {
        self.host_health = health;
    }

    /// A question from the control socket. Answered at once, or by [`Self::poll_reply`] when probes are done.
    pub fn handle_request(&mut self, client: ClientId, request: &Request, now: Instant) -> Option<Reply> {
        let reply = self.answer(client, request, now);
        self.pump(now);
        reply
    }

    /// A client went away: stop probing for it.
    pub fn forget_client(&mut self, client: ClientId) {
        self.probes.forget(client);
    }

    /// The deadline of [`Self::poll_timeout`] passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_observation.is_some_and(|at| at <= now) {
            self.observe_data_path(now);
            self.next_observation = Some(now + OBSERVATION_INTERVAL);
            if self.next_metrics <= now {
                self.next_metrics = now + METRIC_INTERVAL;
                self.refresh_metrics(now);
                self.search_old_path_mtus(now);
            }
        }
        self.ike.handle_timeout(now);
        self.babel.handle_timeout(now);
        self.send_due_probes(now);
        self.handle_introduction_timeout(now);
        self.pump(now);
    }

    /// When [`Self::handle_timeout`] wants to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let observation = self.next_observation.map(|at| (at, "observe the data path"));
        let probes = self.probes.next_deadline().map(|at| (at, "probe"));
        let paths = self.next_path_probe().map(|at| (at, "probe a policy's path"));
        let introductions = self.introductions.next_deadline().map(|at| (at, "introduction"));
        [self.ike.poll_timeout(), self.babel.poll_timeout(), observation, probes, paths, introductions]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    /// The next message for the workers.
    pub fn poll_down(&mut self) -> Option<Down> {
        self.down.pop_front()
    }

    /// The next answer to a request that took its time.
    pub fn poll_reply(&mut self) -> Option<(ClientId, Reply)> {
        self.probes.poll_reply()
    }

    /// The next event for the log.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        self.events.pop_front()
    }

    /// The next name to look up, with the link that it is for and the port.
    pub fn poll_resolve(&mut self) -> Option<(LinkId, String, u16)> {
        self.resolve.pop_front()
    }

    /// A new snapshot for the workers, if anything changed.
    pub fn take_forwarding(&mut self) -> Option<Arc<Forwarding>> {
        if !std::mem::take(&mut self.forwarding_changed) {
            return None;
        }
        self.generation += 1;
        self.forwarding = Arc::new(self.build_forwarding());
        Some(Arc::clone(&self.forwarding))
    }

    /// The kernel state that the node wants, if it changed.
    pub fn take_kernel_state(&mut self) -> Option<KernelState> {
        if !std::mem::take(&mut self.kernel_changed) {
            return None;
        }
        self.kernel_progress.asked(self.routes.keys().copied());
        Some(self.build_kernel_state())
    }

    /// The kernel has come to the state that [`Self::take_kernel_state`] gave out as the `serial`th, counted from 1.
    pub fn kernel_applied(&mut self, serial: u64) {
        self.kernel_progress.applied(serial);
    }

    /// Whether no SA is left, after [`Self::shutdown`].
    pub fn is_silent(&self) -> bool {
        self.ike.associations().is_empty()
    }

    /// Say goodbye to all peers; drain once more, then drop the node.
    pub fn shutdown(&mut self, now: Instant) {
        self.stopping = true;
        self.babel.shutdown(now);
        self.drain_babel(now);
        self.ike.shutdown(now);
        self.pump(now);
    }

    /// Let the parts talk to each other until none has anything to say.
    fn pump(&mut self, now: Instant) {
        loop {
            let ike = self.drain_ike(now);
            let babel = self.drain_babel(now);
            let announcements = self.refresh_announcements(now);
            if !ike && !babel && !announcements {
                break;
            }
        }
        if self.forwarding_changed {
            self.update_policies();
            self.tell_policies(now);
        }
    }

    fn create_links(&mut self, now: Instant) {
        let mut numbers = (0..).map(LinkId);
        let plan = link_table::LinkPlan::new(&self.settings, &self.sockets, &self.shared_keys, |_| {
            numbers.next().unwrap_or(LinkId(u32::MAX))
        });
        for text in plan.refused {
            self.events.push_back(NodeEvent::Trouble { text });
        }
        for planned in plan.links {
            self.add_link(planned, now);
        }
    }

    /// Tell of a trouble with a link that the data path meets, packet after packet, once a minute.
    fn trouble(&mut self, link: LinkId, what: &str, now: Instant) {
        let peer = self.links.get(&link).map_or("a removed link", |link| link.peer.as_str());
        let text = format!("{peer}: {what}");
        self.told.retain(|_, at| now.saturating_duration_since(*at) < TROUBLE_INTERVAL);
        if !self.told.contains_key(&text) {
            self.told.insert(text.clone(), now);
            self.events.push_back(NodeEvent::Trouble { text });
        }
    }
}

fn child_rng(parent: &mut ChaCha20Rng) -> ChaCha20Rng {
    let mut seed = [0; 32];
    parent.fill_bytes(&mut seed);
    ChaCha20Rng::from_seed(seed)
}
