//! The node file: a superset of ranet's `config.json`.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::{IpNet, Ipv6Net};

use super::listener::Listener;
use super::record::{Anything, OneOrMany, record};
use super::redistribution::RouteOrigin;
use super::scalar::{Dscp, Mark, Offer, Port, PortRange, Protocol};
use super::settings::{Family, IfUnreachable};
use super::source::Spanned;
use super::stop::StopEntry;

record! {
    /// Who this node is and what it does. One file per node, `/etc/viamesh/node.yaml`.
    pub(crate) struct NodeFile called "the node file", unknown: Error {
        /// The organization that the registry lists this node under.
        required organization: String,
        /// The node's name, unique within its organization.
        required common_name: String,
        /// File with the Ed25519 private key in PEM: the node's own, or its organization's. A relative path starts at this file. `--key` overrides it.
        optional private_key: String = "/etc/viamesh/node.pem",
        /// The registry that all nodes share: a file, a directory with several, `https://HOST/FILE` or `http://HOST/FILE` (signed), or `etcds://HOST:2379/KEY` or `etcd://HOST:2379/KEY` (every key that begins so holds a part). A relative path starts at this file. `--registry` overrides it.
        optional registry: String = "/etc/viamesh/registry.yaml",
        /// The Ed25519 public key in PEM that must have signed a registry on the web (`viamesh registry sign`).
        optional registry_key: String,
        /// Certificates in PEM of the authorities that vouch for an `https` or `etcds` server of the registry. Without them those of the system do.
        optional registry_authority: OneOrMany<String>,
        /// How often a registry on the web is asked for changes.
        optional registry_interval: Duration = "60s",
        /// Whether changes of the registry act by themselves. `false`: files wait for `viamesh reload`, other sources for a restart.
        optional registry_watch: bool = "true",
        /// Where this node sends and receives. Each must be in the registry under the same serial number.
        required endpoints: Vec<Spanned<EndpointEntry>>,
        /// Networks behind this node.
        optional announce: Vec<Spanned<IpNet>> = "[]",
        /// What else passes between the mesh and the host's routing tables, so that its BIRD or FRR can feed the mesh and be fed.
        optional redistribute: RedistributeSection,
        /// What this node offers to others: `internet` lets them leave here, with their addresses translated.
        optional offer: Vec<Spanned<Offer>> = "[]",
        /// Which packets take which way. The first match wins; packets that match none take the fastest way.
        optional policies: Vec<Spanned<PolicyEntry>> = "[]",
        /// Keys that sign segment lists, shared with the nodes that check them.
        optional hmac_keys: Vec<Spanned<HmacKeyEntry>> = "[]",
        /// Nodes from which packets for a segment of this node are taken only with a signed list.
        optional require_hmac_from: Vec<Spanned<String>> = "[]",
        /// The /32 that the locators of all nodes are in. Must be the same on every node.
        optional mesh_prefix: Ipv6Net = "fd5d:ac::/32",
        /// More addresses for this node, besides the `::1` of its locator.
        optional addresses: Vec<Spanned<IpAddr>> = "[]",
        /// Threads of the data plane.
        optional workers: u16 = "1",
        /// Where Prometheus may scrape `/metrics`: loopback or a Unix socket. Off unless given.
        optional metrics: Listener,
        /// Where the web page is served, read-only: loopback or a Unix socket. May be the same as `metrics`. Off unless given.
        optional page: Listener,
        /// Directory for what survives a restart.
        optional state_dir: String = "/var/lib/viamesh",
        /// Socket that the commands talk to. `--socket` overrides it.
        optional control_socket: String = "/run/viamesh/control.sock",
        /// What the kernel is asked for.
        optional kernel: KernelSection,
        /// How this node proves itself, and how keys are exchanged.
        optional ike: IkeSection,
        /// Protocol timers.
        optional timers: TimersSection,
        /// How latency and loss become the cost of a link.
        optional cost: CostSection,
        /// ranet's switches. Accepted, and not used.
        optional experimental: Anything,
    }
}

record! {
    /// One endpoint of this node.
    pub(crate) struct EndpointEntry called "an endpoint", unknown: Error {
        /// Distinguishes the endpoints of a node; part of its identity.
        required serial_number: String,
        /// `ip4` or `ip6`.
        required address_family: Family,
        /// Address to bind, or a network that contains it. All addresses of the host unless given.
        optional address: String,
        /// UDP port for IKE and ESP. Endpoints may share one.
        required port: Port,
        /// Firewall mark of the packets that leave here; `kernel.fwmark` unless given.
        optional fwmark: Mark,
        /// ranet's script. Accepted, and not run: routes come from Babel.
        optional updown: String,
    }
}

