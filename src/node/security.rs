//! IKEv2 and the security associations of links.

use super::link::{Child, LastFailure, Link, RemoteAddress};
use super::{Node, NodeEvent, OBSERVATION_INTERVAL};
use crate::config::settings::{Settings, Timers};
use crate::forwarding::{Down, LinkId, SocketIndex};
use esp::{Algorithm, Backend, InboundSa, Lifetime, Limits, OutboundSa, Verdict};
use ikev2::{ChildSa, ConnectionId, EspAlgorithm, Event, Path};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Replay window in packets: batches and several queues reorder more than the classical 64.
const REPLAY_WINDOW: u32 = 4096;

/// Part of the configured amount by which keys may be replaced earlier, so that not all are at once: one of so many.
const EARLIEST_PART: u64 = 10;

/// IKE settings of a node.
pub(super) fn configure(config: &mut ikev2::Config, settings: &Settings, keylog: bool) {
    set_timers(&mut config.timers, &settings.timers);
    config.spi_placement = ikev2::SpiPlacement { workers: u32::from(settings.workers.max(1)) };
    config.keylog = keylog;
    config.offer_hybrid = settings.ike.post_quantum;
}

/// The intervals of IKE that the node file can change.
pub(super) fn set_timers(timers: &mut ikev2::Timers, wanted: &Timers) {
    timers.child_rekey = wanted.child_rekey;
    timers.ike_rekey = wanted.ike_rekey;
    timers.liveness = wanted.liveness;
    timers.retransmit_first = wanted.retransmit;
    timers.dial_retry_first = wanted.redial;
    timers.dial_retry_max = ikev2::Timers::default().dial_retry_max.max(wanted.redial);
}

impl Node {
    /// Take what IKE has to send and to say. True if there was anything.
    pub(super) fn drain_ike(&mut self, now: Instant) -> bool {
        let mut busy = false;
        while let Some(event) = self.ike.poll_event() {
            busy = true;
            self.handle_ike_event(event, now);
        }
        let mut buffer = std::mem::take(&mut self.scratch);
        while let Some(path) = self.ike.poll_transmit(&mut buffer) {
            busy = true;
            self.send_ike(path, &buffer);
        }
        self.scratch = buffer;
        busy
    }

    //= RFC 3948 §2.2 and RFC 7296 §2.23: port 500 carries no marker.
    fn send_ike(&mut self, path: Path, message: &[u8]) {
        let Some(socket) = self.sockets.sender(path.local) else { return };
        let plain = path.local.port() == 500 || path.remote.port() == 500;
        let marker: &[u8] = if plain { &[] } else { &esp::NON_ESP_MARKER };
        let payload = [marker, message].concat();
        self.down.push_back(Down::Datagram { socket, local: path.local.ip(), remote: path.remote, payload });
    }

