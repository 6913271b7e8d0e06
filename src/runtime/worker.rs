//! One worker: its TUN queues, the sockets, and the data path between them, driven turn by turn.

use super::clock::stamped;
use super::device::{TunDevice, UdpTransport};
use super::port::Port;
use crate::forwarding::{Forwarding, Pipeline, Received, Rings, SocketIndex, Turn, WorkerCounters, virtio};
use crate::policy::Class;
use arc_swap::{ArcSwap, Cache};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads per side and turn: neither side can starve the other, or the control plane.
const READS: usize = 8;

/// Messages from the control plane per turn.
const CONTROL: usize = 64;

/// The longest frame or receive.
const LONGEST: usize = 65_536;

/// The published snapshot, shared by the control plane and all workers.
pub type Snapshot = Arc<ArcSwap<Forwarding>>;

/// Which descriptors have something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The TUNs, by class; bit 0 is that of packets without class.
    pub tuns: u32,
    /// The sockets, by index; those from 64 on are always tried.
    pub sockets: u64,
}

impl Ready {
    /// Nobody knows: try all.
    pub const ALL: Ready = Ready { tuns: u32::MAX, sockets: u64::MAX };
    /// Only the control plane's ring.
    pub const NONE: Ready = Ready { tuns: 0, sockets: 0 };

    fn tun(self, class: Class) -> bool {
        1_u32.checked_shl(u32::from(class.0)).is_some_and(|bit| self.tuns & bit != 0)
    }

    fn socket(self, index: usize) -> bool {
        index >= 64 || self.sockets & (1 << index) != 0
    }
}

/// What a turn has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turned {
    /// Something was moved.
    pub worked: bool,
    /// There is more: a limit ended the turn, not the lack of work.
    pub more: bool,
    /// Full sockets that hold trains back, by index (those from 63 on share the last bit): come
    /// again when one of them is writable. Until then the TUN is not read.
    pub full: u64,
    /// TUNs, by class, that could not be read: leave them alone for a while.
    pub tuns_failed: u32,
    /// Something was handed to the control plane.
    pub punted: bool,
}

/// The worker.
pub struct Worker<T, U> {
    tun: T,
    /// The TUNs of the classes from 1 on.
    class_tuns: Vec<Option<T>>,
    sockets: Vec<Option<U>>,
    pipeline: Pipeline,
    snapshot: Cache<Snapshot, Arc<Forwarding>>,
    rings: Arc<Rings>,
    buffer: Box<[u8]>,
    frame: Box<[u8]>,
    batch: Vec<Received>,
}

impl<T: TunDevice, U: UdpTransport> Worker<T, U> {
    /// A worker over one TUN queue and the sockets in the order of their [`SocketIndex`].
    pub fn new(tun: T, sockets: Vec<U>, snapshot: &Snapshot, now: Instant) -> Self {
        let counters = Arc::new(WorkerCounters::default());
        Worker {
            pipeline: Pipeline::new(tun.offload(), counters, now),
            tun,
            class_tuns: Vec::new(),
            sockets: sockets.into_iter().map(Some).collect(),
            snapshot: Cache::new(Arc::clone(snapshot)),
            rings: Arc::new(Rings::default()),
            buffer: vec![0; 2 * LONGEST].into_boxed_slice(),
            frame: vec![0; virtio::HEADER_LEN + LONGEST].into_boxed_slice(),
            batch: Vec::with_capacity(READS * 4),
        }
    }

    /// The rings to the control plane.
    pub fn rings(&self) -> &Arc<Rings> {
        &self.rings
    }

    /// What this worker has done.
    pub fn counters(&self) -> &Arc<WorkerCounters> {
        self.pipeline.counters()
    }

    /// The TUN of a class, if there is one. Packets that have none come from a TUN that is always there, and all that
    /// is delivered goes to it.
    pub fn tun(&self, class: Class) -> Option<&T> {
        match class.index().checked_sub(1) {
            None => Some(&self.tun),
            Some(index) => self.class_tuns.get(index)?.as_ref(),
        }
    }

