//! Drives the node: brings it what happens, and carries out what it says. One task, no lock.

use super::configuration::{Configuration, Loaded};
use super::kernel_task::{HostNews, KernelTask};
use super::key_log::KeyLog;
use super::registry_follower::RegistryFollower;
use super::start_error::StartError;
use super::state_file::SeqnoFile;
use super::{Clock, Snapshot, TunLinux, UdpSocketLinux, WorkerHandle};
use crate::config;
use crate::config::registry_source::{RegistrySource, RemoteRegistry};
use crate::control::{Incoming, Reply, Request, Responder};
use crate::forwarding::{Down, LinkId, SocketIndex};
use crate::kernel::Problem;
use crate::node::{ClientId, Node, NodeEvent};
use crate::policy::Class;
use crate::registry::News;
use crate::telemetry::logging::LogLevel;
use crate::telemetry::{Health, HealthCode, Notifier, Tally, log_event};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};

/// Messages taken from the rings before others get their turn.
const PUNTS_PER_TURN: usize = 256;

/// How long goodbyes may take to leave.
const FAREWELL: Duration = Duration::from_millis(200);

/// How long the peers may take to answer them.
const ANSWERS: Duration = Duration::from_secs(1);

/// A pause between two looks at work that is under way.
const SHORT: Duration = Duration::from_millis(5);

/// The same where a message ends it.
const PAUSE: Duration = Duration::from_millis(50);

/// What a name of a link's peer resolved to.
type Resolved = (LinkId, Option<SocketAddr>);

/// Everything of the host that the loop works with.
pub(super) struct Host {
    pub(super) clock: Clock,
    pub(super) snapshot: Snapshot,
    pub(super) workers: Vec<WorkerHandle<TunLinux, UdpSocketLinux>>,
    pub(super) punted: Arc<Notify>,
    pub(super) kernel: KernelTask,
    pub(super) host_news: mpsc::Receiver<HostNews>,
    pub(super) requests: mpsc::Receiver<Incoming>,
    pub(super) key_log: Option<KeyLog>,
    pub(super) seqno_file: SeqnoFile,
    pub(super) log_level: Option<LogLevel>,
}

/// The loop.
pub(super) struct ControlLoop {
    pub(super) node: Node,
    pub(super) host: Host,
    pub(super) configuration: Configuration,
    loaded: mpsc::Receiver<Loaded>,
    /// Whether to reload again when the present load has ended.
    pub(super) reload_again: bool,
    /// A registry that came during a load.
    pub(super) registry_again: Option<Option<RemoteRegistry>>,
    pub(super) reload_problem: Option<Health>,
    pub(super) registry: RegistryFollower,
    registry_news: mpsc::Receiver<(RegistrySource, News)>,
    /// Sockets that are closed when their time has come.
    pub(super) closing: Vec<(Instant, SocketIndex)>,
    /// TUNs of classes that are gone, and until when they stay open.
    pub(super) closing_tuns: Vec<(Instant, Class)>,
    /// The last state that the kernel was asked for, and the last that it came to.
    pub(super) kernel_wants: u64,
    pub(super) kernel_has: u64,
    /// When the log returns to its usual level.
    pub(super) log_returns: Option<Instant>,
    /// Answers that wait for the kernel to come to a state.
    pub(super) for_kernel: Vec<(u64, Responder, Reply)>,
    /// What was found while sockets and devices were opened.
    notes: Vec<Health>,
    kernel_problems: Vec<Problem>,
    disk_problem: Option<Health>,
    calls: BTreeMap<ClientId, Responder>,
    next_client: u64,
    pub(super) notifier: Notifier,
    tally: Tally,
    told_watchdog: Instant,
    /// Where look-ups send what they found, and where that arrives.
    resolver: mpsc::Sender<Resolved>,
    resolved: mpsc::Receiver<Resolved>,
}

impl ControlLoop {
    pub(super) fn new(node: Node, host: Host, files: config::Request, notes: Vec<Health>) -> Self {
        let (resolver, resolved) = mpsc::channel(64);
        let (registry, registry_news) = RegistryFollower::new();
        let (configuration, loaded) = Configuration::new(files, &node.settings().state_dir);
        Self {
            node,
            host,
            configuration,
            loaded,
            reload_again: false,
            registry_again: None,
            reload_problem: None,
            registry,
            registry_news,
            closing: Vec::new(),
            closing_tuns: Vec::new(),
            kernel_wants: 0,
            kernel_has: 0,
            log_returns: None,
            for_kernel: Vec::new(),
            notes,
            kernel_problems: Vec::new(),
            disk_problem: None,
            calls: BTreeMap::new(),
            next_client: 0,
            notifier: Notifier::from_environment(),
            tally: Tally::default(),
            told_watchdog: Instant::now(),
            resolver,
            resolved,
        }
    }