record! {
    /// Routes between the mesh and the kernel's tables. What changes in a table acts at once. Routes of this node's own are never taken, and what is given to a table is not taken from one.
    pub(crate) struct RedistributeSection called "`redistribute`", unknown: Error {
        /// Interfaces whose networks are announced.
        optional connected: Vec<Spanned<String>> = "[]",
        /// Tables whose routes are announced: unicast routes that do not lead into the mesh, no default routes.
        optional import: Vec<Spanned<RouteImportEntry>> = "[]",
        /// Tables that get the mesh's routes.
        optional export: Vec<Spanned<RouteExportEntry>> = "[]",
    }
}

record! {
    /// Routes of a kernel table that are announced.
    pub(crate) struct RouteImportEntry called "an import", unknown: Error {
        /// Number of the table; 254 is `main`. The host must look the networks up there, too.
        required table: u32,
        /// Who made them: names as in `ip route` (`bird`, `zebra`, `static`, `bgp`, `ospf`), or numbers. All but the kernel's own unless given.
        optional protocols: OneOrMany<RouteOrigin>,
        /// Networks: these and parts of them. All unless given.
        optional prefixes: Vec<Spanned<IpNet>>,
        /// Networks that are left out, with their parts.
        optional except: Vec<Spanned<IpNet>> = "[]",
        /// Babel metric that they are announced with. Where two nodes announce a network the lower sum wins.
        optional metric: u16 = "0",
    }
}

record! {
    /// Mesh routes that a kernel table gets.
    pub(crate) struct RouteExportEntry called "an export", unknown: Error {
        /// Number of the table; 254 is `main`.
        required table: u32,
        /// Networks: these and parts of them. All unless given.
        optional prefixes: Vec<Spanned<IpNet>>,
        /// Networks that are left out, with their parts.
        optional except: Vec<Spanned<IpNet>> = "[]",
        /// Priority in the table. The lowest wins there.
        optional metric: u32 = "1024",
    }
}

record! {
    /// One policy: which packets, by which stops, out where.
    pub(crate) struct PolicyEntry called "a policy", unknown: Error {
        /// Its name in counters and messages.
        required name: String,
        /// Source networks.
        required from: Vec<Spanned<IpNet>>,
        /// Destination networks.
        required to: Vec<Spanned<IpNet>>,
        /// IP protocol, by name or number. All unless given.
        optional protocol: Protocol,
        /// Destination ports and ranges of them. All unless given.
        optional ports: OneOrMany<PortRange>,
        /// Source ports and ranges of them. All unless given.
        optional source_ports: OneOrMany<PortRange>,
        /// DSCP values, by number or name. All unless given.
        optional dscp: OneOrMany<Dscp>,
        /// Only packets that come to this host by this interface; `lo` means its own. Not in the registry.
        optional ingress: String,
        /// Only packets with this firewall mark, all 32 bits of it. Not in the registry.
        optional fwmark: Mark,
        /// The stops after this node, in order. A node may come more than once. Between two stops the mesh finds the fastest way; with `!` behind its name a stop is reached over a direct link from the one before. `{any_of: [tokyo, osaka]}` is the nearer of several.
        optional via: Vec<Spanned<StopEntry>> = "[]",
        /// The last stop, where packets leave the mesh: a node, or `nearest` for the nearest one that offers the internet. Must be given here or in each of `paths`.
        optional exit: String,
        /// Several ways instead of one, best first. `via` and `exit` of the policy stand for what a path does not say.
        optional paths: Vec<Spanned<PathEntry>>,
        /// Try the paths out, end to end: a path that does not keep what is asked here counts as down. Without it a path is up when all its stops can be reached.
        optional probe: ProbeSection,
        /// Number of the key among `hmac_keys` that signs the segment list. Costs 40 bytes in every packet, and excludes the compressed form.
        optional hmac: u32,
        /// While no path is up: `drop` the packets, let them take `any-path`, or let the `next` matching policy have them. `check` warns where it is not given.
        optional if_unreachable: IfUnreachable = "drop",
    }
}

record! {
    /// A key that signs segment lists.
    pub(crate) struct HmacKeyEntry called "a key", unknown: Error {
        /// Its number in packets, from 1. The same on all nodes that know it.
        required id: u32,
        /// The file with the secret, at most 64 bytes, line ends at the end aside. A relative path starts at this file.
        required file: String,
    }
}

record! {
    /// One of several ways of a policy.
    pub(crate) struct PathEntry called "a path", unknown: Error {
        /// The stops, as in a policy.
        optional via: Vec<Spanned<StopEntry>>,
        /// The last stop, as in a policy.
        optional exit: String,
        /// Of the paths that are up, those with the lowest number carry the packets. Its place in the list unless given, from 1.
        optional priority: u16,
        /// Its share of the flows, 1 to 100, among paths of one priority. Each flow stays on one path.
        optional weight: u8 = "1",
    }
}

