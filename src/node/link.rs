//! One link: a pair of local and remote endpoint of one family, with its security associations.

use crate::config::settings::{Family, NodeName};
use crate::forwarding::{LinkCounters, LinkId, SocketIndex};
use esp::{InboundSa, OutboundSa};
use ikev2::{Identity, IkeSpis, Path};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// What names a link over reloads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkKey {
    /// Serial number of our endpoint.
    pub local_serial: String,
    /// The peer.
    pub peer: NodeName,
    /// Serial number of the peer's endpoint.
    pub remote_serial: String,
}

/// Where a peer can be dialled, by configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteAddress {
    /// It dials us.
    None,
    /// An IP address and port.
    Fixed(SocketAddr),
    /// A name to resolve, and the port.
    Name(String, u16),
}

/// What the security associations of a link rest on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trust {
    pub(crate) local_id: Identity,
    pub(crate) remote_id: Identity,
    /// Public keys any of which authenticates the peer.
    pub(crate) keys: Vec<[u8; 32]>,
    /// Authorities whose certificates do so too.
    pub(crate) authorities: Vec<ikev2::Authority>,
    /// Whether a shared key does so, and nothing else.
    pub(crate) shared_key: bool,
}

/// A CHILD SA as the data path uses it.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) inbound: Arc<InboundSa>,
    pub(crate) outbound: Arc<OutboundSa>,
    /// Whether the peer has used it: then it certainly has the keys.
    pub(crate) confirmed: bool,
}

/// Why the last attempt to reach a peer failed.
#[derive(Debug, Clone)]
pub(crate) struct LastFailure {
    pub(crate) what: String,
    pub(crate) tries: u32,
    pub(crate) at: Instant,
}

/// State of one link.
pub(crate) struct Link {
    pub(crate) id: LinkId,
    pub(crate) key: LinkKey,
    pub(crate) family: Family,
    /// Name of the peer as people write it.
    pub(crate) peer: String,
    pub(crate) socket: SocketIndex,
    pub(crate) local_port: u16,
    pub(crate) address: RemoteAddress,
    pub(crate) link_local: Ipv6Addr,
    /// The address that a peer of this software has at its end.
    pub(crate) peer_link_local: Ipv6Addr,
    /// Whom the security associations are with.
    pub(crate) trust: Trust,
    /// The only inner sources that the peer may send, where it may not do transit.
    pub(crate) accept: Option<Arc<crate::forwarding::PrefixTable<()>>>,
    /// Where the peer is, once known.
    pub(crate) path: Option<Path>,
    /// IKE SAs of this link.
    pub(crate) ike: BTreeSet<IkeSpis>,
    /// Whether the peer runs this software, believed after authentication.
    pub(crate) ours: bool,
    pub(crate) key_exchange: &'static str,
    pub(crate) up_since: Option<Instant>,
    /// CHILD SAs by inbound SPI.
    pub(crate) children: BTreeMap<u32, Child>,
    /// Inbound SPI of the CHILD SA that sends.
    pub(crate) sending: Option<u32>,
    pub(crate) counters: Arc<LinkCounters>,
    /// Newest proof of life that was passed on, in milliseconds since the epoch.
    pub(crate) last_inbound_millis: u64,
    pub(crate) last_failure: Option<LastFailure>,
    /// Longest inner packet in octets.
    pub(crate) mtu: u16,
    /// Not even the least IPv6 packet fits into one datagram of the path: the IP layer cuts the datagrams.
    pub(crate) fragment_outer: bool,
    /// Whether the path MTU is being searched.
    pub(crate) probing: bool,
    /// When it is searched again.
    pub(crate) next_probe: Option<Instant>,
}

impl Link {
    /// The security association that sends.
    pub(crate) fn outbound(&self) -> Option<&Arc<OutboundSa>> {
        self.children.get(&self.sending?).map(|child| &child.outbound)
    }

    /// Whether traffic can be sent.
    pub(crate) fn is_up(&self) -> bool {
        self.outbound().is_some()
    }

    /// Our address on this link; unspecified lets the kernel choose.
    pub(crate) fn local_address(&self) -> IpAddr {
        self.path.map_or_else(|| unspecified(self.family), |path| path.local.ip())
    }

    /// Newest arrival of an authenticated packet on any CHILD SA, in milliseconds since the epoch; 0 if none.
    pub(crate) fn last_authenticated_millis(&self) -> u64 {
        self.children.values().map(|child| child.inbound.last_authenticated_millis()).max().unwrap_or(0)
    }
}

/// 0.0.0.0 or ::.
pub(crate) fn unspecified(family: Family) -> IpAddr {
    match family {
        Family::Ip4 => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        Family::Ip6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}
