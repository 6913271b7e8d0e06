//! The immutable value that the control plane publishes and the workers read.

use super::counters::LinkCounters;
use super::policy_path::PolicyPath;
use super::{PrefixTable, SpiTable};
use crate::policy::SteeringTable;
use esp::OutboundSa;
use ipnet::Ipv6Net;
use srv6::Behaviour;
use srv6::hmac::{HmacKeys, Requirement};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// A link: a pair of local and remote endpoint. The number is the index in [`Forwarding::links`]
/// and also names the link's IKE connection and Babel interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A UDP socket: the index in the list of sockets that the workers were started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketIndex(pub u16);

/// Everything that the data path knows. Built by the node, never changed, swapped as a whole.
#[derive(Debug)]
pub struct Forwarding {
    /// Grows with each snapshot.
    pub generation: u64,
    /// The instant from which milliseconds are counted in security associations and counters.
    pub epoch: Instant,
    /// Addresses and segments of this node.
    pub locals: LocalAddresses,
    /// Overlay prefixes, the announced networks behind this node among them.
    pub routes: PrefixTable<NextHop>,
    /// Rules that choose a policy.
    pub steering: SteeringTable,
    /// The policies that `steering` names.
    pub policies: Vec<PolicyPath>,
    /// The links by [`LinkId`]; `None` where a link was removed.
    pub links: Vec<Option<LinkPath>>,
    /// Inbound security associations by SPI.
    pub inbound: SpiTable,
    /// Which addresses are segments, and who may address them.
    pub sids: SidSpace,
    /// Keys of signed segment lists.
    pub hmac_keys: HmacKeys,
    /// Source of ICMP errors and of encapsulated packets.
    pub node_address: Ipv6Addr,
    /// Source of ICMPv4 errors: an own IPv4 address, or 192.0.0.8 without one (RFC 7600 §4.8).
    pub node_address_v4: Ipv4Addr,
    /// The MTU of the TUN, in octets of an IP packet.
    pub tun_mtu: u16,
    /// Identifier of the control plane's own echo requests. Replies to them, and errors about
    /// them, are punted instead of delivered.
    pub probe_identifier: Option<u16>,
}

impl Forwarding {
    /// A snapshot that forwards nothing: what workers start with.
    pub fn empty(epoch: Instant) -> Self {
        Forwarding {
            generation: 0,
            epoch,
            locals: LocalAddresses::default(),
            routes: PrefixTable::default(),
            steering: SteeringTable::default(),
            policies: Vec::new(),
            links: Vec::new(),
            inbound: SpiTable::default(),
            sids: SidSpace::default(),
            hmac_keys: HmacKeys::default(),
            node_address: Ipv6Addr::UNSPECIFIED,
            node_address_v4: Ipv4Addr::new(192, 0, 0, 8),
            tun_mtu: 1280,
            probe_identifier: None,
        }
    }

    /// The link, unless it was removed.
    #[inline]
    pub fn link(&self, link: LinkId) -> Option<&LinkPath> {
        self.links.get(link.0 as usize)?.as_ref()
    }

    /// Whether the link has an outbound security association.
    #[inline]
    pub fn is_up(&self, link: LinkId) -> bool {
        self.link(link).is_some_and(|path| path.outbound.is_some())
    }

    /// Milliseconds from the epoch to `instant`; 0 for earlier ones.
    #[inline]
    pub fn millis(&self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Where a prefix leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHop {
    /// Over this link.
    Link(LinkId),
    /// To the TUN: a network behind this node.
    Local,
    /// Nowhere: answered with an ICMP unreachable.
    Unreachable,
}

/// How to send on a link.
#[derive(Debug)]
pub struct LinkPath {
    /// The link; equals the index.
    pub id: LinkId,
    /// The socket to send from.
    pub socket: SocketIndex,
    /// The source address; unspecified lets the kernel choose.
    pub local: IpAddr,
    /// The destination of the datagrams.
    pub remote: SocketAddr,
    /// The security association that sends; `None` while the link is down.
    pub outbound: Option<Arc<OutboundSa>>,
    /// The longest inner packet, in octets: path MTU less all of ESP's overhead.
    pub mtu: u16,
    /// Let the IP layer fragment the datagrams, because the path cannot hold 1,280 octets of
    /// inner packet. Such a link sends no trains.
    pub fragment_outer: bool,
    /// The only inner sources that are taken from the peer, where it may not do transit.
    pub accept: Option<Arc<PrefixTable<()>>>,
    /// What is asked of packets from the peer that are addressed to a segment of this node.
    pub hmac: Requirement,
    /// Counters that outlive the snapshot.
    pub counters: Arc<LinkCounters>,
}

/// What an address of this node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Local {
    /// An address on the TUN: the kernel answers.
    Address,
    /// A segment.
    Sid(Behaviour),
    /// An address that only the control plane answers.
    Probe,
}

/// Table of this node's addresses and segments: exact matches, and compressed SIDs, behind which the next stops stand.
#[derive(Debug, Clone, Default)]
pub struct LocalAddresses {
    exact: Vec<(IpAddr, Local)>,
    /// Hardly ever more than one.
    compressed: Vec<(Ipv6Net, Behaviour)>,
}

impl LocalAddresses {
    /// A table of `entries`. Of two entries with one address the later counts.
    pub fn new(entries: impl IntoIterator<Item = (IpAddr, Local)>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.reverse();
        entries.sort_by_key(|(address, _)| *address);
        entries.dedup_by_key(|(address, _)| *address);
        LocalAddresses { exact: entries, compressed: Vec::new() }
    }

