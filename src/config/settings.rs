//! What the daemon runs on: the node file and the registry, checked and resolved.
//!
//! Everything here is a plain value. Names are resolved, defaults are filled in, and nothing remembers the file
//! that it came from, except the line of a policy, which `explain` prints. Two [`Settings`] can be compared
//! (`config::diff`), so that a reload touches only what changed.

use crate::policy::Membership;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ed25519_dalek::VerifyingKey;
use ipnet::{IpNet, Ipv6Net};

pub use super::listener::Listener;
use super::redistribution::Redistribution;
use super::registry_source::RegistryPlace;

/// Everything that a node needs to run, except its private key, which is loaded apart
/// ([`crate::config::key::load`]) so that no secret can slip into a log or a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// This node.
    pub name: NodeName,
    /// File with this node's (or its organization's) Ed25519 private key, PKCS#8 PEM.
    pub private_key: PathBuf,
    /// The /32 that all derived locators are in. The same on every node of a mesh.
    pub mesh_prefix: Ipv6Net,
    /// This node's own /64 for SIDs; `::1` of it is the node's address.
    pub locator: Ipv6Net,
    /// Where this node sends and receives, in file order.
    pub endpoints: Vec<LocalEndpoint>,
    /// Networks behind this node, announced by Babel.
    pub announce: Vec<IpNet>,
    /// What else passes between the mesh and the host's routing tables.
    pub redistribution: Redistribution,
    /// Addresses on the TUN device besides the locator's `::1`; announced as /32 or /128.
    pub addresses: Vec<IpAddr>,
    /// Whether this node lets others leave to the internet here (announces its `::f` SID, masquerades).
    pub offer_internet: bool,
    /// Policies in file order: the first match wins.
    pub policies: Vec<Policy>,
    /// Keys of signed segment lists. The secrets are loaded apart, as the private key is.
    pub hmac_keys: Vec<HmacKeyFile>,
    /// Peers from which only signed segment lists are taken.
    pub require_hmac_from: Vec<NodeName>,
    /// All nodes of the registry in its order, this one included.
    pub nodes: Vec<Node>,
    /// Where the registry comes from.
    pub registry: RegistryPlace,
    /// What the kernel is asked for.
    pub kernel: KernelSettings,
    /// How this node proves itself besides its key.
    pub ike: IkeSettings,
    /// Protocol timers.
    pub timers: Timers,
    /// How Babel counts.
    pub cost: CostMap,
    /// Worker threads of the data plane.
    pub workers: u16,
    /// Directory for what survives a restart: Babel's seqno, the last good registry.
    pub state_dir: PathBuf,
    /// Path of the control socket.
    pub control_socket: PathBuf,
    /// Where Prometheus may scrape; off unless the file says so.
    pub metrics: Option<Listener>,
    /// Where the web page is served; off unless the file says so.
    pub page: Option<Listener>,
}

impl Settings {
    /// The registry's entry of `name`.
    #[must_use]
    pub fn node(&self, name: &NodeName) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == *name)
    }

    /// This node's own entry in the registry.
    #[must_use]
    pub fn own_node(&self) -> Option<&Node> {
        self.node(&self.name)
    }

    /// All nodes but this one.
    pub fn peers(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.name != self.name)
    }

    /// How people write `name`: without the organization where no other organization has that common name.
    #[must_use]
    pub fn display_name(&self, name: &NodeName) -> String {
        let namesakes = self.nodes.iter().filter(|node| node.name.common_name == name.common_name).count();
        if namesakes <= 1 && name.organization == self.name.organization {
            name.common_name.clone()
        } else {
            name.to_string()
        }
    }
}

/// A node's name: unique in the registry as a pair. Shown as `organization/common_name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName {
    /// The organization (O of the IKE identity).
    pub organization: String,
    /// The name inside the organization (CN of the IKE identity).
    pub common_name: String,
}

impl NodeName {
    /// A name from its two parts.
    #[must_use]
    pub fn new(organization: impl Into<String>, common_name: impl Into<String>) -> Self {
        Self { organization: organization.into(), common_name: common_name.into() }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.organization, self.common_name)
    }
}

/// Address family of an endpoint. A link joins two endpoints of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `ip4` in the files.
    Ip4,
    /// `ip6` in the files.
    Ip6,
}