    fn handle_ike_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::IkeUp { connection, spis, ours, key_exchange, path, .. } => {
                if let Some(link) = self.links.get_mut(&LinkId(connection.0)) {
                    link.ike.insert(spis);
                    link.ours = ours;
                    link.key_exchange = key_exchange;
                    link.path = Some(path);
                    link.last_failure = None;
                }
            }
            Event::IkeRekeyed { connection, old, new, .. } => {
                if let Some(link) = self.links.get_mut(&LinkId(connection.0)) {
                    link.ike.remove(&old);
                    link.ike.insert(new);
                    let peer = link.peer.clone();
                    self.events.push_back(NodeEvent::Rekeyed { peer, kind: "ike" });
                }
            }
            Event::IkeDown { connection, spis, reason } => {
                if let Some(link) = self.links.get_mut(&LinkId(connection.0)) {
                    link.ike.remove(&spis);
                }
                self.finish_link_down(LinkId(connection.0), reason.name(), now);
            }
            Event::DialFailed { connection, what, tries } => {
                self.handle_dial_failed(connection, &what, tries, now)
            }
            Event::ChildUp { connection, child } => self.handle_child_up(connection, &child),
            Event::ChildDown { connection, spi_in, reason, .. } => {
                if let Some(link) = self.links.get_mut(&LinkId(connection.0)) {
                    link.children.remove(&spi_in);
                    self.forwarding_changed = true;
                }
                self.finish_link_down(LinkId(connection.0), reason.name(), now);
            }
            Event::UseOutbound { connection, spi_out } => self.handle_use_outbound(connection, spi_out, now),
            Event::PathChanged { connection, path } => {
                if let Some(link) = self.links.get_mut(&LinkId(connection.0)) {
                    link.path = Some(path);
                    let (peer, remote) = (link.peer.clone(), path.remote.to_string());
                    self.forwarding_changed = true;
                    self.events.push_back(NodeEvent::PeerMoved { peer, remote });
                    self.search_path_mtu(LinkId(connection.0), now);
                }
            }
            Event::Rejected { path, reason } => self.events.push_back(NodeEvent::Rejected {
                remote: path.remote.to_string(),
                reason: reason.to_string(),
            }),
            Event::KeyLog { table, line } => self.events.push_back(NodeEvent::KeyLog { table, line }),
        }
    }

    fn handle_dial_failed(
        &mut self,
        connection: ConnectionId,
        what: &ikev2::DialFailure,
        tries: u32,
        now: Instant,
    ) {
        let Some(link) = self.links.get_mut(&LinkId(connection.0)) else { return };
        link.last_failure = Some(LastFailure { what: what.to_string(), tries, at: now });
        // The name may have another address by now.
        if let RemoteAddress::Name(name, port) = &link.address {
            self.resolve.push_back((link.id, name.clone(), *port));
        }
        self.events.push_back(NodeEvent::DialFailed {
            peer: link.peer.clone(),
            what: what.to_string(),
            tries,
        });
    }

    fn handle_child_up(&mut self, connection: ConnectionId, child: &ChildSa) {
        let Some(link) = self.links.get_mut(&LinkId(connection.0)) else { return };
        match security_associations(child) {
            Ok((inbound, outbound)) => {
                let child_state =
                    Child { inbound: Arc::new(inbound), outbound: Arc::new(outbound), confirmed: false };
                link.children.insert(child.spi_in, child_state);
                if child.replaces.is_some() {
                    self.events.push_back(NodeEvent::Rekeyed { peer: link.peer.clone(), kind: "child" });
                }
                self.forwarding_changed = true;
            }
            Err(problem) => {
                let text = format!("{}: negotiated keys cannot be used: {problem}", link.peer);
                self.events.push_back(NodeEvent::Trouble { text });
            }
        }
    }

    fn handle_use_outbound(&mut self, connection: ConnectionId, spi_out: u32, now: Instant) {
        let id = LinkId(connection.0);
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some((spi_in, _)) = link.children.iter().find(|(_, child)| child.outbound.spi() == spi_out)
        else {
            return;
        };
        let was_up = link.is_up();
        link.sending = Some(*spi_in);
        self.forwarding_changed = true;
        if was_up {
            return;
        }
        link.up_since = Some(now);
        link.fragment_outer = false;
        let event = NodeEvent::LinkUp {
            link: id,
            peer: link.peer.clone(),
            remote: link.path.map_or_else(String::new, |path| path.remote.to_string()),
            key_exchange: link.key_exchange,
        };
        self.events.push_back(event);
        self.next_observation.get_or_insert(now + OBSERVATION_INTERVAL);
        self.add_babel_interface(id, now);
        self.note_link_up(id, now);
    }

    /// Retire a link that has lost its last outbound SA.
    fn finish_link_down(&mut self, id: LinkId, reason: &'static str, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if link.is_up() || link.up_since.is_none() {
            return;
        }
        link.up_since = None;
        link.sending = None;
        self.forwarding_changed = true;
        self.events.push_back(NodeEvent::LinkDown { link: id, peer: link.peer.clone(), reason });
        self.babel.remove_interface(babel::InterfaceId(id.0), now);
        self.note_link_down(id, now);
    }

    pub(super) fn handle_peer_moved(
        &mut self,
        id: LinkId,
        socket: SocketIndex,
        local: IpAddr,
        remote: SocketAddr,
        now: Instant,
    ) {
        let Some(link) = self.links.get(&id) else { return };
        let port = self.sockets.get(socket).map_or(link.local_port, |spec| spec.port);
        let path = Path { local: SocketAddr::new(local, port), remote };
        self.ike.peer_moved(ConnectionId(id.0), path, now);
    }

    pub(super) fn handle_sequence_exhausted(&mut self, id: LinkId, now: Instant) {
        if let Some(spi_in) = self.links.get(&id).and_then(|link| link.sending) {
            self.ike.rekey_child(spi_in, now);
        }
    }

    /// A packet came over this link: its answer must leave on the SA that the peer surely has.
    pub(super) fn observe_arrival(&mut self, id: LinkId, now: Instant) {
        if let Some(link) = self.links.get_mut(&id) {
            confirm_children(&mut self.ike, link, now);
        }
    }

    /// Pass on what the data path has seen: proof of life, first packets on new SAs, SAs that are used up.
    pub(super) fn observe_data_path(&mut self, now: Instant) {
        for link in self.links.values_mut() {
            let connection = ConnectionId(link.id.0);
            let newest = link.last_authenticated_millis();
            if newest > link.last_inbound_millis {
                link.last_inbound_millis = newest;
                let seen = (self.epoch + Duration::from_millis(newest)).min(now);
                self.ike.authenticated_inbound(connection, seen);
                self.babel.traffic_seen(babel::InterfaceId(link.id.0), seen);
            }
            confirm_children(&mut self.ike, link, now);
            for (spi_in, child) in &link.children {
                let sending = link.sending == Some(*spi_in);
                if is_used_up(child, *spi_in, sending, &self.settings.timers) {
                    self.ike.rekey_child(*spi_in, now);
                }
            }
        }
    }
}

