//! The `babel` core on real sockets: a router for Babel alone, without tunnels.
//!
//! Each interface has two sockets, as the destination is part of what a MAC covers: one that hears the group, and one
//! at the interface's link-local address, which sends.

use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use babel::{
    InterfaceConfig, InterfaceId, MULTICAST_GROUP, MacKey, NeighbourReport, PORT, Prefix, RouteReport, Router,
};
use lab::{Host, LabError};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// How late a thread notices that it shall end.
const NAP: Duration = Duration::from_millis(100);
/// The longest packet.
const LONGEST: usize = 65_536;

/// An interface to speak on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeakerInterface {
    /// The kernel's index.
    pub index: u32,
    /// Our link-local address there.
    pub local: Ipv6Addr,
}

/// What a speaker is told.
#[derive(Debug, Clone)]
pub struct SpeakerSetup {
    /// Router-id, cost map and the like.
    pub config: babel::Config,
    /// Where to speak.
    pub interfaces: Vec<SpeakerInterface>,
    /// Keys of all interfaces; none: no authentication.
    pub keys: Vec<MacKey>,
    /// All randomness follows from it.
    pub seed: u64,
}

/// A running router; dropped, it is gone without a word, as after a crash.
pub struct BabelSpeaker {
    router: Arc<Mutex<Router>>,
    arrivals: Sender<Option<Arrival>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

struct Arrival {
    interface: InterfaceId,
    source: Ipv6Addr,
    multicast: bool,
    payload: Vec<u8>,
    at: Instant,
}

impl BabelSpeaker {
    /// Starts a router in a host. It announces nothing yet.
    ///
    /// # Errors
    /// When the kernel refuses a socket, or the core its configuration.
    pub fn start(host: &Host, setup: &SpeakerSetup) -> lab::Result<Self> {
        let misuse = |error: &dyn std::fmt::Display| LabError::Misuse(error.to_string());
        let now = Instant::now();
        let rng = ChaCha20Rng::seed_from_u64(setup.seed);
        let mut router = Router::new(setup.config.clone(), rng, now).map_err(|error| misuse(&error))?;
        let (arrivals, inbox) = channel();
        let (stop, mut threads, mut senders) = (Arc::new(AtomicBool::new(false)), Vec::new(), Vec::new());
        for interface in &setup.interfaces {
            let id = InterfaceId(interface.index);
            let config = InterfaceConfig {
                hello_interval: Duration::from_secs(1),
                update_interval: Duration::from_secs(4),
                mac_keys: setup.keys.clone(),
                ..InterfaceConfig::new(interface.local)
            };
            router.add_interface(id, config, now);
            let sockets = host.within(|| open(*interface))?;
            let (group, own) = sockets
                .map_err(|source| LabError::System { what: "opening Babel's sockets".into(), source })?;
            let sender = own.try_clone().map_err(|error| misuse(&error))?;
            senders.push((id, sender));
            for (socket, multicast) in [(group, true), (own, false)] {
                let (arrivals, stop) = (arrivals.clone(), Arc::clone(&stop));
                threads.push(host.thread("babel-in", move || {
                    while !stop.load(Ordering::Relaxed) {
                        let arrived = receive(&socket, id, multicast);
                        if arrived.is_some_and(|arrival| arrivals.send(Some(arrival)).is_err()) {
                            return;
                        }
                    }
                })?);
            }
        }
        let router = Arc::new(Mutex::new(router));
        let speaker = Arc::clone(&router);
        threads.push(host.thread("babel", move || run(&speaker, &inbox, &senders))?);
        Ok(Self { router, arrivals, stop, threads })
    }

    /// Originates a prefix.
    pub fn announce(&self, prefix: impl Into<Prefix>) {
        self.with(|router, now| router.announce(prefix.into(), now));
    }

    /// Stops to originate a prefix.
    pub fn withdraw(&self, prefix: impl Into<Prefix>) {
        self.with(|router, now| router.withdraw(prefix.into(), now));
    }

    /// The routes in use.
    pub fn selected(&self) -> Vec<RouteReport> {
        lock(&self.router).selected(Instant::now())
    }

