//! Bulk transfer by TCP, one stream or several.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::dial::dial;
use crate::error::{LabError, Result, Trying};
use crate::host::Host;

const CHUNK: usize = 256 * 1024;
/// A stream on which nothing happens for so long is broken.
const STALL: Duration = Duration::from_secs(15);

/// A transfer to run.
#[derive(Debug, Clone)]
pub struct TcpPump {
    /// Where the receiver listens.
    pub target: SocketAddr,
    /// From which address; `None`: the kernel chooses.
    pub source: Option<IpAddr>,
    /// How many connections at once.
    pub streams: usize,
    /// For how long.
    pub duration: Duration,
}

/// What arrived.
#[derive(Debug, Clone, Copy, Default)]
pub struct PumpReport {
    /// Bytes that the receiver read.
    pub bytes: u64,
    /// From its first byte to its last.
    pub duration: Duration,
}

/// What one stream brought: bytes, and when the first and the last came.
type Stream = (u64, Instant, Instant);

impl TcpPump {
    /// One stream for two seconds.
    pub fn new(target: SocketAddr) -> Self {
        Self { target, source: None, streams: 1, duration: Duration::from_secs(2) }
    }

    /// Runs the transfer and returns when it is over.
    ///
    /// # Errors
    /// When a connection can't be made or breaks.
    pub fn run(&self, from: &Host, to: &Host) -> Result<PumpReport> {
        let target = self.target;
        let listener =
            to.within(|| TcpListener::bind(target))?.trying(|| format!("listening at {target}"))?;
        let mut sinks = Vec::new();
        let mut sources = Vec::new();
        for _ in 0..self.streams {
            let pump = self.clone();
            let outbound = from.within(|| dial(pump.target, pump.source, STALL))??;
            let (inbound, _) = listener.accept().trying(|| "accepting a connection".into())?;
            sinks.push(to.thread("tcp-sink", move || drain(inbound))?);
            sources.push(from.thread("tcp-source", move || pump.fill(outbound))?);
        }
        sources.into_iter().try_for_each(finish)?;
        let streams = sinks.into_iter().map(finish).collect::<Result<Vec<Stream>>>()?;
        let first = streams.iter().map(|stream| stream.1).min();
        let last = streams.iter().map(|stream| stream.2).max();
        let duration = first.zip(last).map(|(first, last)| last - first).unwrap_or_default();
        Ok(PumpReport { bytes: streams.iter().map(|stream| stream.0).sum(), duration })
    }

    fn fill(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_write_timeout(Some(STALL)).trying(|| "setting a time limit".into())?;
        let chunk = vec![0x5a; CHUNK];
        let end = Instant::now() + self.duration;
        while Instant::now() < end {
            stream.write_all(&chunk).trying(|| format!("sending to {}", self.target))?;
        }
        Ok(())
    }
}

fn drain(mut stream: TcpStream) -> Result<Stream> {
    stream.set_read_timeout(Some(STALL)).trying(|| "setting a time limit".into())?;
    let mut buffer = vec![0; CHUNK];
    let (mut bytes, mut first, mut last) = (0, None, Instant::now());
    loop {
        let length = stream.read(&mut buffer).trying(|| "receiving a stream".into())?;
        if length == 0 {
            return Ok((bytes, first.unwrap_or(last), last));
        }
        last = Instant::now();
        first.get_or_insert(last);
        bytes += length as u64;
    }
}

fn finish<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().map_err(|_| LabError::Misuse("a thread of the pump died".into()))?
}

impl PumpReport {
    /// Gigabits of payload per second.
    pub fn gbps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.duration.as_secs_f64().max(1e-9) / 1e9
    }
}
