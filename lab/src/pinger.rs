//! ICMP echo with our own code, down to one probe per millisecond.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::echo_socket::EchoSocket;
use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::punctual::{come_first, wake_up_precisely};
use crate::spawner::lock;

/// The longest sleep: how late the pinger notices that it shall stop.
const NAP: Duration = Duration::from_millis(20);

/// What to ping and how.
#[derive(Debug, Clone)]
pub struct Pinger {
    /// Whom.
    pub target: IpAddr,
    /// From which address; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// Time between probes.
    pub interval: Duration,
    /// How many probes; `None`: until stopped.
    pub count: Option<u32>,
    /// Bytes after the ICMP header, at least 16.
    pub payload: usize,
    /// How long the last answers are waited for.
    pub patience: Duration,
}

/// A pinger at work in a host; dropping it stops it.
#[derive(Debug)]
pub struct RunningPinger {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<PingReport>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    received: AtomicU64,
    latest: Mutex<Option<Duration>>,
}

/// What a pinger saw.
#[derive(Debug, Clone, Default)]
pub struct PingReport {
    /// Probes sent.
    pub sent: u64,
    /// Of these, probes that the kernel refused to send, mostly for want of a route.
    pub refused: u64,
    /// Probes answered.
    pub received: u64,
    /// Further answers to the same probe.
    pub duplicates: u64,
    /// When each probe left, from the start, and how long its answer took.
    pub probes: Vec<(Duration, Option<Duration>)>,
    /// The longest time between two answers, or between the last answer and the end of sending.
    pub longest_gap: Duration,
}

impl Pinger {
    /// Ten probes, 10 ms apart.
    pub fn new(target: IpAddr) -> Self {
        Self {
            target,
            source: None,
            interval: Duration::from_millis(10),
            count: Some(10),
            payload: 56,
            patience: Duration::from_secs(1),
        }
    }

    /// Pings from a host and returns when done.
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub fn run(&self, host: &Host) -> Result<PingReport> {
        if self.count.is_none() {
            return Err(LabError::Misuse("a pinger without a count never ends".into()));
        }
        self.start(host)?.join()
    }

    /// Pings from a host in the background until stopped, or until `count` is reached.
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub fn start(&self, host: &Host) -> Result<RunningPinger> {
        static IDENTIFIERS: AtomicU16 = AtomicU16::new(1);
        let identifier = IDENTIFIERS.fetch_add(1, Ordering::Relaxed);
        let (target, source) = (self.target, self.source);
        let socket = host.within(|| EchoSocket::open(target, source, identifier))??;
        let shared = Arc::new(Shared::default());
        let run = Run::new(self.clone(), socket, shared.clone());
        let thread = host.thread("ping", move || run.run())?;
        Ok(RunningPinger { shared, thread: Some(thread) })
    }
}

impl RunningPinger {
    /// Round trip of the newest answered probe.
    pub fn latest(&self) -> Option<Duration> {
        *lock(&self.shared.latest)
    }

    /// Probes answered so far.
    pub fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// Sends no more probes, waits for the last answers and reports.
    ///
    /// # Errors
    /// When receiving failed.
    pub fn stop(self) -> Result<PingReport> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.join()
    }

    fn join(mut self) -> Result<PingReport> {
        let died = || LabError::Misuse("the pinger's thread died".into());
        self.thread.take().ok_or_else(died)?.join().map_err(|_| died())?
    }
}

impl Drop for RunningPinger {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// The pinger's thread.
struct Run {
    config: Pinger,
    socket: EchoSocket,
    shared: Arc<Shared>,
    start: Instant,
    last_answer: Option<Instant>,
    report: PingReport,
}

impl Run {
    fn new(config: Pinger, socket: EchoSocket, shared: Arc<Shared>) -> Self {
        let start = Instant::now();
        Self { config, socket, shared, start, last_answer: None, report: PingReport::default() }
    }

    fn run(mut self) -> Result<PingReport> {
        wake_up_precisely();
        come_first();
        self.start = Instant::now();
        let mut next = self.start;
        while !self.is_over() {
            if Instant::now() >= next {
                self.send();
                next = self.next_time(next);
            }
            self.listen_until(next.min(Instant::now() + NAP))?;
        }
        // What comes after the last probe closes no gap: so much is certain only up to here.
        let end = Instant::now();
        let deadline = end + self.config.patience;
        while self.is_waiting() && Instant::now() < deadline {
            self.listen_until(deadline.min(Instant::now() + NAP))?;
        }
        let since = self.last_answer.map_or(self.start, |last| last.min(end));
        self.report.longest_gap = self.report.longest_gap.max(end - since);
        Ok(self.report)
    }

    fn is_over(&self) -> bool {
        let all_sent = self.config.count.is_some_and(|count| self.report.sent >= u64::from(count));
        all_sent || self.shared.stop.load(Ordering::Relaxed)
    }

    fn is_waiting(&self) -> bool {
        self.report.received + self.report.refused < self.report.sent
    }

    fn send(&mut self) {
        let number = self.report.sent;
        // Before the system call: what the kernel does with the probe is part of its round trip.
        self.report.probes.push((self.start.elapsed(), None));
        let sent = self.socket.send(number, self.config.payload);
        self.report.sent += 1;
        self.report.refused += u64::from(sent.is_err());
    }

    /// After a stall the pinger goes on from now; it doesn't catch up by a burst.
    fn next_time(&self, last: Instant) -> Instant {
        let next = last + self.config.interval;
        let now = Instant::now();
        if now > next + self.config.interval * 5 { now + self.config.interval } else { next }
    }

    fn listen_until(&mut self, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(left)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).trying(|| "waiting for an echo".into()),
        }
        while let Some(number) = self.socket.receive()? {
            self.note_answer(number);
        }
        Ok(())
    }

    fn note_answer(&mut self, number: u64) {
        let now = Instant::now();
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let Some((left, round_trip)) = self.report.probes.get_mut(index) else { return };
        if round_trip.is_some() {
            self.report.duplicates += 1;
            return;
        }
        let took = (now - self.start).saturating_sub(*left);
        *round_trip = Some(took);
        self.report.received += 1;
        if let Some(last) = self.last_answer.replace(now) {
            self.report.longest_gap = self.report.longest_gap.max(now - last);
        }
        self.shared.received.store(self.report.received, Ordering::Relaxed);
        *lock(&self.shared.latest) = Some(took);
    }
}

impl PingReport {
    /// Share of probes without an answer.
    pub fn loss(&self) -> f64 {
        1.0 - self.received as f64 / (self.sent.max(1)) as f64
    }

    /// All round trips, in the order of sending.
    pub fn round_trips(&self) -> impl Iterator<Item = Duration> + '_ {
        self.probes.iter().filter_map(|(_, round_trip)| *round_trip)
    }

    /// The shortest round trip.
    pub fn min(&self) -> Option<Duration> {
        self.round_trips().min()
    }

    /// The median round trip.
    pub fn median(&self) -> Option<Duration> {
        let mut all: Vec<_> = self.round_trips().collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// The longest round trip.
    pub fn max(&self) -> Option<Duration> {
        self.round_trips().max()
    }
}
