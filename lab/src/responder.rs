//! A host of the internet that knows nothing of a mesh: it answers HTTP with the address that the request came from.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::Result;
use crate::host::Host;

/// A server that answers every request with the source address it sees; dropping it stops it.
#[derive(Debug)]
pub struct Responder {}

impl Responder {
    /// Listens in a host.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub fn start(host: &Host, listen: SocketAddr) -> Result<Self> {
        let _ = (host, listen);
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

/// Asks a responder, from a host, under which address it sees us.
///
/// # Errors
/// When there is no answer in time.
pub fn ask_responder(host: &Host, target: SocketAddr, limit: Duration) -> Result<IpAddr> {
    let _ = (host, target, limit);
    Err(crate::LabError::Misuse("not built yet".into()))
}
