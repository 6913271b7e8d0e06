//! The thread of a worker: one epoll over its TUNs, its sockets and an eventfd.

use super::clock::Clock;
use super::device::{TunDevice, UdpTransport};
use super::worker::{Ready, Snapshot, Turned, Worker};
use crate::forwarding::{Down, Forwarding, Rings, SocketIndex, WorkerCounters};
use crate::policy::Class;
use crossbeam_queue::ArrayQueue;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Tokens of the epoll set: sockets have their index, TUNs that of their class from here on.
const TUN: u64 = 1 << 32;
const WAKE: u64 = u64::MAX;

/// Called by a worker when it has handed something up; must not block.
pub type Notify = Arc<dyn Fn() + Send + Sync>;

/// The control plane's side of a running worker.
pub struct WorkerHandle<T, U> {
    shared: Arc<Shared<T, U>>,
    rings: Arc<Rings>,
    counters: Arc<WorkerCounters>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

struct Shared<T, U> {
    wake: EventFd,
    stop: AtomicBool,
    sockets: ArrayQueue<(SocketIndex, Option<U>)>,
    tuns: ArrayQueue<(Class, Option<T>)>,
}

impl<T, U> WorkerHandle<T, U> {
    /// The rings. After pushing to `down`, call [`wake`](Self::wake).
    pub fn rings(&self) -> &Arc<Rings> {
        &self.rings
    }

    /// What the worker has done.
    pub fn counters(&self) -> &Arc<WorkerCounters> {
        &self.counters
    }

    /// Hands a message down and wakes the worker.
    ///
    /// # Errors
    /// The message, if the ring is full.
    pub fn send(&self, down: Down) -> Result<(), Down> {
        self.rings.down.push(down)?;
        self.wake();
        Ok(())
    }

    /// Makes the worker look at its rings. Several calls cost one turn.
    pub fn wake(&self) {
        // It can only fail when the counter is full, and then the worker is awake.
        let _ = self.shared.wake.write(1);
    }

    /// Adds, replaces or removes a socket at run time.
    ///
    /// # Errors
    /// The socket, if too many changes are under way.
    pub fn set_socket(&self, index: SocketIndex, socket: Option<U>) -> Result<(), Option<U>> {
        self.shared.sockets.push((index, socket)).map_err(|(_, socket)| socket)?;
        self.wake();
        Ok(())
    }

    /// Adds, replaces or removes the TUN of a class at run time.
    ///
    /// # Errors
    /// The TUN, if too many changes are under way.
    pub fn set_tun(&self, class: Class, tun: Option<T>) -> Result<(), Option<T>> {
        self.shared.tuns.push((class, tun)).map_err(|(_, tun)| tun)?;
        self.wake();
        Ok(())
    }

    /// Whether the thread has ended, which it does only when asked or when epoll fails.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the thread after its present turn; what is in the down ring is still sent.
    ///
    /// # Errors
    /// Why the thread had ended by itself.
    pub fn stop(mut self) -> io::Result<()> {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the worker panicked")),
        }
    }
}

impl<T, U> Drop for WorkerHandle<T, U> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
    }
}

/// Starts a thread for a worker.
///
/// # Errors
/// If the kernel has no descriptor or thread left.
pub fn start<T, U>(
    name: String,
    tun: T,
    sockets: Vec<U>,
    snapshot: &Snapshot,
    clock: Clock,
    notify: Notify,
) -> io::Result<WorkerHandle<T, U>>
where
    T: TunDevice + AsFd + 'static,
    U: UdpTransport + AsFd + 'static,
{
    let worker = Worker::new(tun, sockets, snapshot, clock.now());
    let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
    let shared = Arc::new(Shared {
        wake,
        stop: AtomicBool::new(false),
        sockets: ArrayQueue::new(64),
        tuns: ArrayQueue::new(2 * Class::MOST),
    });
    let (rings, counters) = (Arc::clone(worker.rings()), Arc::clone(worker.counters()));
    let mut event_loop = EventLoop::new(worker, Arc::clone(&shared), clock, notify)?;
    let thread = std::thread::Builder::new().name(name).spawn(move || event_loop.run())?;
    Ok(WorkerHandle { shared, rings, counters, thread: Some(thread) })
}

/// A new snapshot for all workers. They see it at their next turn; no wake-up is needed.
pub fn publish(snapshot: &Snapshot, forwarding: Forwarding) {
    snapshot.store(Arc::new(forwarding));
}

struct EventLoop<T, U> {
    worker: Worker<T, U>,
    shared: Arc<Shared<T, U>>,
    epoll: Epoll,
    clock: Clock,
    notify: Notify,
    /// Full sockets, watched until they are writable.
    full: u64,
    /// How the TUN of each class is in the epoll set; `None` where there is none.
    tuns: Vec<Option<Watched>>,
}

/// How the TUN is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    Yes,
    /// A full socket holds trains back: the TUN's own queue pushes back on the applications.
    Held,
    /// Reading failed, and epoll would report that without end.
    Failed,
}

/// How long a TUN that cannot be read is left alone.
const PAUSE_MILLIS: u16 = 100;