    /// The classes that have a TUN.
    pub fn classes(&self) -> impl Iterator<Item = Class> + use<T, U> {
        let most = u8::try_from(self.class_tuns.len()).unwrap_or(u8::MAX);
        let there = self.class_tuns.iter().enumerate();
        let there = there.fold(1_u32, |bits, (at, tun)| bits | u32::from(tun.is_some()) << (at + 1));
        (0..=most).map(Class).filter(move |class| there >> class.0 & 1 == 1)
    }

    /// Adds, replaces or removes the TUN of a class; that of packets without class stays.
    pub fn set_tun(&mut self, class: Class, tun: Option<T>) {
        let Some(index) = class.index().checked_sub(1).filter(|index| *index < Class::MOST) else { return };
        if self.class_tuns.len() <= index {
            self.class_tuns.resize_with(index + 1, || None);
        }
        self.class_tuns[index] = tun;
    }

    /// The sockets by index; `None` where one was removed.
    pub fn sockets(&self) -> &[Option<U>] {
        &self.sockets
    }

    /// Adds, replaces or removes the socket of this index.
    pub fn set_socket(&mut self, index: SocketIndex, socket: Option<U>) {
        let index = usize::from(index.0);
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, || None);
        }
        self.sockets[index] = socket;
    }

    /// One turn: the control plane first, then what the sockets received, then the TUN.
    ///
    /// `wall` is the wall clock of the same moment as `now`; only needed where datagrams carry
    /// the kernel's stamps.
    pub fn turn(&mut self, ready: Ready, now: Instant, wall: Duration) -> Turned {
        let forwarding = Arc::clone(self.snapshot.load());
        let counters = Arc::clone(self.pipeline.counters());
        let mut work = Work { worked: false, more: false, punted: false, tuns_failed: 0 };
        let mut stage = Stage {
            tun: &mut self.tun,
            class_tuns: &mut self.class_tuns,
            sockets: &mut self.sockets,
            pipeline: &mut self.pipeline,
            rings: &self.rings,
            counters: &counters,
            forwarding: &forwarding,
            now,
        };
        stage.control(&mut work);
        stage.sockets(ready, wall, &mut self.buffer, &mut self.batch, &mut work);
        stage.tuns(ready, &mut self.frame, &mut work);
        let full = stage.pipeline.waits_for().fold(0, |full, socket| full | 1 << socket.0.min(63));
        let Work { worked, more, punted, tuns_failed } = work;
        Turned { worked, more, full, tuns_failed, punted }
    }
}

struct Work {
    worked: bool,
    more: bool,
    punted: bool,
    tuns_failed: u32,
}

/// The parts of a worker, borrowed for one turn.
struct Stage<'a, T, U> {
    tun: &'a mut T,
    class_tuns: &'a mut Vec<Option<T>>,
    sockets: &'a mut Vec<Option<U>>,
    pipeline: &'a mut Pipeline,
    rings: &'a Rings,
    counters: &'a WorkerCounters,
    forwarding: &'a Forwarding,
    now: Instant,
}

