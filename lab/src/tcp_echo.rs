//! A TCP connection that lives long and checks every byte: it shows whether a change of path breaks connections.

use std::net::SocketAddr;
use std::time::Duration;

use crate::error::Result;
use crate::host::Host;

/// A server that sends everything back; dropping it stops it.
#[derive(Debug)]
pub struct EchoServer {}

/// A client that sends numbered, checksummed blocks over one connection and checks what comes back.
#[derive(Debug)]
pub struct TcpEcho {}

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
        let _ = (host, listen);
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

impl TcpEcho {
    /// Connects from a host, then sends a block of `block` bytes every `interval`.
    ///
    /// # Errors
    /// When the connection can't be made.
    pub fn start(host: &Host, target: SocketAddr, block: usize, interval: Duration) -> Result<Self> {
        let _ = (host, target, block, interval);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Blocks that came back so far.
    pub fn blocks(&self) -> u64 {
        0
    }

    /// Ends the connection and reports.
    ///
    /// # Errors
    /// When the client's thread failed.
    pub fn stop(self) -> Result<EchoReport> {
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}