impl Family {
    /// The word for it in the files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ip4 => "ip4",
            Self::Ip6 => "ip6",
        }
    }

    /// The family of `address`.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ip4 } else { Self::Ip6 }
    }
}

/// One of this node's own endpoints. Endpoints with one (family, port, bind, fwmark) share a socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalEndpoint {
    /// Distinguishes the node's endpoints (serialNumber of the IKE identity).
    pub serial_number: String,
    /// Family of the socket.
    pub family: Family,
    /// Which local address to bind.
    pub bind: Bind,
    /// UDP port for IKE, ESP and keepalives.
    pub port: u16,
    /// `SO_MARK` of the socket where the file gives one; [`KernelSettings::fwmark`] otherwise.
    pub fwmark: Option<u32>,
}

/// What an endpoint binds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bind {
    /// The unspecified address.
    Any,
    /// One address of this host.
    Address(IpAddr),
    /// Whichever address of this host lies in this network (ranet lets `address` be a CIDR).
    Network(IpNet),
}

/// One policy: which packets, by which stops, out where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Unique in the file.
    pub name: String,
    /// Source networks; a packet matches if it is in one of them. Never empty.
    pub from: Vec<IpNet>,
    /// Destination networks; as `from`.
    pub to: Vec<IpNet>,
    /// IP protocol number, if the policy names one.
    pub protocol: Option<u8>,
    /// Destination ports; empty means all. Only with TCP, UDP or another protocol with ports.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Source ports; empty means all.
    pub source_ports: Vec<RangeInclusive<u16>>,
    /// DSCP values 0 to 63; empty means all.
    pub dscp: Vec<u8>,
    /// By which interface and with which mark packets must have come.
    pub membership: Membership,
    /// The ways that its packets may take; never empty.
    pub candidates: Vec<Candidate>,
    /// Whether candidates are tried out end to end, and what is expected of them.
    pub probe: Option<PolicyProbe>,
    /// Number of the key that signs its segment lists (RFC 8754 §2.1.2); none if they are not signed.
    pub hmac: Option<u32>,
    /// What happens to matching packets while no candidate can be used.
    pub if_unreachable: IfUnreachable,
    /// Whether it stands in the registry, for both its ends, rather than in the node file.
    pub shared: bool,
    /// Line of the policy's name in its file, from 1.
    pub line: u32,
}

/// A key of signed segment lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HmacKeyFile {
    /// Its number in headers, from 1.
    pub id: u32,
    /// The file with the secret: all of it but line ends at the end.
    pub file: PathBuf,
}

/// One of the ways that a policy's packets may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Stops after this node and before the exit, in order; a node may come again.
    pub via: Vec<Stop>,
    /// Where the packet leaves the mesh.
    pub exit: Exit,
    /// Whether the last hop to the exit must be a direct link.
    pub exit_strict: bool,
    /// Of the candidates that can be used, those with the lowest number are.
    pub priority: u16,
    /// Its share of the flows among candidates of one priority.
    pub weight: u8,
}

/// One stop of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The node, or several, of which the nearest that can be reached serves. Never empty.
    pub any_of: Vec<NodeName>,
    /// Whether the hop to it must be a direct link from the stop before.
    pub strict: bool,
}

impl Stop {
    /// A stop at this node, by whatever way.
    #[must_use]
    pub fn at(node: NodeName) -> Self {
        Self { any_of: vec![node], strict: false }
    }
}

/// How a policy's candidates are tried out, end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProbe {
    /// Time between two probes on one candidate.
    pub interval: Duration,
    /// A candidate whose median round-trip time is longer is not used.
    pub max_rtt: Option<Duration>,
    /// A candidate that loses more, in percent, is not used.
    pub max_loss: u8,
}

/// Where a policy's packets leave the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// At this node, to the networks that it announces or, for other destinations, to the internet.
    Node(NodeName),
    /// At the lowest-latency node that offers the internet.
    Nearest,
}

/// What to do with a policy's packets while its path is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfUnreachable {
    /// Drop them: they never take another way. In force where the file says nothing.
    Drop,
    /// Send them as if there were no policy.
    AnyPath,
    /// Try the policies below.
    Next,
}

