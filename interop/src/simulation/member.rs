//! A node with everything that a host gives it.

use super::blueprint::Blueprint;
use super::{NodeId, random_seed, roster};
use arc_swap::ArcSwap;
use ikev2::Ed25519Signer;
use srv6::hmac::HmacKey;
use std::sync::Arc;
use std::time::{Duration, Instant};
use viamesh::config::credentials::Credentials;
use viamesh::config::settings::Settings;
use viamesh::control::Reply;
use viamesh::forwarding::{Forwarding, Offload};
use viamesh::node::{ClientId, Node, NodeEvent, Startup};
use viamesh::runtime::memory::{Application, MemoryTun, MemoryUdp, Wire};
use viamesh::runtime::{Ready, Snapshot, Worker};

/// A node, whether it runs or not.
pub(super) struct Member {
    pub(super) blueprint: Blueprint,
    id: NodeId,
    seed: u64,
    pub(super) running: Option<Running>,
    /// How often it was started.
    incarnation: u64,
    /// What is left on its disk: Babel's sequence number.
    pub(super) seqno: Option<u16>,
    /// When it wants to be woken.
    pub(super) wake: Option<Instant>,
}

impl Member {
    pub(super) fn new(blueprint: Blueprint, seed: u64, id: NodeId) -> Self {
        Self { blueprint, id, seed, running: None, incarnation: 0, seqno: None, wake: None }
    }

    /// Starts it anew. Nothing but its key, its files and its sequence number is as it was before.
    pub(super) fn boot(&mut self, settings: Settings, now: Instant) {
        self.incarnation += 1;
        let startup = Startup {
            signer: Box::new(Ed25519Signer::from_seed(&roster::private_key(self.seed, self.id))),
            credentials: Credentials::default(),
            wall_clock: None,
            seed: random_seed::octets(self.seed, "node", [self.id.0 as u64, self.incarnation]),
            seqno: self.seqno,
            keylog: false,
            // There are no files here: a name serves as the secret that would stand in one.
            hmac_keys: settings
                .hmac_keys
                .iter()
                .filter_map(|key| HmacKey::new(key.id, key.file.as_os_str().as_encoded_bytes()).ok())
                .collect(),
        };
        match Node::new(settings, startup, now) {
            Ok(node) => self.running = Some(Running::new(node, self.id, now)),
            Err(problem) => panic!("{} does not start: {problem}", self.blueprint.name),
        }
    }
}

/// A running node: control plane, data plane, and what is between them.
pub(super) struct Running {
    pub(super) node: Node,
    pub(super) worker: Worker<MemoryTun, MemoryUdp>,
    snapshot: Snapshot,
    sockets: Vec<MemoryUdp>,
    pub(super) application: Application,
    /// Control messages that the ring had no room for.
    pub(super) overflow: u64,
}

/// What came out of a turn of the worker.
#[derive(Default)]
pub(super) struct Emitted {
    pub(super) worked: bool,
    pub(super) trains: Vec<(Wire, Vec<u8>)>,
    /// Frames for applications, virtio header first.
    pub(super) frames: Vec<Vec<u8>>,
}

/// What came out of a turn of the control plane.
#[derive(Default)]
pub(super) struct Said {
    pub(super) busy: bool,
    pub(super) events: Vec<NodeEvent>,
    pub(super) replies: Vec<(ClientId, Reply)>,
}

impl Running {
    fn new(node: Node, id: NodeId, now: Instant) -> Self {
        let snapshot: Snapshot = Arc::new(ArcSwap::from_pointee(Forwarding::empty(node.epoch())));
        let bind = |(_, spec): (viamesh::forwarding::SocketIndex, &viamesh::node::SocketSpec)| {
            MemoryUdp::new(roster::socket_address(id, spec.family, spec.port))
        };
        let sockets: Vec<MemoryUdp> = node.sockets().iter().map(bind).collect();
        let tun = MemoryTun::new(Offload { tcp: true, udp: true });
        let application = tun.application();
        let worker = Worker::new(tun, sockets.clone(), &snapshot, now);
        Self { node, worker, snapshot, sockets, application, overflow: 0 }
    }

    /// Puts a datagram into the socket that it is for; `false` if there is none.
    pub(super) fn receive(&self, wire: Wire, contents: &[u8]) -> bool {
        let socket = self.sockets.iter().find(|socket| {
            use viamesh::runtime::UdpTransport;
            socket.local_address() == wire.destination
        });
        if let Some(socket) = socket {
            socket.inject(wire, contents);
        }
        socket.is_some()
    }

    /// The snapshot in force.
    pub(super) fn forwarding(&self) -> Arc<Forwarding> {
        self.snapshot.load_full()
    }

    /// One turn of the data path.
    pub(super) fn turn(&mut self, now: Instant) -> Emitted {
        let turned = self.worker.turn(Ready::ALL, now, Duration::ZERO);
        let trains = self.sockets.iter().flat_map(|socket| std::iter::from_fn(|| socket.take_sent()));
        let trains = trains.collect();
        let frames = std::iter::from_fn(|| self.application.receive()).collect();
        Emitted { worked: turned.worked || turned.more, trains, frames }
    }

    /// One turn of the control plane, in the order of the daemon's control loop: what was handed up, what is due,
    /// then everything that the node says, the snapshot first.
    pub(super) fn control(&mut self, now: Instant) -> Said {
        let mut said = Said::default();
        let rings = Arc::clone(self.worker.rings());
        while let Some(punt) = rings.authenticated.pop() {
            said.busy = true;
            self.node.handle_punt(punt, now);
        }
        while let Some(stranger) = rings.stranger.pop() {
            said.busy = true;
            self.node.handle_stranger(&stranger, now);
        }
        if self.node.poll_timeout().is_some_and(|(at, _)| at <= now) {
            said.busy = true;
            self.node.handle_timeout(now);
        }
        self.drain(&mut said);
        said
    }

    fn drain(&mut self, said: &mut Said) {
        if let Some(forwarding) = self.node.take_forwarding() {
            self.snapshot.store(forwarding);
        }
        // The simulated host has no kernel: what it is asked for is done.
        if self.node.take_kernel_state().is_some() {
            self.node.kernel_applied(u64::MAX);
        }
        while let Some(down) = self.node.poll_down() {
            said.busy = true;
            if self.worker.rings().down.push(down).is_err() {
                self.overflow += 1;
            }
        }
        said.replies.extend(std::iter::from_fn(|| self.node.poll_reply()));
        said.events.extend(std::iter::from_fn(|| self.node.poll_event()));
    }
}