    /// With the prefixes of compressed SIDs besides.
    #[must_use]
    pub fn with_compressed(mut self, prefixes: impl IntoIterator<Item = (Ipv6Net, Behaviour)>) -> Self {
        self.compressed.extend(prefixes);
        self
    }

    /// What `address` is for, if it is ours.
    #[inline]
    pub fn lookup(&self, address: IpAddr) -> Option<Local> {
        match self.exact.binary_search_by_key(&address, |(own, _)| *own) {
            Ok(index) => self.exact.get(index).map(|(_, local)| *local),
            Err(_) => self.lookup_compressed(address),
        }
    }

    #[inline]
    fn lookup_compressed(&self, address: IpAddr) -> Option<Local> {
        let IpAddr::V6(address) = address else { return None };
        let found = self.compressed.iter().find(|(prefix, _)| prefix.contains(&address));
        found.map(|(_, behaviour)| Local::Sid(*behaviour))
    }

    /// All exact entries in ascending order of address.
    pub fn iter(&self) -> impl Iterator<Item = &(IpAddr, Local)> {
        self.exact.iter()
    }
}

/// What stands in front of an adjacency's number in an interface identifier.
const ADJACENCY: u16 = 0xe;

/// Which addresses of the mesh are segments, and which sources may address them.
#[derive(Debug, Clone)]
pub struct SidSpace {
    mesh_prefix: Ipv6Net,
    listed_segments: PrefixTable<()>,
    foreign_locators: PrefixTable<()>,
}

impl SidSpace {
    /// The segments of a mesh: by our scheme inside `mesh_prefix`, and those that the registry lists: of foreign nodes,
    /// and the prefix of each compressed SID. `foreign_locators` and `mesh_prefix` are the sources that may address
    /// segments.
    pub fn new(
        mesh_prefix: Ipv6Net,
        listed_segments: impl IntoIterator<Item = Ipv6Net>,
        foreign_locators: impl IntoIterator<Item = Ipv6Net>,
    ) -> Self {
        SidSpace {
            mesh_prefix,
            listed_segments: listed_segments.into_iter().map(|net| (net.into(), ())).collect(),
            foreign_locators: foreign_locators.into_iter().map(|net| (net.into(), ())).collect(),
        }
    }

    /// Whether `address` is a segment of some node.
    ///
    /// Inside the mesh prefix an interface identifier below 2^16 is a function, except 1, which
    /// is the node's own address; so is one of the form `e:n:n`, an adjacency.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        let IpAddr::V6(v6) = address else { return false };
        let [.., function] = v6.segments();
        let is_function = match v6.segments()[4..7] {
            [0, 0, 0] => function != 1,
            [0, ADJACENCY, _] => true,
            _ => false,
        };
        (is_function && self.mesh_prefix.contains(&v6))
            || (!self.listed_segments.is_empty() && self.listed_segments.lookup(address).is_some())
    }

    /// Whether a packet from `source` may be addressed to a segment.
    #[inline]
    pub fn may_send(&self, source: IpAddr) -> bool {
        let IpAddr::V6(v6) = source else { return false };
        self.mesh_prefix.contains(&v6) || self.foreign_locators.lookup(source).is_some()
    }
}

impl Default for SidSpace {
    fn default() -> Self {
        SidSpace::new(Ipv6Net::from(Ipv6Addr::UNSPECIFIED), [], [])
    }
}
