//! A stream of numbered datagrams from one host to another: loss, duplicates, order, gaps, one-way delay.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};

use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::punctual::wake_up_precisely;
use crate::server::is_pause;

/// Number and time of sending.
const HEADER: usize = 16;
/// The longest sleep: how late a thread notices that it shall stop.
const NAP: Duration = Duration::from_millis(20);
/// The receiver must not be what loses datagrams.
const RECEIVE_BUFFER: usize = 16 << 20;

/// A stream to send.
#[derive(Debug, Clone)]
pub struct UdpStream {
    /// Where the receiver listens.
    pub target: SocketAddr,
    /// From which address; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// Datagrams per second.
    pub packets_per_second: f64,
    /// Bytes of payload, at least 16.
    pub payload: usize,
}

/// A stream on its way; dropping it stops it.
#[derive(Debug)]
pub struct RunningUdpStream {
    shared: Arc<Shared>,
    sender: Option<JoinHandle<()>>,
    receiver: Option<JoinHandle<Result<UdpReport>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop_sending: AtomicBool,
    stop_receiving: AtomicBool,
    sent: AtomicU64,
    refused: AtomicU64,
    received: AtomicU64,
}

/// What the receiver counted.
#[derive(Debug, Clone, Default)]
pub struct UdpReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Different datagrams received.
    pub received: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Datagrams that came after a later one.
    pub reordered: u64,
    /// The longest time between two datagrams at the receiver.
    pub longest_gap: Duration,
    /// One-way delays of the received ones: shortest, median, longest.
    pub delay: Option<(Duration, Duration, Duration)>,
    /// Datagrams whose contents were not what was sent.
    pub corrupted: u64,
    /// Sends that the kernel refused, for example without a route; not counted as sent.
    pub refused: u64,
}

impl UdpStream {
    /// A stream of so many bits of payload per second.
    pub fn with_bit_rate(target: SocketAddr, bits_per_second: f64, payload: usize) -> Self {
        Self { target, source: None, packets_per_second: bits_per_second / (payload as f64 * 8.0), payload }
    }

    /// Starts the receiver at `to`, then the sender at `from`.
    ///
    /// # Errors
    /// When the kernel refuses a socket.
    pub fn start(&self, from: &Host, to: &Host) -> Result<RunningUdpStream> {
        if !self.packets_per_second.is_finite() || self.packets_per_second <= 0.0 {
            return Err(LabError::Misuse("a stream needs a rate above zero".into()));
        }
        let inbound = to.within(|| listen(self.target))??;
        let any: IpAddr = if self.target.is_ipv4() { [0; 4].into() } else { [0u8; 16].into() };
        let local = SocketAddr::new(self.source.unwrap_or(any), 0);
        let outbound = from.within(|| UdpSocket::bind(local))?.trying(|| format!("binding to {local}"))?;
        let shared = Arc::new(Shared::default());
        let epoch = Instant::now();
        let receiver = Receiver::new(inbound, epoch, shared.clone());
        let receiver = to.thread("udp-receiver", move || receiver.run())?;
        let (stream, sending) = (self.clone(), shared.clone());
        let sender = from.thread("udp-sender", move || stream.send(&outbound, epoch, &sending))?;
        Ok(RunningUdpStream { shared, sender: Some(sender), receiver: Some(receiver) })
    }

    fn send(&self, socket: &UdpSocket, epoch: Instant, shared: &Shared) {
        wake_up_precisely();
        let mut datagram = vec![0; self.payload.max(HEADER)];
        let start = Instant::now();
        let (mut turn, mut number) = (0u64, 0u64);
        while !shared.stop_sending.load(Ordering::Relaxed) {
            let due = start + Duration::from_secs_f64(turn as f64 / self.packets_per_second);
            let now = Instant::now();
            if due > now {
                std::thread::sleep((due - now).min(NAP));
                continue;
            }
            turn += 1;
            datagram[..8].copy_from_slice(&number.to_be_bytes());
            datagram[8..HEADER].copy_from_slice(&nanos(now - epoch).to_be_bytes());
            fill(&mut datagram[HEADER..], number);
            // An error of an earlier datagram (an ICMP message) is reported here too: that is no refusal of this
            // one in the sense of the report, but this one was not sent either.
            match socket.send_to(&datagram, self.target) {
                Ok(_) => {
                    number += 1;
                    shared.sent.store(number, Ordering::Relaxed);
                }
                Err(_) => drop(shared.refused.fetch_add(1, Ordering::Relaxed)),
            }
        }
    }
}

