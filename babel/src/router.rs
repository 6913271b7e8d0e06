//! The router: one state machine for all interfaces.

use std::{net::Ipv6Addr, time::Instant};

use rand_chacha::ChaCha20Rng;

use crate::{
    Config, Event, ImportPolicy, InterfaceConfig, InterfaceId, Misuse, NeighbourReport, PacketError, Prefix,
    RouteReport, Seqno,
};

/// Where a packet written by [`Router::poll_transmit`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The interface to send on.
    pub interface: InterfaceId,
    /// [`crate::MULTICAST_GROUP`] or a neighbour's link-local address.
    pub destination: Ipv6Addr,
}

/// A Babel router.
pub struct Router {
    config: Config,
    rng: ChaCha20Rng,
    seqno: Seqno,
}

#[allow(unused_variables, missing_docs, clippy::missing_errors_doc, dead_code)]
impl Router {
    pub fn new(config: Config, rng: ChaCha20Rng, now: Instant) -> Result<Self, Misuse> {
        let seqno = config.seqno.unwrap_or(Seqno(0));
        Ok(Self { config, rng, seqno })
    }
    pub fn add_interface(&mut self, id: InterfaceId, config: InterfaceConfig, now: Instant) {}
    pub fn remove_interface(&mut self, id: InterfaceId, now: Instant) {}
    pub fn set_fast_hello(&mut self, id: InterfaceId, interval: Option<std::time::Duration>, now: Instant) {}
    pub fn set_mac_keys(&mut self, id: InterfaceId, keys: Vec<crate::MacKey>, now: Instant) {}
    pub fn set_import_policy(&mut self, policy: ImportPolicy, now: Instant) {}
    pub fn announce(&mut self, prefix: Prefix, now: Instant) {}
    pub fn announce_with_metric(&mut self, prefix: Prefix, metric: u16, now: Instant) {}
    pub fn withdraw(&mut self, prefix: Prefix, now: Instant) {}
    /// `received`: when the packet arrived at the socket.
    pub fn handle_packet(
        &mut self,
        interface: InterfaceId,
        source: Ipv6Addr,
        multicast: bool,
        payload: &[u8],
        received: Instant,
        now: Instant,
    ) -> Result<(), PacketError> {
        Ok(())
    }
    /// Authenticated traffic of any kind arrived on the interface at `received`.
    pub fn traffic_seen(&mut self, interface: InterfaceId, received: Instant) {}
    pub fn handle_timeout(&mut self, now: Instant) {}
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Transmit> {
        None
    }
    /// Probe the path MTU towards the neighbour on a point-to-point interface, between 1280 and `ceiling`
    /// (an IPv6 packet length); the result is `Event::PathMtu`.
    pub fn probe_path_mtu(&mut self, interface: InterfaceId, ceiling: u16, now: Instant) {}
    /// Sends retractions; afterwards poll transmits until none is left, then drop the router.
    pub fn shutdown(&mut self, now: Instant) {}
    pub fn seqno(&self) -> Seqno {
        self.seqno
    }
    pub fn neighbours(&self, now: Instant) -> Vec<NeighbourReport> {
        Vec::new()
    }
    pub fn routes(&self, now: Instant) -> Vec<RouteReport> {
        Vec::new()
    }
    pub fn selected(&self, now: Instant) -> Vec<RouteReport> {
        Vec::new()
    }
}