    /// The neighbours.
    pub fn neighbours(&self) -> Vec<NeighbourReport> {
        lock(&self.router).neighbours(Instant::now())
    }

    /// Changes the router, and sends what follows.
    pub fn with<R>(&self, change: impl FnOnce(&mut Router, Instant) -> R) -> R {
        let result = change(&mut lock(&self.router), Instant::now());
        // The loop ends with this handle only.
        let _ = self.arrivals.send(None);
        result
    }

    /// Takes leave of the neighbours, then ends.
    pub fn stop(self) {
        self.with(Router::shutdown);
    }
}

impl Drop for BabelSpeaker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // What was said before is still carried out: the message comes last.
        let _ = self.arrivals.send(None);
        for thread in self.threads.drain(..self.threads.len().saturating_sub(1)) {
            let _ = thread.join();
        }
        let (last, _) = channel();
        self.arrivals = last;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The socket that hears the group, and the one that hears and sends at the interface's own address.
fn open(interface: SpeakerInterface) -> io::Result<(UdpSocket, UdpSocket)> {
    let at = |address| SocketAddrV6::new(address, PORT, 0, interface.index);
    let group = UdpSocket::bind(at(MULTICAST_GROUP))?;
    group.join_multicast_v6(&MULTICAST_GROUP, interface.index)?;
    let own = UdpSocket::bind(at(interface.local))?;
    own.set_multicast_loop_v6(false)?;
    for socket in [&group, &own] {
        socket.set_read_timeout(Some(NAP))?;
    }
    Ok((group, own))
}

/// The next packet; `None` if none came for a while.
fn receive(socket: &UdpSocket, interface: InterfaceId, multicast: bool) -> Option<Arrival> {
    let mut buffer = vec![0; LONGEST];
    let (length, source) = match socket.recv_from(&mut buffer) {
        Ok(received) => received,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return None,
        // A dead link, an ICMP error: none of them ends the socket.
        Err(_) => {
            std::thread::sleep(NAP);
            return None;
        }
    };
    let at = Instant::now();
    let SocketAddr::V6(source) = source else { return None };
    if source.scope_id() != interface.0 || source.port() != PORT {
        return None;
    }
    buffer.truncate(length);
    Some(Arrival { interface, source: *source.ip(), multicast, payload: buffer, at })
}

/// Drives the router until nobody is left who could ask for anything.
fn run(router: &Mutex<Router>, inbox: &Receiver<Option<Arrival>>, senders: &[(InterfaceId, UdpSocket)]) {
    let mut packet = Vec::new();
    loop {
        let deadline = lock(router).poll_timeout().map(|(at, _)| at);
        let wait = deadline.map_or(NAP, |at| at.saturating_duration_since(Instant::now()).min(NAP));
        let mut next = match inbox.recv_timeout(wait) {
            Ok(arrival) => arrival,
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut router = lock(router);
        // Everything that waits is read before a timer may run out.
        loop {
            if let Some(Arrival { interface, source, multicast, payload, at }) = next {
                // What a peer does wrong shows in the routes.
                let _ = router.handle_packet(interface, source, multicast, &payload, at, Instant::now());
            }
            match inbox.try_recv() {
                Ok(arrival) => next = arrival,
                Err(_) => break,
            }
        }
        let now = Instant::now();
        if router.poll_timeout().is_some_and(|(at, _)| at <= now) {
            router.handle_timeout(now);
        }
        while let Some(transmit) = router.poll_transmit(&mut packet, Instant::now()) {
            let sender = senders.iter().find(|(id, _)| *id == transmit.interface);
            if let Some((id, socket)) = sender {
                // A link that is down loses it.
                let _ = socket.send_to(&packet, SocketAddrV6::new(transmit.destination, PORT, 0, id.0));
            }
        }
        while router.poll_event().is_some() {}
    }
}

fn lock(router: &Mutex<Router>) -> MutexGuard<'_, Router> {
    router.lock().unwrap_or_else(PoisonError::into_inner)
}