impl<T: TunDevice, U: UdpTransport> Stage<'_, T, U> {
    /// Runs one step of the pipeline with the way out at hand.
    fn step(&mut self, work: &mut Work, step: impl FnOnce(&mut Pipeline, &mut Turn<'_, Port<'_, T, U>>)) {
        let mut port = Port {
            tun: self.tun,
            sockets: self.sockets,
            rings: self.rings,
            counters: self.counters,
            forwarding: self.forwarding,
            now_millis: self.forwarding.millis(self.now),
            punted: false,
            too_big_reported: false,
        };
        let mut turn = Turn { forwarding: self.forwarding, now: self.now, egress: &mut port };
        step(self.pipeline, &mut turn);
        work.punted |= port.punted;
    }

    /// The down ring, and what a socket had refused before.
    fn control(&mut self, work: &mut Work) {
        if self.pipeline.is_blocked() {
            self.step(work, |pipeline, turn| pipeline.finish(turn));
        }
        let mut count = 0;
        while count < CONTROL
            && let Some(down) = self.rings.down.pop()
        {
            self.step(work, |pipeline, turn| pipeline.from_control(turn, down));
            count += 1;
        }
        if count > 0 {
            self.step(work, |pipeline, turn| pipeline.finish(turn));
            work.worked = true;
            work.more |= count == CONTROL;
        }
    }

    fn sockets(
        &mut self,
        ready: Ready,
        wall: Duration,
        buffer: &mut [u8],
        batch: &mut Vec<Received>,
        work: &mut Work,
    ) {
        let mut used = 0;
        for index in 0..self.sockets.len() {
            if !ready.socket(index) {
                continue;
            }
            for read in 0..READS {
                if used + LONGEST > buffer.len() {
                    self.process(&mut buffer[..used], batch, work);
                    used = 0;
                }
                let Some(received) = self.receive(index, &mut buffer[used..], used, wall) else { break };
                used = received.range.end;
                batch.push(received);
                work.more |= read + 1 == READS;
            }
        }
        self.process(&mut buffer[..used], batch, work);
    }

    fn process(&mut self, buffer: &mut [u8], batch: &mut Vec<Received>, work: &mut Work) {
        if !batch.is_empty() {
            work.worked = true;
            self.step(work, |pipeline, turn| pipeline.receive(turn, buffer, batch));
            batch.clear();
        }
    }

    /// One receive. Errors are somebody else's ICMP or pass by themselves: none of them ends the loop.
    fn receive(&mut self, index: usize, space: &mut [u8], start: usize, wall: Duration) -> Option<Received> {
        let socket = self.sockets.get_mut(index)?.as_mut()?;
        for _ in 0..READS {
            let before = socket.overflow();
            let result = socket.receive(space);
            self.counters.receive_overflow.add(socket.overflow() - before);
            match result {
                Ok(datagrams) => {
                    let bound = socket.local_address();
                    self.counters.receives.add(1);
                    return Some(Received {
                        range: start..start + datagrams.len,
                        segment: datagrams.segment.max(1),
                        socket: SocketIndex(u16::try_from(index).unwrap_or(u16::MAX)),
                        local: SocketAddr::new(datagrams.local.unwrap_or(bound.ip()), bound.port()),
                        remote: datagrams.remote,
                        ecn: datagrams.ecn,
                        arrival: stamped(datagrams.stamp, wall, self.now),
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => self.counters.receive_errors.add(1),
            }
        }
        None
    }

    /// All TUNs, each with its own reads: a busy class cannot starve the others.
    fn tuns(&mut self, ready: Ready, frame: &mut [u8], work: &mut Work) {
        for index in 0..=self.class_tuns.len() {
            let class = Class(u8::try_from(index).unwrap_or(u8::MAX));
            if ready.tun(class) && !self.pipeline.is_blocked() {
                self.tun(class, frame, work);
            }
        }
    }

    fn read(&mut self, class: Class, frame: &mut [u8]) -> std::io::Result<usize> {
        let tun = match class.index().checked_sub(1) {
            None => Some(&mut *self.tun),
            Some(index) => self.class_tuns.get_mut(index).and_then(Option::as_mut),
        };
        tun.map_or(Err(ErrorKind::WouldBlock.into()), |tun| tun.read(frame))
    }

    fn tun(&mut self, class: Class, frame: &mut [u8], work: &mut Work) {
        let mut reads = 0;
        while reads < READS && !self.pipeline.is_blocked() {
            match self.read(class, frame) {
                Ok(len) => {
                    self.step(work, |pipeline, turn| pipeline.from_tun(turn, class, &frame[..len]));
                    reads += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.counters.receive_errors.add(1);
                    work.tuns_failed |= 1 << class.0;
                    break;
                }
            }
        }
        if reads > 0 {
            self.step(work, |pipeline, turn| pipeline.finish(turn));
            work.worked = true;
            work.more |= reads == READS;
        }
    }
}