    /// Run until SIGTERM or SIGINT, then leave nothing behind.
    pub(super) async fn run(mut self) -> Result<(), StartError> {
        let cannot_listen = |error| StartError::new(format!("cannot listen for signals: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot_listen)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot_listen)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(cannot_listen)?;
        self.follow_registry();
        self.update_health();
        self.drain();
        self.notifier.ready("running");
        tracing::info!(node = %self.node.settings().name, "running");
        let outcome = self.serve(&mut terminate, &mut interrupt, &mut hangup).await;
        self.notifier.stopping();
        self.stop().await;
        outcome
    }

    async fn serve(
        &mut self,
        terminate: &mut Signal,
        interrupt: &mut Signal,
        hangup: &mut Signal,
    ) -> Result<(), StartError> {
        loop {
            let wait = self.time_to_wait();
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                _ = hangup.recv() => self.reload_unasked(),
                Some(loaded) = self.loaded.recv() => self.take_loaded(loaded),
                Some((source, news)) = self.registry_news.recv() => self.take_registry_news(&source, news),
                () = self.host.punted.notified() => {}
                () = tokio::time::sleep(wait) => {}
                Some(incoming) = self.host.requests.recv() => self.take_request(incoming),
                Some(news) = self.host.host_news.recv() => self.take_news(news),
                Some((link, address)) = self.resolved.recv() => {
                    self.node.resolved(link, address, self.host.clock.now());
                }
            }
            self.tell_watchdog();
            self.take_punts();
            let now = self.host.clock.now();
            if let Some((at, _)) = self.node.poll_timeout().filter(|(at, _)| *at <= now) {
                self.tally.delay(now.saturating_duration_since(at));
                self.node.handle_timeout(now);
            }
            self.configuration_due(now);
            self.log_due(now);
            self.drain();
            if self.host.workers.iter().any(WorkerHandle::is_finished) {
                return Err(StartError::new("a worker thread of the data path has ended: stopping"));
            }
        }
    }

    fn tell_watchdog(&mut self) {
        let now = Instant::now();
        if self.notifier.watchdog_interval().is_some_and(|interval| now >= self.told_watchdog + interval / 2)
        {
            self.told_watchdog = now;
            self.notifier.alive();
        }
    }

    fn time_to_wait(&self) -> Duration {
        let now = self.host.clock.now();
        let node = self.node.poll_timeout().map(|(at, _)| at);
        let deadline = node.into_iter().chain(self.configuration_deadline()).chain(self.log_returns).min();
        let deadline = deadline.unwrap_or(now + Duration::from_secs(3600));
        let wait = deadline.saturating_duration_since(now);
        self.notifier.watchdog_interval().map_or(wait, |interval| wait.min(interval / 2))
    }

    /// What the workers handed up, authenticated messages first.
    fn take_punts(&mut self) {
        let mut left = false;
        for worker in &self.host.workers {
            let rings = Arc::clone(worker.rings());
            let mut count = 0;
            while count < PUNTS_PER_TURN
                && let Some(punt) = rings.authenticated.pop()
            {
                self.node.handle_punt(punt, self.host.clock.now());
                count += 1;
            }
            while count < PUNTS_PER_TURN
                && let Some(stranger) = rings.stranger.pop()
            {
                self.node.handle_stranger(&stranger, self.host.clock.now());
                count += 1;
            }
            left |= count == PUNTS_PER_TURN;
        }
        if left {
            self.host.punted.notify_one();
        }
    }

    fn take_request(&mut self, incoming: Incoming) {
        if incoming.request.is_change() {
            return self.take_change(incoming.request, incoming.responder);
        }
        if let Request::Log { filter, seconds } = &incoming.request {
            return self.take_log(filter.as_deref(), *seconds, incoming.responder);
        }
        if incoming.request == Request::Counters {
            return incoming.responder.finish(Reply::Counters(self.tally.report()));
        }
        let (node, calls) = (&mut self.node, &mut self.calls);
        calls.retain(|client, responder| {
            if responder.is_cancelled() {
                node.forget_client(*client);
            }
            !responder.is_cancelled()
        });
        self.next_client += 1;
        let client = ClientId(self.next_client);
        match self.node.handle_request(client, &incoming.request, self.host.clock.now()) {
            Some(reply) => incoming.responder.finish(self.with_version(self.with_drops(reply))),
            None => {
                self.calls.insert(client, incoming.responder);
            }
        }
    }

    /// A status tells what the workers have discarded, too.
    fn with_drops(&self, mut reply: Reply) -> Reply {
        if let Reply::Status(report) = &mut reply {
            for worker in &self.host.workers {
                for (reason, packets) in worker.counters().drops.iter() {
                    *report.drops.entry(reason.name().to_owned()).or_default() += packets;
                }
            }
        }
        reply
    }

    fn take_news(&mut self, news: HostNews) {
        match news {
            HostNews::Connected(networks) => {
                self.node.set_connected_networks(networks, self.host.clock.now());
            }
            HostNews::Routes(routes) => self.node.set_host_routes(routes, self.host.clock.now()),
            HostNews::Applied { serial, problems } => {
                self.node.kernel_applied(serial);
                self.take_kernel_serial(serial);
                for problem in problems.iter().filter(|problem| !self.kernel_problems.contains(problem)) {
                    tracing::warn!(target: "viamesh::kernel", "{problem}");
                }
                self.kernel_problems = problems;
                self.update_health();
            }
        }
    }

    pub(super) fn update_health(&mut self) {
        let kernel = self.kernel_problems.iter().map(Problem::health);
        let others =
            [&self.disk_problem, &self.reload_problem, &self.registry.trouble].into_iter().flatten().cloned();
        let others = others.chain(self.trial_note());
        let health = self.notes.iter().cloned().chain(kernel).chain(others);
        self.node.set_host_health(health.collect());
    }

    /// Carry out everything that the node says. The snapshot goes first: what is sent may be answered at once.
    pub(super) fn drain(&mut self) {
        if let Some(forwarding) = self.node.take_forwarding() {
            self.host.snapshot.store(forwarding);
        }
        if let Some(state) = self.node.take_kernel_state() {
            self.kernel_wants = self.host.kernel.want(state);
        }
        let mut sent = false;
        while let Some(down) = self.node.poll_down() {
            sent = true;
            self.send_down(down);
        }
        if sent {
            self.host.workers.iter().for_each(WorkerHandle::wake);
        }
        while let Some((client, reply)) = self.node.poll_reply() {
            if let Some(responder) = self.calls.remove(&client) {
                responder.finish(reply);
            }
        }
        while let Some((link, name, port)) = self.node.poll_resolve() {
            self.look_up(link, name, port);
        }
        while let Some(event) = self.node.poll_event() {
            self.take_event(event);
        }
    }

    /// To the worker that owns what it is about. A full ring loses the message, as a network would.
    fn send_down(&self, down: Down) {
        if let Some(worker) = self.host.workers.first()
            && worker.rings().down.push(down).is_err()
        {
            tracing::debug!("the data path is behind: a control message was dropped");
        }
    }

    fn look_up(&self, link: LinkId, name: String, port: u16) {
        let answer = self.resolver.clone();
        let wants_v4 = self.node.is_ip4(link);
        tokio::spawn(async move {
            let found = tokio::net::lookup_host((name.as_str(), port)).await;
            let address = found.ok().and_then(|mut all| all.find(|address| address.is_ipv4() == wants_v4));
            if address.is_none() {
                tracing::debug!(%name, "the name does not resolve");
            }
            // If the loop has ended nobody needs the answer.
            let _ = answer.send((link, address)).await;
        });
    }

    fn take_event(&mut self, event: NodeEvent) {
        match &event {
            NodeEvent::KeyLog { table, line } => {
                if let Some(log) = &mut self.host.key_log
                    && let Err(error) = log.write(*table, line)
                {
                    tracing::warn!("cannot write the key log: {error}");
                    self.host.key_log = None;
                }
            }
            NodeEvent::Seqno(seqno) => self.keep_seqno(*seqno),
            _ => {}
        }
        self.tally.note(&event);
        log_event(&event);
    }

    fn keep_seqno(&mut self, seqno: u16) {
        let problem = self.host.seqno_file.write(seqno).err().map(|error| {
            let text = format!("cannot write {}: {error}", self.host.seqno_file.path().display());
            let next_step =
                "routes of this node may be refused for minutes after a restart: free space, or set `state_dir`";
            Health::new(HealthCode::DiskState, "", text, next_step)
        });
        if problem != self.disk_problem {
            if let Some(problem) = &problem {
                tracing::warn!("{}", problem.text);
            }
            self.disk_problem = problem;
            self.update_health();
        }
    }

    /// Say goodbye to the peers, then to the kernel. Peers that answer are heard out: their answers would meet a closed
    /// port otherwise.
    async fn stop(mut self) {
        self.node.shutdown(self.host.clock.now());
        self.drain();
        let answered = tokio::time::timeout(ANSWERS, async {
            while !self.node.is_silent() {
                // The node's deadlines are not far away: it repeats what is not answered.
                let _ = tokio::time::timeout(PAUSE, self.host.punted.notified()).await;
                self.take_punts();
                let now = self.host.clock.now();
                if self.node.poll_timeout().is_some_and(|(at, _)| at <= now) {
                    self.node.handle_timeout(now);
                }
                self.drain();
            }
        });
        if answered.await.is_err() {
            tracing::debug!("not all peers answered the farewell");
        }
        let patience = Instant::now() + FAREWELL;
        while Instant::now() < patience
            && self.host.workers.iter().any(|worker| !worker.rings().down.is_empty())
        {
            tokio::time::sleep(SHORT).await;
        }
        for worker in self.host.workers {
            if let Err(error) = worker.stop() {
                tracing::warn!("{error}");
            }
        }
        for problem in self.host.kernel.clean().await {
            tracing::warn!("{problem}");
        }
        tracing::info!("stopped");
    }
}