impl<T: TunDevice + AsFd, U: UdpTransport + AsFd> EventLoop<T, U> {
    fn new(
        worker: Worker<T, U>,
        shared: Arc<Shared<T, U>>,
        clock: Clock,
        notify: Notify,
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&shared.wake, EpollEvent::new(EpollFlags::EPOLLIN, WAKE))?;
        for (index, socket) in worker.sockets().iter().enumerate() {
            if let Some(socket) = socket {
                epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, index as u64))?;
            }
        }
        let mut event_loop = EventLoop { worker, shared, epoll, clock, notify, full: 0, tuns: Vec::new() };
        for class in event_loop.worker.classes() {
            event_loop.begin_to_watch(class)?;
        }
        Ok(event_loop)
    }

    fn run(&mut self) -> io::Result<()> {
        let mut ready = Ready::ALL;
        loop {
            let stopping = self.shared.stop.load(Ordering::Acquire);
            self.change_sockets()?;
            self.change_tuns()?;
            let turned = self.worker.turn(ready, self.clock.now(), self.clock.wall());
            if turned.punted {
                (self.notify)();
            }
            if stopping && !turned.more {
                return Ok(());
            }
            self.watch_sockets(turned.full)?;
            self.watch_tuns(&turned)?;
            ready = self.wait(turned.more)?;
        }
    }

    /// Sleeps until something is ready; only looks when there is more to do.
    fn wait(&self, more: bool) -> io::Result<Ready> {
        let timeout = if more {
            EpollTimeout::ZERO
        } else if self.tuns.contains(&Some(Watched::Failed)) {
            EpollTimeout::from(PAUSE_MILLIS)
        } else {
            EpollTimeout::NONE
        };
        let mut events = [EpollEvent::empty(); 32];
        let count = loop {
            match self.epoll.wait(&mut events, timeout) {
                Ok(count) => break count,
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let mut ready = Ready { tuns: if count == 0 && !more { u32::MAX } else { 0 }, sockets: 0 };
        for event in &events[..count] {
            match event.data() {
                WAKE => {
                    // Reading resets it; the ring is looked at in every turn.
                    let _ = self.shared.wake.read();
                }
                socket if socket < 64 => ready.sockets |= 1 << socket,
                tun if (TUN..TUN + 32).contains(&tun) => ready.tuns |= 1 << (tun - TUN),
                _ => {}
            }
        }
        Ok(ready)
    }

    /// Watches full sockets, and only those, for room.
    fn watch_sockets(&mut self, full: u64) -> io::Result<()> {
        if full == self.full {
            return Ok(());
        }
        for (index, socket) in self.worker.sockets().iter().enumerate() {
            let bit = 1 << index.min(63);
            if let Some(socket) = socket
                && (full ^ self.full) & bit != 0
            {
                let mut event = EpollEvent::new(flags(full & bit != 0), index as u64);
                self.epoll.modify(socket, &mut event)?;
            }
        }
        self.full = full;
        Ok(())
    }

    fn watch_tuns(&mut self, turned: &Turned) -> io::Result<()> {
        for class in self.worker.classes() {
            let wanted = match turned {
                Turned { tuns_failed, .. } if tuns_failed >> class.0 & 1 == 1 => Watched::Failed,
                Turned { full: 0, .. } => Watched::Yes,
                Turned { .. } => Watched::Held,
            };
            self.watch_tun(class, wanted)?;
        }
        Ok(())
    }

    fn watch_tun(&mut self, class: Class, wanted: Watched) -> io::Result<()> {
        let (Some(device), Some(watched)) =
            (self.worker.tun(class), self.tuns.get_mut(class.index()).and_then(Option::as_mut))
        else {
            return Ok(());
        };
        if wanted == *watched {
            return Ok(());
        }
        let event = |flags| EpollEvent::new(flags, token(class));
        match (*watched, wanted) {
            (_, Watched::Failed) => self.epoll.delete(device)?,
            (Watched::Failed, _) => self.epoll.add(device, event(EpollFlags::EPOLLIN))?,
            (_, Watched::Held) => self.epoll.modify(device, &mut event(EpollFlags::empty()))?,
            (_, Watched::Yes) => self.epoll.modify(device, &mut event(EpollFlags::EPOLLIN))?,
        }
        *watched = wanted;
        Ok(())
    }

    /// A TUN that is new.
    fn begin_to_watch(&mut self, class: Class) -> io::Result<()> {
        let Some(device) = self.worker.tun(class) else { return Ok(()) };
        self.epoll.add(device, EpollEvent::new(EpollFlags::EPOLLIN, token(class)))?;
        if self.tuns.len() <= class.index() {
            self.tuns.resize(class.index() + 1, None);
        }
        self.tuns[class.index()] = Some(Watched::Yes);
        Ok(())
    }

    fn change_tuns(&mut self) -> io::Result<()> {
        while let Some((class, tun)) = self.shared.tuns.pop() {
            // A closed descriptor leaves the epoll set by itself.
            self.worker.set_tun(class, tun);
            if let Some(watched) = self.tuns.get_mut(class.index()) {
                *watched = None;
            }
            self.begin_to_watch(class)?;
        }
        Ok(())
    }

    fn change_sockets(&mut self) -> io::Result<()> {
        while let Some((index, socket)) = self.shared.sockets.pop() {
            // A closed descriptor leaves the epoll set by itself.
            self.worker.set_socket(index, socket);
            if let Some(Some(socket)) = self.worker.sockets().get(usize::from(index.0)) {
                let full = self.full & (1 << index.0.min(63)) != 0;
                self.epoll.add(socket, EpollEvent::new(flags(full), u64::from(index.0)))?;
            }
        }
        Ok(())
    }
}

fn token(class: Class) -> u64 {
    TUN + u64::from(class.0)
}

fn flags(full: bool) -> EpollFlags {
    let mut flags = EpollFlags::EPOLLIN;
    flags.set(EpollFlags::EPOLLOUT, full);
    flags
}