/// One node of the registry.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Keys that may sign for it: its own (old and new during a change), else its organization's. Empty only for
    /// nodes that prove themselves in another way.
    pub public_keys: Vec<VerifyingKey>,
    /// Authorities that vouch for it, if it proves itself by certificate.
    pub authorities: Vec<ikev2::Authority>,
    /// Whether it proves itself by a shared key, and by nothing else.
    pub shared_key: bool,
    /// How it names itself in IKE.
    pub identity: PeerIdentity,
    /// Where it can be reached.
    pub endpoints: Vec<RemoteEndpoint>,
    /// Its /64 for SIDs; unused where `sids` lists a foreign node's SIDs.
    pub locator: Ipv6Net,
    /// SIDs of a node that does not run viamesh, where the registry lists them.
    pub sids: Option<ForeignSids>,
    /// Its 16-bit micro-SID, where the registry gives one.
    pub usid: Option<u16>,
    /// Whether it may carry traffic of others. `false` limits it to `accept`.
    pub transit: bool,
    /// Networks that may come from it if it is no transit node.
    pub accept: Vec<IpNet>,
    /// Networks that it says it announces; for checks only, Babel decides.
    pub announce: Vec<IpNet>,
    /// Whether it says it offers the internet; for checks only, Babel decides.
    pub offer_internet: bool,
}

/// How this node proves itself besides its key, and how keys are exchanged. Secrets are loaded apart
/// ([`crate::config::credentials`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IkeSettings {
    /// Whether hybrid key exchange is preferred.
    pub post_quantum: bool,
    /// How this node names itself to nodes with authorities or a shared key.
    pub id: Option<PeerIdentity>,
    /// File with the certificate chain, and file with its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Files with shared keys.
    pub shared_keys: Vec<(NodeName, PathBuf)>,
}

/// How a peer names itself in IKE (RFC 7296 §3.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerIdentity {
    /// The DER name of O, CN and the endpoint's serialNumber, as ranet and viamesh build it.
    Ranet,
    /// ID_FQDN.
    Fqdn(String),
    /// ID_RFC822_ADDR.
    Rfc822(String),
    /// ID_IPV4_ADDR or ID_IPV6_ADDR.
    Address(IpAddr),
    /// ID_KEY_ID, any bytes.
    KeyId(Vec<u8>),
    /// ID_DER_ASN1_DN, the bytes as they stand in the payload.
    DistinguishedName(Vec<u8>),
}

/// One endpoint of another node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteEndpoint {
    /// Distinguishes the node's endpoints (serialNumber of the IKE identity).
    pub serial_number: String,
    /// Its family.
    pub family: Family,
    /// IP address or DNS name; none where it dials out only (behind NAT).
    pub address: Option<String>,
    /// Its UDP port.
    pub port: u16,
}

/// SIDs of a node that does not derive them as viamesh does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignSids {
    /// End: on to the next segment (RFC 8986 §4.1).
    pub end: Option<Ipv6Addr>,
    /// End.DT4 (§4.7).
    pub dt4: Option<Ipv6Addr>,
    /// End.DT6 (§4.6).
    pub dt6: Option<Ipv6Addr>,
    /// End.DT46 (§4.8).
    pub dt46: Option<Ipv6Addr>,
    /// Decapsulation towards the internet.
    pub internet: Option<Ipv6Addr>,
}

/// What the kernel is asked for. All of it is removed on exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSettings {
    /// Name of the TUN device.
    pub tun: String,
    /// MTU of the TUN device in bytes.
    pub tun_mtu: u16,
    /// Number of our routing table.
    pub table: u32,
    /// Table that our own marked packets are routed by (254: main).
    pub underlay_table: u32,
    /// Priority of the rule that sends marked packets to `underlay_table`.
    pub underlay_priority: u32,
    /// Priority of the rule that sends everything else to `table`.
    pub overlay_priority: u32,
    /// Mark of our own UDP packets. Outside 0xff0000 (Tailscale) and 0x1bd00 (NetBird).
    pub fwmark: u32,
    /// Protocol number on our routes (`/etc/iproute2/rt_protos`).
    pub rtproto: u8,
}

