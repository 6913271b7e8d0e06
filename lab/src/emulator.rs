//! The thread that moves the frames of one segment between its TAP devices, each at its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;

use crate::error::{Result, Trying};
use crate::fabric::Fabric;
use crate::frame::VIRTIO_LENGTH;
use crate::punctual::{come_first, wake_up_precisely};
use crate::spawner::lock;
use crate::tap::Tap;

/// The longest frame: an IPv6 packet of 64 KiB with headers.
const LONGEST_FRAME: usize = VIRTIO_LENGTH + 14 + 40 + 65_535;
/// Frames read from one station before the others have their turn.
const READS_PER_TURN: usize = 16;
/// Bytes under way in a segment; more are dropped as if a queue were full.
const BYTES_UNDER_WAY: usize = 256 << 20;

/// The emulator of a segment; dropping it stops the thread and removes the devices.
#[derive(Debug)]
pub(crate) struct Emulator {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    fabric: Mutex<Fabric>,
    /// Devices that the thread has not taken over yet, in the order of their stations.
    arrivals: Mutex<Vec<Tap>>,
    stop: AtomicBool,
    wake: EventFd,
}

impl Emulator {
    /// Starts the thread, without stations.
    pub(crate) fn start(name: &str, fabric: Fabric) -> Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = EventFd::from_flags(flags).trying(|| "creating an event descriptor".into())?;
        let shared = Arc::new(Shared {
            fabric: Mutex::new(fabric),
            arrivals: Mutex::default(),
            stop: AtomicBool::new(false),
            wake,
        });
        let mover = Mover::new(shared.clone());
        let thread = std::thread::Builder::new().name(format!("link {name}")).spawn(move || mover.run());
        let thread = Some(thread.trying(|| "starting a thread".into())?);
        Ok(Self { shared, thread })
    }

    /// Adds a station and its device.
    pub(crate) fn attach(&self, name: &str, mac: [u8; 6], tap: Tap) -> Result<()> {
        let mut fabric = lock(&self.shared.fabric);
        fabric.add_station(name, mac)?;
        lock(&self.shared.arrivals).push(tap);
        drop(fabric);
        self.shared.wake();
        Ok(())
    }

    /// Looks at or changes what the thread decides by; it waits meanwhile.
    pub(crate) fn with_fabric<T>(&self, work: impl FnOnce(&mut Fabric) -> T) -> T {
        work(&mut lock(&self.shared.fabric))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn wake(&self) {
        // Can fail only by overflow, and then the thread is awake anyhow.
        let _ = self.wake.write(1);
    }
}

/// A frame under way. Ordered by time, then by the order of sending.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    due: Instant,
    order: u64,
    to: usize,
    frame: Vec<u8>,
}

/// The thread's own state.
struct Mover {
    shared: Arc<Shared>,
    ports: Vec<Tap>,
    under_way: UnderWay,
    buffer: Vec<u8>,
}

#[derive(Default)]
struct UnderWay {
    heap: BinaryHeap<Reverse<Pending>>,
    bytes: usize,
    order: u64,
}

impl Mover {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, ports: Vec::new(), under_way: UnderWay::default(), buffer: vec![0; LONGEST_FRAME] }
    }

    fn run(mut self) {
        wake_up_precisely();
        come_first();
        while !self.shared.stop.load(Ordering::Acquire) {
            self.welcome();
            self.deliver_due();
            let ready = self.wait();
            for port in ready {
                self.forward_from(port);
                self.deliver_due();
            }
        }
    }

    /// Takes over the devices of new stations.
    fn welcome(&mut self) {
        self.ports.append(&mut lock(&self.shared.arrivals));
    }

    /// Hands over all frames whose time has come.
    fn deliver_due(&mut self) {
        while let Some(pending) = self.under_way.take_due(Instant::now()) {
            hand_over(&self.ports, pending.to, &pending.frame);
        }
    }

    /// Sleeps until a frame is due, a station sends, or somebody wakes us; says which stations have frames.
    fn wait(&self) -> Vec<usize> {
        let timeout = self.under_way.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        let own = PollFd::new(self.shared.wake.as_fd(), PollFlags::POLLIN);
        let ports = self.ports.iter().map(|tap| PollFd::new(tap.as_fd(), PollFlags::POLLIN));
        let mut fds: Vec<_> = std::iter::once(own).chain(ports).collect();
        match ppoll(&mut fds, timeout.map(TimeSpec::from_duration), None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Vec::new(),
            // Nothing that polling can say: don't spin.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        let is_ready =
            |fd: &PollFd<'_>| fd.revents().is_some_and(|events| events.contains(PollFlags::POLLIN));
        if fds.first().is_some_and(is_ready) {
            let _ = self.shared.wake.read();
        }
        fds.iter().skip(1).enumerate().filter(|(_, fd)| is_ready(fd)).map(|(port, _)| port).collect()
    }

    /// Reads what a station sent and decides about each frame.
    fn forward_from(&mut self, port: usize) {
        // Stations come while the lock is held: whoever the fabric may choose from here on has its port.
        let shared = self.shared.clone();
        let mut fabric = lock(&shared.fabric);
        self.welcome();
        for _ in 0..READS_PER_TURN {
            let Some(tap) = self.ports.get(port) else { break };
            // A device that is down answers with an error: there is nothing to read then either.
            let Ok(Some(length)) = tap.receive(&mut self.buffer) else { break };
            let raw = self.buffer.get(..length).unwrap_or_default();
            let now = Instant::now();
            let (ports, under_way) = (&self.ports, &mut self.under_way);
            fabric.forward(port, raw, now, &mut |to, at, frame| {
                if at <= now {
                    hand_over(ports, to, frame);
                    return true;
                }
                under_way.add(to, at, frame)
            });
        }
        fabric.flush_captures();
    }
}

impl UnderWay {
    fn add(&mut self, to: usize, due: Instant, frame: &[u8]) -> bool {
        if self.bytes + frame.len() > BYTES_UNDER_WAY {
            return false;
        }
        self.bytes += frame.len();
        self.order += 1;
        self.heap.push(Reverse(Pending { due, order: self.order, to, frame: frame.to_vec() }));
        true
    }

    fn next_due(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(pending)| pending.due)
    }

    fn take_due(&mut self, now: Instant) -> Option<Pending> {
        self.next_due().filter(|due| *due <= now)?;
        let Reverse(pending) = self.heap.pop()?;
        self.bytes -= pending.frame.len();
        Some(pending)
    }
}

/// A device refuses frames while it is down, as a real one would lose them.
fn hand_over(ports: &[Tap], to: usize, frame: &[u8]) {
    if let Some(tap) = ports.get(to) {
        let _ = tap.send(frame);
    }
}
