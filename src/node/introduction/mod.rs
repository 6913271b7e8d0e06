//! Introductions: two nodes that nobody can dial, each behind a router that translates addresses, get a direct link
//! when a third node has links to both and the routers allow it.
//!
//! 1. A node that has a link without any address asks a neighbour, over their tunnel: introduce me to that endpoint.
//! 2. The neighbour sees both at the outside addresses that their routers gave them. If it has links to both, it tells
//!    each at once where it sees the other.
//! 3. Both send IKE_SA_INIT to what they were told, from the socket that the neighbour sees. Each first message opens
//!    the way in the sender's own router; of the two SAs that may come of it the usual duplicate rule leaves one.
//!
//! Until then, and where routers give each destination another port, traffic is relayed as Babel finds it.
//!
//! Only nodes of this software speak so, over authenticated tunnels. Who introduces is believed in one thing: that a
//! few IKE_SA_INIT may be sent to an address. The peer still has to prove its key. So a hostile member can make others
//! send a handful of small datagrams to an address of its choice, no more often than [`PAUSE`] allows.

mod message;
mod seeker;

use super::link::{Link, RemoteAddress};
use super::{Node, NodeEvent};
use crate::config::settings::Family;
use crate::forwarding::{Down, LinkId};
use ikev2::ConnectionId;
use message::{EndpointName, Message, PORT};
use seeker::Seeker;
use srv6::ip::ipv6::Ipv6View;
use srv6::ip::udp::{IPV6_HEADERS_LEN, UdpOverIpv6, UdpView};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Shortest time between two introductions of the same link, given or taken.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a dial by introduction goes on; the routers need a few messages from both sides.
const ATTEMPT: Duration = Duration::from_secs(10);

/// DSCP CS6, network control.
const TRAFFIC_CLASS: u8 = 0xc0;

/// What a node remembers of introductions.
#[derive(Debug, Default)]
pub(super) struct Introductions {
    seeker: Seeker,
    /// When each link was last introduced to another, or dialled for being introduced.
    last: BTreeMap<LinkId, Instant>,
    /// Links that are dialled at an address that somebody told, and until when.
    attempts: BTreeMap<LinkId, Instant>,
}

impl Introductions {
    /// When something is to be done.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let attempts = self.attempts.values().copied().min();
        self.seeker.next_deadline().into_iter().chain(attempts).min()
    }

    /// The link was removed.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.seeker.found(link);
        self.last.remove(&link);
        self.attempts.remove(&link);
    }

    /// Whether this link may be introduced again; if so, it counts as done.
    fn admit(&mut self, link: LinkId, now: Instant) -> bool {
        let rested = self.last.get(&link).is_none_or(|last| now.saturating_duration_since(*last) >= PAUSE);
        if rested {
            self.last.insert(link, now);
        }
        rested
    }
}

impl Node {
    /// A link came up: it needs no introduction any more, and its peer may know others.
    pub(super) fn note_link_up(&mut self, id: LinkId, now: Instant) {
        self.introductions.seeker.found(id);
        self.introductions.attempts.remove(&id);
        for link in self.links_without_address() {
            self.introductions.seeker.seek(link, now);
        }
    }

    /// A link was added: only an introduction may be able to bring it up.
    pub(super) fn seek_introduction(&mut self, id: LinkId, now: Instant) {
        if self.links_without_address().contains(&id) {
            self.introductions.seeker.seek(id, now);
        }
    }

    /// A link went down, perhaps one that only an introduction can bring back.
    pub(super) fn note_link_down(&mut self, id: LinkId, now: Instant) {
        if self.links_without_address().contains(&id) {
            self.ike.readdress(ConnectionId(id.0), None, now);
            self.introductions.seeker.seek(id, now);
        }
    }

    /// Ask for what is due, and give up what took too long.
    pub(super) fn handle_introduction_timeout(&mut self, now: Instant) {
        let over: Vec<LinkId> = self
            .introductions
            .attempts
            .iter()
            .filter(|(_, end)| **end <= now)
            .map(|(link, _)| *link)
            .collect();
        for link in over {
            self.introductions.attempts.remove(&link);
            if self.links.get(&link).is_some_and(|link| link.ike.is_empty()) {
                self.ike.readdress(ConnectionId(link.0), None, now);
            }
        }
        let mut seeker = std::mem::take(&mut self.introductions.seeker);
        for (link, helper) in seeker.due(now, |link| self.helpers(link).len()) {
            let helper = self.helpers(link).get(helper).copied();
            if let (Some(helper), Some(target)) = (helper, self.remote_endpoint(link)) {
                self.send_introduction(helper, &Message::Request(target));
            }
        }
        self.introductions.seeker = seeker;
    }

    /// A packet from a neighbour that Babel has no use for. False if it is no message of this protocol.
    pub(super) fn handle_introduction(&mut self, id: LinkId, packet: &[u8], now: Instant) -> bool {
        let Some(link) = self.links.get(&id).filter(|link| link.ours) else { return false };
        match unwrap(packet, link.link_local) {
            Some(Message::Request(target)) => self.introduce(id, &target, now),
            Some(Message::Introduction(peer, address)) => self.follow(id, &peer, address, now),
            None => return false,
        }
        true
    }

    /// Links that are down and that neither end can dial by what the registry says.
    fn links_without_address(&self) -> Vec<LinkId> {
        let hidden: Vec<&str> = self.hidden_endpoints();
        let links = self.links.values().filter(|link| {
            !link.is_up()
                && link.address == RemoteAddress::None
                && hidden.contains(&link.key.local_serial.as_str())
        });
        links.map(|link| link.id).collect()
    }