/// Protocol timers. The defaults suit a mesh across continents; tests shorten them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Age at which a CHILD SA is rekeyed.
    pub child_rekey: Duration,
    /// Packets on a CHILD SA after which it is rekeyed.
    pub child_rekey_packets: u64,
    /// Octets of payload on a CHILD SA after which it is rekeyed.
    pub child_rekey_bytes: u64,
    /// Age at which an IKE SA is rekeyed.
    pub ike_rekey: Duration,
    /// Silence after which an IKE peer is asked whether it lives.
    pub liveness: Duration,
    /// Wait before an unanswered IKE request is sent again for the first time.
    pub retransmit: Duration,
    /// Wait before a failed dial is tried again for the first time.
    pub redial: Duration,
    /// Babel's multicast Hello interval.
    pub hello: Duration,
    /// Babel's update interval.
    pub update: Duration,
    /// Babel's unicast Hello interval on links that carry selected routes, between viamesh nodes.
    pub fast_hello: Duration,
}

/// How Babel turns link quality into cost (RFC 8966 appendix A, RFC 9616).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostMap {
    /// Cost of a link before latency and loss.
    pub rxcost: u16,
    /// Round-trip time up to which latency costs nothing.
    pub rtt_min: Duration,
    /// Round-trip time from which latency costs `rtt_cost`.
    pub rtt_max: Duration,
    /// Greatest cost of latency.
    pub rtt_cost: u16,
    /// Units added to the rxcost for each percent of loss.
    pub loss_cost: u16,
}

/// The mesh prefix where the node file names none: fd5d:ac::/32.
pub const DEFAULT_MESH_PREFIX: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd5d, 0x00ac, 0, 0, 0, 0, 0, 0), 32);

/// Largest packet that fits one ESP-in-UDP datagram on a 1,500-byte IPv4 underlay: 1500 - 20 (IPv4) - 8 (UDP)
/// - 34 (ESP header, IV, trailer, ICV).
pub const TUNNEL_MTU_IP4: u16 = 1438;

/// The same on an IPv6 underlay, whose header is 20 bytes longer.
pub const TUNNEL_MTU_IP6: u16 = 1418;

impl Default for KernelSettings {
    fn default() -> Self {
        Self {
            tun: "viamesh0".into(),
            tun_mtu: TUNNEL_MTU_IP6,
            table: 1180,
            underlay_table: 254,
            underlay_priority: 90,
            overlay_priority: 92,
            fwmark: 0x7600_0000,
            rtproto: 118,
        }
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            child_rekey: Duration::from_secs(3600),
            child_rekey_packets: 1 << 36,
            child_rekey_bytes: 1 << 51,
            ike_rekey: Duration::from_secs(4 * 3600),
            liveness: Duration::from_secs(10),
            retransmit: Duration::from_millis(500),
            redial: Duration::from_secs(5),
            hello: Duration::from_secs(4),
            update: Duration::from_secs(16),
            fast_hello: Duration::from_millis(100),
        }
    }
}

impl Default for CostMap {
    fn default() -> Self {
        Self {
            rxcost: 8,
            rtt_min: Duration::from_millis(1),
            rtt_max: Duration::from_millis(1001),
            rtt_cost: 4000,
            loss_cost: 20,
        }
    }
}

impl Settings {
    /// Settings with every default: no endpoint, no policy, an empty registry.
    #[must_use]
    pub fn new(name: NodeName, locator: Ipv6Net) -> Self {
        Self {
            name,
            private_key: "/etc/viamesh/node.pem".into(),
            mesh_prefix: DEFAULT_MESH_PREFIX,
            locator,
            endpoints: Vec::new(),
            announce: Vec::new(),
            redistribution: Redistribution::default(),
            addresses: Vec::new(),
            offer_internet: false,
            policies: Vec::new(),
            hmac_keys: Vec::new(),
            require_hmac_from: Vec::new(),
            nodes: Vec::new(),
            registry: RegistryPlace::default(),
            kernel: KernelSettings::default(),
            ike: IkeSettings::default(),
            timers: Timers::default(),
            cost: CostMap::default(),
            workers: 1,
            state_dir: "/var/lib/viamesh".into(),
            control_socket: "/run/viamesh/control.sock".into(),
            metrics: None,
            page: None,
        }
    }
}
