//! A TCP connection that lives long and checks every byte: it shows whether a change of path breaks connections.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::dial::dial;
use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::random::Random;
use crate::server::{Server, is_pause};

/// A block that takes so long counts as a broken connection; TCP itself would wait far longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How late the client notices that it shall stop.
const NAP: Duration = Duration::from_millis(20);

/// A server that sends everything back; dropping it stops it.
#[derive(Debug)]
pub struct EchoServer {
    _server: Server,
}

/// A client that sends numbered blocks of random bytes over one connection and checks what comes back, byte by byte.
#[derive(Debug)]
pub struct TcpEcho {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<EchoReport>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    blocks: AtomicU64,
}

/// What the client saw.
#[derive(Debug, Clone, Default)]
pub struct EchoReport {
    /// Blocks that came back whole.
    pub blocks: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// The longest wait for a block.
    pub longest_wait: Duration,
    /// What broke the connection, or what was wrong with the data.
    pub failure: Option<String>,
}

impl EchoServer {
    /// Listens in a host.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub fn start(host: &Host, listen: SocketAddr) -> Result<Self> {
        Ok(Self { _server: Server::start(host, listen, send_back)? })
    }
}

fn send_back(mut stream: TcpStream, stop: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => stream.write_all(buffer.get(..length).unwrap_or_default())?,
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl TcpEcho {
    /// Connects from a host, then sends a block of `block` bytes every `interval`.
    ///
    /// # Errors
    /// When the connection can't be made.
    pub fn start(host: &Host, target: SocketAddr, block: usize, interval: Duration) -> Result<Self> {
        Self::start_from(host, None, target, block, interval)
    }

    /// The same from an address of the host's own.
    ///
    /// # Errors
    /// When the connection can't be made.
    pub fn start_from(
        host: &Host,
        source: Option<IpAddr>,
        target: SocketAddr,
        block: usize,
        interval: Duration,
    ) -> Result<Self> {
        let stream = host.within(|| dial(target, source, PATIENCE))??;
        let prepare = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        prepare.trying(|| "preparing a connection".into())?;
        let shared = Arc::new(Shared::default());
        let watched = shared.clone();
        let work = move || echo(stream, block, interval, &watched);
        Ok(Self { shared, thread: Some(host.thread("tcp-echo", work)?) })
    }

    /// Blocks that came back so far.
    pub fn blocks(&self) -> u64 {
        self.shared.blocks.load(Ordering::Relaxed)
    }

    /// Ends the connection and reports.
    ///
    /// # Errors
    /// When the client's thread failed.
    pub fn stop(mut self) -> Result<EchoReport> {
        let died = || LabError::Misuse("the echo client's thread died".into());
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.take().ok_or_else(died)?.join().map_err(|_| died())
    }
}

impl Drop for TcpEcho {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

fn echo(mut stream: TcpStream, block: usize, interval: Duration, shared: &Shared) -> EchoReport {
    let mut report = EchoReport::default();
    let mut random = Random::new(0x5eed);
    let mut next = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        if now < next {
            std::thread::sleep((next - now).min(NAP));
            continue;
        }
        next = now + interval;
        if let Err(error) = exchange(&mut stream, &random_block(&mut random, block)) {
            report.failure = Some(format!("block {}: {error}", report.blocks));
            break;
        }
        report.blocks += 1;
        report.bytes += block as u64;
        report.longest_wait = report.longest_wait.max(now.elapsed());
        shared.blocks.store(report.blocks, Ordering::Relaxed);
    }
    report
}

fn exchange(stream: &mut TcpStream, block: &[u8]) -> io::Result<()> {
    // Both ways at once: a block may be larger than all the buffers between here and the server.
    let mut writer = stream.try_clone()?;
    let mut answer = vec![0; block.len()];
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || writer.write_all(block));
        stream.read_exact(&mut answer)?;
        sending.join().unwrap_or_else(|_| Err(io::Error::other("the sending thread died")))
    })?;
    match block.iter().zip(&answer).position(|(sent, came)| sent != came) {
        None => Ok(()),
        Some(position) => Err(io::Error::other(format!("byte {position} came back changed"))),
    }
}

fn random_block(random: &mut Random, length: usize) -> Vec<u8> {
    let mut block: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| random.next_u64().to_be_bytes()).collect();
    block.truncate(length);
    block
}