    /// Serial numbers of this node's endpoints that the registry gives no address of.
    fn hidden_endpoints(&self) -> Vec<&str> {
        let own = self.settings.own_node().into_iter().flat_map(|node| &node.endpoints);
        own.filter(|endpoint| endpoint.address.is_none())
            .map(|endpoint| endpoint.serial_number.as_str())
            .collect()
    }

    /// Links to neighbours that may know the other end of `wanted`: they see us where the other end would.
    fn helpers(&self, wanted: LinkId) -> Vec<LinkId> {
        let Some(wanted) = self.links.get(&wanted) else { return Vec::new() };
        let links = self.links.values().filter(|link| {
            link.ours
                && link.is_up()
                && link.family == wanted.family
                && link.key.local_serial == wanted.key.local_serial
                && link.key.peer != wanted.key.peer
        });
        links.map(|link| link.id).collect()
    }

    fn remote_endpoint(&self, link: LinkId) -> Option<EndpointName> {
        let key = &self.links.get(&link)?.key;
        Some(EndpointName { node: key.peer.clone(), serial: key.remote_serial.clone() })
    }

    /// The neighbour at `asking` wants to know `target`: tell both where the other one is seen, if both are here.
    fn introduce(&mut self, asking: LinkId, target: &EndpointName, now: Instant) {
        let Some(from) = self.links.get(&asking) else { return };
        let fits = |link: &&Link| {
            link.ours
                && link.is_up()
                && link.family == from.family
                && link.key.peer == target.node
                && link.key.remote_serial == target.serial
                && link.key.peer != from.key.peer
        };
        // Best by the same socket, where both routers keep the port that is known here.
        let mut found: Vec<_> = self.links.values().filter(fits).collect();
        found.sort_by_key(|link| link.socket != from.socket);
        let Some(to) = found.first() else { return };
        let (Some(seen_from), Some(seen_to)) = (from.path, to.path) else { return };
        let (to, asked_by) = (to.id, self.remote_endpoint(asking));
        if !self.introductions.admit(asking, now) {
            return;
        }
        if let Some(asked_by) = asked_by {
            self.send_introduction(to, &Message::Introduction(asked_by, seen_from.remote));
            self.send_introduction(asking, &Message::Introduction(target.clone(), seen_to.remote));
        }
    }

    /// Dial the peer that a neighbour sees at `address`, if there is a link that waits for it.
    fn follow(&mut self, told_by: LinkId, peer: &EndpointName, address: SocketAddr, now: Instant) {
        let Some(local) = self.links.get(&told_by).map(|link| link.key.local_serial.clone()) else { return };
        let waiting = self.links_without_address().into_iter().find(|id| {
            self.links.get(id).is_some_and(|link| {
                link.key.local_serial == local
                    && link.key.peer == peer.node
                    && link.key.remote_serial == peer.serial
                    && link.family == Family::of(address.ip())
            })
        });
        let Some(id) = waiting.filter(|_| self.may_dial(address)) else { return };
        if self.introductions.attempts.contains_key(&id) || !self.introductions.admit(id, now) {
            return;
        }
        self.introductions.attempts.insert(id, now + ATTEMPT);
        let (teller, peer) = (self.peer_name(told_by), self.peer_name(id));
        self.events.push_back(NodeEvent::Introduced { peer, by: teller, remote: address.to_string() });
        self.ike.readdress(ConnectionId(id.0), Some(address), now);
        // Refuses only for a connection that was removed in the meantime.
        let _ = self.ike.dial(ConnectionId(id.0), now);
    }

    /// No address of the mesh itself, of this host or of nobody.
    fn may_dial(&self, address: SocketAddr) -> bool {
        let strange = match address.ip() {
            IpAddr::V4(ip) => {
                ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || ip.is_broadcast()
            }
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local() || ip.is_multicast(),
        };
        let in_mesh = self.routes.keys().any(|prefix| prefix.contains(&address.ip()))
            || super::routing::own_prefixes(&self.settings).iter().any(|own| own.contains(&address.ip()));
        address.port() != 0 && !address.ip().is_unspecified() && !strange && !in_mesh
    }

    fn peer_name(&self, link: LinkId) -> String {
        self.links.get(&link).map_or_else(String::new, |link| link.peer.clone())
    }

    fn send_introduction(&mut self, over: LinkId, message: &Message) {
        let Some(link) = self.links.get(&over) else { return };
        let destination = link.peer_link_local;
        if let Some(packet) = message.encode().and_then(|octets| wrap(link.link_local, destination, &octets))
        {
            self.down.push_back(Down::Control { link: over, packet });
        }
    }
}

/// Wrap a message for the way through a tunnel.
fn wrap(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> Option<Vec<u8>> {
    let mut packet = vec![0; IPV6_HEADERS_LEN + message.len()];
    packet.get_mut(IPV6_HEADERS_LEN..)?.copy_from_slice(message);
    let headers = UdpOverIpv6 {
        source,
        destination,
        source_port: PORT,
        destination_port: PORT,
        hop_limit: 255,
        traffic_class: TRAFFIC_CLASS,
    };
    headers.write(&mut packet, message.len()).ok()?;
    Some(packet)
}

/// Recognise a message for `local`. A hop limit below 255 means that somebody passed it on (RFC 5082).
fn unwrap(packet: &[u8], local: Ipv6Addr) -> Option<Message> {
    let ip = Ipv6View::parse(packet).ok()?;
    if !ip.source().is_unicast_link_local() || ip.destination() != local || ip.hop_limit() != 255 {
        return None;
    }
    let udp = UdpView::parse_in_ipv6(&ip).ok()?;
    (udp.destination_port() == PORT && udp.source_port() == PORT)
        .then(|| Message::decode(udp.payload()))
        .flatten()
}