/// Say on which SAs the first packet arrived: what is sent to the peer from now on may use them.
fn confirm_children(ike: &mut ikev2::Endpoint, link: &mut Link, now: Instant) {
    for (spi_in, child) in &mut link.children {
        if !child.confirmed && child.inbound.packets() > 0 {
            child.confirmed = true;
            ike.child_confirmed(*spi_in, now);
        }
    }
}

/// Whether an SA carried so much that it is to be replaced.
///
/// Either direction counts, since the peer may not count; what is received counts later than what is sent, so that
/// two nodes of our kind do not ask at once. An SA that no longer sends has a successor.
fn is_used_up(child: &Child, spi_in: u32, sending: bool, timers: &Timers) -> bool {
    let (outbound, inbound) = (&child.outbound, &child.inbound);
    let safe = Lifetime::for_sa(outbound.algorithm(), outbound.esn());
    // SPIs are random, which is all the randomness that is needed here.
    let percent = u64::from(spi_in / 256 % 100);
    let earlier = |limit: u64| limit - limit / EARLIEST_PART / 100 * percent;
    let sent = safe.with_soft(Limits {
        packets: earlier(timers.child_rekey_packets.min(safe.soft.packets)),
        bytes: earlier(timers.child_rekey_bytes.min(safe.soft.bytes)),
    });
    let received = safe.with_soft(Limits {
        packets: timers.child_rekey_packets.saturating_add(timers.child_rekey_packets / EARLIEST_PART),
        bytes: timers.child_rekey_bytes.saturating_add(timers.child_rekey_bytes / EARLIEST_PART),
    });
    sending
        && (sent.verdict(outbound.packets(), outbound.bytes()) != Verdict::Fresh
            || received.verdict(inbound.packets(), inbound.bytes()) != Verdict::Fresh)
}

/// The two halves of a negotiated CHILD SA.
fn security_associations(child: &ChildSa) -> Result<(InboundSa, OutboundSa), esp::Misuse> {
    let algorithm = match child.algorithm {
        EspAlgorithm::Aes256Gcm16 => Algorithm::Aes256Gcm16,
        EspAlgorithm::Aes128Gcm16 => Algorithm::Aes128Gcm16,
        EspAlgorithm::ChaCha20Poly1305 => Algorithm::ChaCha20Poly1305,
    };
    let backend = Backend::default();
    let inbound =
        InboundSa::new(child.spi_in, algorithm, child.key_in.expose(), child.esn, REPLAY_WINDOW, backend)?;
    let outbound = OutboundSa::new(child.spi_out, algorithm, child.key_out.expose(), child.esn, backend)?;
    Ok((inbound, outbound))
}