record! {
    /// What is asked of a policy's paths.
    pub(crate) struct ProbeSection called "`probe`", unknown: Error {
        /// Time between two probes on each path.
        optional interval: Duration = "5s",
        /// Longest round-trip time, as the median of the last ten probes.
        optional max_rtt: Duration,
        /// Most probes that may be lost of the last ten, in percent.
        optional max_loss: u8 = "30",
    }
}

record! {
    /// What the kernel is asked for. All of it is removed when the daemon stops.
    pub(crate) struct KernelSection called "`kernel`", unknown: Error {
        /// Name of the TUN device, at most 15 characters.
        optional tun: String = "viamesh0",
        /// MTU of the TUN device. 1438 where all endpoints are `ip4`, 1418 otherwise, unless given.
        optional tun_mtu: u16,
        /// Number of the routing table.
        optional table: u32 = "1180",
        /// Table that routes our own packets to the underlay (254 is `main`).
        optional underlay_table: u32 = "254",
        /// Priority of the rule for our own packets.
        optional underlay_priority: u32 = "90",
        /// Priority of the rule for everything else.
        optional overlay_priority: u32 = "92",
        /// Firewall mark of our own packets. Keep off 0xff0000 (Tailscale) and 0x1bd00 (NetBird).
        optional fwmark: Mark = "0x76000000",
        /// Protocol number on our routes.
        optional rtproto: u8 = "118",
    }
}

record! {
    /// How this node proves itself to nodes that want a certificate or a shared key, and how keys are exchanged.
    pub(crate) struct IkeSection called "`ike`", unknown: Error {
        /// Whether this node offers X25519 and ML-KEM-768 together when it dials, so that nobody who records traffic today reads it with a quantum computer later. Costs one round trip more for each handshake, and some kilobytes. Accepted from others in any case.
        optional post_quantum: bool = "false",
        /// How this node names itself to nodes with an `authority` or a `shared_key`: `fqdn:`, `email:`, `ip:`, `keyid:` (hexadecimal) or `dn:` (DER in hexadecimal). To all others, and unless given, it is the name that ranet builds.
        optional id: String,
        /// File with this node's X.509 certificate in PEM, followed by those between it and the authority. Shown to nodes with an `authority`. A relative path starts at this file.
        optional certificate: String,
        /// File with the private key of the certificate in PEM (PKCS#8): Ed25519, or ECDSA on P-256 or P-384. The node's `private_key` unless given.
        optional certificate_key: String,
        /// Keys shared with single nodes.
        optional shared_keys: Vec<Spanned<SharedKeyEntry>> = "[]",
    }
}

record! {
    /// A key that this node shares with another. The registry says `shared_key: true` of that node.
    pub(crate) struct SharedKeyEntry called "a shared key", unknown: Error {
        /// The other node.
        required node: String,
        /// File with the key. All of it counts, but for white space at its end.
        required file: String,
    }
}

record! {
    /// Protocol timers. The defaults suit a mesh across continents.
    pub(crate) struct TimersSection called "`timers`", unknown: Error {
        /// Age at which the keys of a tunnel (CHILD SA) are replaced.
        optional child_rekey: Duration = "1h",
        /// Packets after which the keys of a tunnel are replaced, whatever their age. The sequence numbers of a peer that knows only short ones end the keys at half of 4,294,967,296 in any case.
        optional child_rekey_packets: u64 = "68719476736",
        /// Octets after which the keys of a tunnel are replaced, whatever their age.
        optional child_rekey_bytes: u64 = "2251799813685248",
        /// Age at which the keys of a control connection (IKE SA) are replaced.
        optional ike_rekey: Duration = "4h",
        /// Silence after which a peer is asked whether it lives.
        optional liveness: Duration = "10s",
        /// Wait before an unanswered IKE request is repeated; grows with each repetition.
        optional retransmit: Duration = "500ms",
        /// Wait before a failed dial is tried again; grows with each failure.
        optional redial: Duration = "5s",
        /// Babel's Hello interval.
        optional hello: Duration = "4s",
        /// Babel's Update interval.
        optional update: Duration = "16s",
        /// Interval of Babel's unicast Hellos on links that carry traffic, between viamesh nodes.
        optional fast_hello: Duration = "100ms",
    }
}

record! {
    /// How latency and loss become the cost of a link. Keep it the same on all nodes.
    pub(crate) struct CostSection called "`cost`", unknown: Error {
        /// Cost of a perfect link.
        optional rxcost: u16 = "8",
        /// Round-trip time up to which latency costs nothing.
        optional rtt_min: Duration = "1ms",
        /// Round-trip time from which latency costs `rtt_cost`; linear in between.
        optional rtt_max: Duration = "1001ms",
        /// Greatest cost of latency.
        optional rtt_cost: u16 = "4000",
        /// Cost of each percent of loss.
        optional loss_cost: u16 = "20",
    }
}
