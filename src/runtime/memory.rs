//! In-memory twins of TUN and UDP socket: a whole node, or a mesh of them, runs in one process.
//!
//! The queues are shared between the twin inside a worker and the handle that a test or a
//! simulation holds.

use super::device::{Datagrams, SendError, TunDevice, UdpTransport};
use crate::forwarding::{Offload, Transmit};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A TUN whose other side is [`MemoryTun::application`].
#[derive(Debug, Clone)]
pub struct MemoryTun {
    queues: Arc<Mutex<TunQueues>>,
    offload: Offload,
}

#[derive(Debug, Default)]
struct TunQueues {
    to_node: FrameQueue,
    to_application: FrameQueue,
}

/// Frames in order, whose buffers are used again: nothing is allocated once it has been as full.
#[derive(Debug, Default)]
struct FrameQueue {
    frames: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

impl FrameQueue {
    fn push(&mut self, slices: &[IoSlice<'_>]) {
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        for slice in slices {
            frame.extend_from_slice(slice);
        }
        self.frames.push_back(frame);
    }

    fn pop_into(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let frame = self.frames.pop_front()?;
        let len = frame.len().min(buffer.len());
        buffer[..len].copy_from_slice(&frame[..len]);
        self.spare.push(frame);
        Some(len)
    }
}

impl MemoryTun {
    /// A TUN that takes these super-packets.
    pub fn new(offload: Offload) -> Self {
        MemoryTun { queues: Arc::default(), offload }
    }

    /// The kernel's side: what applications send and receive.
    pub fn application(&self) -> Application {
        Application { queues: Arc::clone(&self.queues) }
    }
}

impl TunDevice for MemoryTun {
    fn read(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        lock(&self.queues).to_node.pop_into(frame).ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, frame: &[IoSlice<'_>]) -> io::Result<()> {
        lock(&self.queues).to_application.push(frame);
        Ok(())
    }

    fn offload(&self) -> Offload {
        self.offload
    }
}

/// The kernel's side of a [`MemoryTun`].
#[derive(Debug, Clone)]
pub struct Application {
    queues: Arc<Mutex<TunQueues>>,
}

impl Application {
    /// Hands a frame, virtio header first, to the node.
    pub fn send(&self, frame: &[IoSlice<'_>]) {
        lock(&self.queues).to_node.push(frame);
    }

    /// The next frame from the node, virtio header first.
    pub fn receive(&self) -> Option<Vec<u8>> {
        lock(&self.queues).to_application.frames.pop_front()
    }

    /// Copies the next frame from the node into `buffer`, without allocating.
    pub fn receive_into(&self, buffer: &mut [u8]) -> Option<usize> {
        lock(&self.queues).to_application.pop_into(buffer)
    }
}

/// A UDP socket on a network in memory.
#[derive(Debug, Clone)]
pub struct MemoryUdp {
    local: SocketAddr,
    queues: Arc<Mutex<UdpQueues>>,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Debug, Default)]
struct UdpQueues {
    received: VecDeque<(Wire, Vec<u8>)>,
    sent: VecDeque<(Wire, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

/// A train on its way, as the socket saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// From. The address is the one that the sender asked for, or its bound one.
    pub source: SocketAddr,
    /// To.
    pub destination: SocketAddr,
    /// Octets of each datagram but the last.
    pub segment: usize,
    /// The ECN codepoint.
    pub ecn: u8,
}

/// How sends fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// The socket is full.
    pub full: bool,
    /// Trains of more than one datagram fail with this error number.
    pub segmentation: Option<i32>,
    /// Datagrams longer than this fail with EMSGSIZE.
    pub longest: Option<usize>,
    /// Every datagram fails with this error number.
    pub all: Option<i32>,
}

impl MemoryUdp {
    /// A socket bound to `local`.
    pub fn new(local: SocketAddr) -> Self {
        MemoryUdp { local, queues: Arc::default(), faults: Arc::default() }
    }

    /// Makes sends fail from now on, or work again.
    pub fn set_faults(&self, faults: Faults) {
        *lock(&self.faults) = faults;
    }

    /// What the node sent next.
    pub fn take_sent(&self) -> Option<(Wire, Vec<u8>)> {
        lock(&self.queues).sent.pop_front()
    }

    /// Puts a train into the socket's receive queue.
    pub fn inject(&self, wire: Wire, contents: &[u8]) {
        let mut queues = lock(&self.queues);
        let mut datagram = queues.spare.pop().unwrap_or_default();
        datagram.clear();
        datagram.extend_from_slice(contents);
        queues.received.push_back((wire, datagram));
    }

    /// Moves everything that this socket sent to `other`'s receive queue, whole trains, without
    /// copying. Returns the number of trains.
    pub fn carry_to(&self, other: &MemoryUdp) -> usize {
        let mut count = 0;
        loop {
            let Some(train) = lock(&self.queues).sent.pop_front() else { return count };
            lock(&other.queues).received.push_back(train);
            // The buffers go round: what the other has read comes back.
            let spare = lock(&other.queues).spare.pop();
            lock(&self.queues).spare.extend(spare);
            count += 1;
        }
    }
}

impl UdpTransport for MemoryUdp {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Datagrams> {
        let mut queues = lock(&self.queues);
        let (wire, contents) = queues.received.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
        let len = contents.len().min(buffer.len());
        buffer[..len].copy_from_slice(&contents[..len]);
        queues.spare.push(contents);
        Ok(Datagrams {
            len,
            segment: wire.segment,
            local: Some(wire.destination.ip()),
            remote: wire.source,
            ecn: wire.ecn,
            stamp: None,
        })
    }

    fn send(&mut self, transmit: &Transmit<'_>) -> Result<(), SendError> {
        let faults = *lock(&self.faults);
        let fail = |error: io::Error, segmented| Err(SendError { done: 0, error, segmented });
        let segmented = transmit.count() > 1 && !transmit.route.single && !transmit.route.fragment;
        if faults.full {
            return fail(io::ErrorKind::WouldBlock.into(), segmented);
        }
        if let Some(errno) = faults.all {
            return fail(io::Error::from_raw_os_error(errno), segmented);
        }
        if faults.longest.is_some_and(|longest| transmit.segment.min(transmit.contents.len()) > longest) {
            return fail(io::Error::from_raw_os_error(libc::EMSGSIZE), segmented);
        }
        if let Some(errno) = faults.segmentation.filter(|_| segmented) {
            return fail(io::Error::from_raw_os_error(errno), true);
        }
        let step = if segmented { transmit.contents.len() } else { transmit.segment };
        let source = source(transmit.route.local, self.local);
        let wire = Wire {
            source,
            destination: transmit.route.remote,
            segment: transmit.segment,
            ecn: transmit.route.ecn,
        };
        let mut queues = lock(&self.queues);
        for contents in transmit.contents.chunks(step.max(1)) {
            let mut datagram = queues.spare.pop().unwrap_or_default();
            datagram.clear();
            datagram.extend_from_slice(contents);
            queues.sent.push_back((wire, datagram));
        }
        Ok(())
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }
}

/// The address that the peer sees.
fn source(wanted: IpAddr, bound: SocketAddr) -> SocketAddr {
    let address = if wanted.is_unspecified() { bound.ip() } else { wanted };
    SocketAddr::new(address, bound.port())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
