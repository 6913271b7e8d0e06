//! One per node: finds the IKE SA of a datagram and admits strangers.

use std::net::SocketAddr;
use std::time::Instant;

use rand_chacha::ChaCha20Rng;

use crate::config::{Config, ConnectionConfig, ConnectionId, Path};
use crate::error::Misuse;
use crate::event::{Event, IkeSaReport};

/// All IKE SAs of a node. See the crate documentation for how to drive it.
pub struct Endpoint {
    config: Config,
    rng: ChaCha20Rng,
}

impl Endpoint {
    /// An endpoint without connections. All randomness comes from `rng`.
    pub fn new(config: Config, rng: ChaCha20Rng) -> Self {
        Self { config, rng }
    }

    /// Adds a connection, or changes it without touching SAs that still fit. Dials if so configured.
    pub fn set_connection(&mut self, _id: ConnectionId, _config: ConnectionConfig, _now: Instant) {}

    /// Forgets a connection and deletes its SAs at the peer.
    pub fn remove_connection(&mut self, _id: ConnectionId, _now: Instant) {}

    /// Dials now, unless an SA lives or an attempt is under way.
    ///
    /// # Errors
    /// [`Misuse`] if there is no such connection or it has no remote address.
    pub fn dial(&mut self, _id: ConnectionId, _now: Instant) -> Result<(), Misuse> {
        Ok(())
    }

    /// The peer's address changed by configuration or name resolution; used from the next dial on.
    pub fn readdress(&mut self, _id: ConnectionId, _remote: Option<SocketAddr>, _now: Instant) {}

    /// An IKE message arrived; the non-ESP marker is stripped already.
    pub fn handle_datagram(&mut self, _path: Path, _datagram: &[u8], _now: Instant) {}

    /// A deadline of [`Self::poll_timeout`] passed.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// Writes the next datagram (without non-ESP marker) into `buffer`, replacing what is there.
    pub fn poll_transmit(&mut self, _buffer: &mut Vec<u8>) -> Option<Path> {
        None
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let _ = (&self.config, &self.rng);
        None
    }

    /// When [`Self::handle_timeout`] wants to be called, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }

    /// Authenticated ESP arrived on this link: proof of liveness.
    pub fn authenticated_inbound(&mut self, _id: ConnectionId, _now: Instant) {}

    /// Authenticated ESP arrived on this inbound SPI for the first time: the peer has the SA.
    pub fn child_confirmed(&mut self, _spi_in: u32, _now: Instant) {}

    /// The newest authenticated ESP of this link came from another address.
    pub fn peer_moved(&mut self, _id: ConnectionId, _path: Path, _now: Instant) {}

    /// A CHILD SA carried so many packets or octets that it must be rekeyed.
    pub fn rekey_child(&mut self, _spi_in: u32, _now: Instant) {}

    /// Deletes all SAs at the peers and dials no more.
    pub fn shutdown(&mut self, _now: Instant) {}

    /// All IKE SAs with their CHILD SAs.
    pub fn associations(&self) -> Vec<IkeSaReport> {
        Vec::new()
    }
}