impl RunningUdpStream {
    /// Datagrams received so far.
    pub fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Stops sending, waits so long for stragglers, and reports.
    ///
    /// # Errors
    /// When a thread of the stream failed.
    pub fn stop(mut self, patience: Duration) -> Result<UdpReport> {
        let died = || LabError::Misuse("a thread of the stream died".into());
        self.shared.stop_sending.store(true, Ordering::Relaxed);
        self.sender.take().ok_or_else(died)?.join().map_err(|_| died())?;
        // All there is a short cut, not a condition: lost datagrams never come.
        let _ = crate::wait_until(patience, "stragglers", || self.received() >= self.sent());
        self.shared.stop_receiving.store(true, Ordering::Relaxed);
        let mut report = self.receiver.take().ok_or_else(died)?.join().map_err(|_| died())??;
        report.sent = self.sent();
        report.refused = self.shared.refused.load(Ordering::Relaxed);
        Ok(report)
    }
}

impl Drop for RunningUdpStream {
    fn drop(&mut self) {
        self.shared.stop_sending.store(true, Ordering::Relaxed);
        self.shared.stop_receiving.store(true, Ordering::Relaxed);
    }
}

/// The receiving thread.
struct Receiver {
    socket: UdpSocket,
    epoch: Instant,
    shared: Arc<Shared>,
    report: UdpReport,
    /// By number: whether it came.
    seen: Vec<bool>,
    delays: Vec<Duration>,
    last: Option<Instant>,
}

impl Receiver {
    fn new(socket: UdpSocket, epoch: Instant, shared: Arc<Shared>) -> Self {
        let report = UdpReport::default();
        Self { socket, epoch, shared, report, seen: Vec::new(), delays: Vec::new(), last: None }
    }

    fn run(mut self) -> Result<UdpReport> {
        let mut buffer = vec![0; 65_536];
        while !self.shared.stop_receiving.load(Ordering::Relaxed) {
            match self.socket.recv(&mut buffer) {
                Ok(length) => self.note(buffer.get(..length).unwrap_or_default()),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error).trying(|| "receiving a datagram".into()),
            }
        }
        self.delays.sort_unstable();
        let at = |index: usize| self.delays.get(index).copied().unwrap_or_default();
        let last = self.delays.len().checked_sub(1);
        self.report.delay = last.map(|last| (at(0), at(last / 2), at(last)));
        Ok(self.report)
    }

    fn note(&mut self, datagram: &[u8]) {
        let now = Instant::now();
        let word =
            |offset: usize| datagram.get(offset..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let (Some(number), Some(sent)) = (word(0), word(8)) else { return };
        // A number far beyond what was sent is not of this stream.
        let Some(index) =
            usize::try_from(number).ok().filter(|_| number <= self.shared.sent.load(Ordering::Relaxed))
        else {
            return;
        };
        let highest = self.seen.len();
        if index >= highest {
            self.seen.resize(index + 1, false);
        }
        let Some(seen) = self.seen.get_mut(index) else { return };
        if std::mem::replace(seen, true) {
            self.report.duplicates += 1;
            return;
        }
        self.report.received += 1;
        self.report.corrupted += u64::from(!is_filled(datagram.get(HEADER..).unwrap_or_default(), number));
        self.report.reordered += u64::from(index < highest);
        self.delays.push((now - self.epoch).saturating_sub(Duration::from_nanos(sent)));
        if let Some(last) = self.last.replace(now) {
            self.report.longest_gap = self.report.longest_gap.max(now - last);
        }
        self.shared.received.store(self.report.received, Ordering::Relaxed);
    }
}

fn listen(address: SocketAddr) -> Result<UdpSocket> {
    let doing = || format!("listening at {address}");
    let socket = UdpSocket::bind(address).trying(doing)?;
    socket.set_read_timeout(Some(NAP)).trying(doing)?;
    // Root may exceed the limit of the machine; others get what it allows.
    setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER)
        .or_else(|_| setsockopt(&socket, RcvBuf, &RECEIVE_BUFFER))
        .trying(doing)?;
    Ok(socket)
}

/// The contents of a datagram follow from its number.
fn fill(contents: &mut [u8], number: u64) {
    for (byte, position) in contents.iter_mut().zip(0u64..) {
        *byte = pattern(number, position);
    }
}

fn is_filled(contents: &[u8], number: u64) -> bool {
    contents.iter().zip(0u64..).all(|(byte, position)| *byte == pattern(number, position))
}

fn pattern(number: u64, position: u64) -> u8 {
    (number.wrapping_mul(0x9d).wrapping_add(position) & 0xff) as u8
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl UdpReport {
    /// Datagrams that never came.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}
