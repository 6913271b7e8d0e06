//! The kernel state that the node wants, as a plain value.
//!
//! Pure: nothing here knows netlink. The control plane builds a [`KernelState`], [`super::Kernel`]
//! compares it with what the kernel has and changes only the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

/// Metric of routes that send a prefix back to the host's own tables. The lowest wins, so a connected network
/// beats a mesh route to the same prefix.
pub const THROW_METRIC: u32 = 10;
/// Metric of routes into the TUN.
pub const TUN_METRIC: u32 = 100;
/// Metric of the unreachable routes that stand behind the TUN routes of `if_unreachable: drop` policies.
pub const HOLD_METRIC: u32 = 200;

/// The address of a TUN whose node has no IPv4 address (RFC 7600 §4.8), where classes of traffic need one: a kernel that
/// filters by reverse path finds another TUN on the way back, and takes this for a mistake unless the TUN has an
/// address. It has link scope, so nobody sends from it.
pub const DUMMY_IPV4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8));

/// The highest number of a class ([`crate::policy::Class::MOST`]).
const MOST_CLASSES: u8 = 16;

/// The numbers that are ours on this host; all of them can be configured.
///
/// The routing protocol number is the identity: a route or rule that carries it is ours, whatever table it
/// is in, so leftovers are found even if the other numbers were changed between two runs. A second instance
/// on one host therefore needs its own protocol number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Routing table of the mesh routes.
    pub overlay_table: u32,
    /// Routing table of steering policies whose destinations no mesh route covers.
    pub policy_table: u32,
    /// Table in which our own underlay datagrams find their way (254 is `main`).
    pub uplink_table: u32,
    /// Routing protocol number (`rtproto`) of our routes and rules.
    pub protocol: u8,
    /// Priority of the rule that keeps marked underlay datagrams out of everybody's tunnels.
    pub underlay_priority: u32,
    /// Priority of the rule that looks up [`Self::overlay_table`].
    pub overlay_priority: u32,
    /// Priority of the rules that look up [`Self::policy_table`].
    pub policy_priority: u32,
    /// The mark that our UDP sockets set (`SO_MARK`).
    pub mark: Mark,
    /// Name of our nftables table, family `inet`.
    pub nft_table: String,
}

impl Claim {
    /// Priority of the rules that feed the TUNs of classes: between our own datagrams and the mesh routes.
    fn class_priority(&self) -> u32 {
        self.underlay_priority.saturating_add(1)
    }

    /// Priority of the rules for packets of two classes at once. They name a mark that is not ours.
    fn both_classes_priority(&self) -> u32 {
        self.underlay_priority.saturating_sub(1)
    }

    /// The lowest of our priorities.
    pub(super) fn first_priority(&self) -> u32 {
        self.both_classes_priority().min(self.overlay_priority).min(self.policy_priority)
    }

    /// Routing table of a class, numbered from 1: behind the policy table.
    fn class_table(&self, class: u8) -> u32 {
        self.policy_table.saturating_add(u32::from(class))
    }

    /// Whether a table is ours.
    pub(super) fn owns_table(&self, table: u32) -> bool {
        let classes = self.class_table(1)..=self.class_table(MOST_CLASSES);
        table == self.overlay_table || table == self.policy_table || classes.contains(&table)
    }
}

impl Default for Claim {
    fn default() -> Self {
        Self {
            overlay_table: 1180,
            policy_table: 1181,
            uplink_table: 254,
            protocol: 118,
            underlay_priority: 90,
            overlay_priority: 92,
            policy_priority: 93,
            mark: Mark::default(),
            nft_table: "viamesh".to_owned(),
        }
    }
}

/// A firewall mark: `value` within `mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The bits that are set.
    pub value: u32,
    /// The bits that are compared.
    pub mask: u32,
}

impl Default for Mark {
    /// High bits, outside the masks of Tailscale (0xff0000), NetBird (0x1bd00), mwan3 (0x3f00) and kube-proxy
    /// (0xc000).
    fn default() -> Self {
        Self { value: 0x7600_0000, mask: 0x7600_0000 }
    }
}

/// Address family of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of a prefix.
    pub fn of(net: &IpNet) -> Self {
        match net {
            IpNet::V4(_) => Self::V4,
            IpNet::V6(_) => Self::V6,
        }
    }
}

/// The TUN device as it should be. The device itself is opened by the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tun {
    /// Interface name.
    pub name: String,
    /// Interface MTU in bytes.
    pub mtu: u32,
    /// Largest super-packet in bytes that the kernel may hand us: it must fit one UDP send with our overhead.
    pub gso_max_size: u32,
    /// Addresses, each as a single host (/32 or /128).
    pub addresses: BTreeSet<IpAddr>,
}

impl Tun {
    /// A device with the usual super-packet size and no address yet.
    pub fn new(name: impl Into<String>, mtu: u32) -> Self {
        Self { name: name.into(), mtu, gso_max_size: 60_300, addresses: BTreeSet::new() }
    }
}

/// Name of the TUN that packets of a class are read from.
pub fn class_tun_name(tun: &str, class: u8) -> String {
    format!("{tun}-{class}")
}

/// Whether `name` is that of the TUN of a class.
pub(super) fn is_class_tun(tun: &str, name: &str) -> bool {
    let number = name.strip_prefix(tun).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| number.parse().is_ok_and(|number| (1..=MOST_CLASSES).contains(&number)))
}

/// What identifies a route: the kernel holds at most one of ours per key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteKey {
    /// Routing table number.
    pub table: u32,
    /// Destination prefix.
    pub destination: IpNet,
    /// Priority within the prefix, lowest first.
    pub metric: u32,
}

/// Where a route leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteTarget {
    /// Into the TUN.
    Tun {
        /// Source address for packets that this host originates itself.
        source: Option<IpAddr>,
    },
    /// Into the TUN of a class.
    ClassTun {
        /// The class, from 1.
        class: u8,
        /// As with the TUN.
        source: Option<IpAddr>,
    },
    /// Not in this table: the next rule decides.
    Throw,
    /// Answered with an ICMP unreachable.
    Unreachable,
}

impl RouteTarget {
    /// The TUN that it needs: 0 for the one of packets without class.
    pub(super) fn tun(self) -> Option<u8> {
        match self {
            Self::Tun { .. } => Some(0),
            Self::ClassTun { class, .. } => Some(class),
            Self::Throw | Self::Unreachable => None,
        }
    }
}

/// What a rule matches; an empty selector matches everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Selector {
    /// The packet's firewall mark.
    pub mark: Option<Mark>,
    /// Source prefix.
    pub from: Option<IpNet>,
    /// Destination prefix.
    pub to: Option<IpNet>,
    /// Interface by which the packet came.
    pub incoming: Option<String>,
}

/// One policy routing rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// IPv4 or IPv6.
    pub family: Family,
    /// Order, lowest first.
    pub priority: u32,
    /// What it matches.
    pub selector: Selector,
    /// The table that it looks up.
    pub table: u32,
}

/// Source NAT for packets that leave the mesh here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Masquerade {
    /// Destinations that keep their source: the networks that this node announces.
    pub except: BTreeSet<IpNet>,
}

/// Everything that the kernel should have from us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelState {
    claim: Claim,
    /// The TUN device.
    pub tun: Tun,
    /// The TUNs of classes, by class. They have no addresses.
    pub class_tuns: BTreeMap<u8, Tun>,
    /// Our routes.
    pub routes: BTreeMap<RouteKey, RouteTarget>,
    /// Tables whose routes, as far as others made them, the node wants to know.
    pub import_tables: BTreeSet<u32>,
    /// Our rules.
    pub rules: BTreeSet<Rule>,
    /// Masquerade at an internet exit; `None` where this node is none.
    pub masquerade: Option<Masquerade>,
    /// Whether this host must forward IPv4 (LANs or the internet behind it).
    pub forward_ipv4: bool,
    /// Whether this host must forward IPv6.
    pub forward_ipv6: bool,
}

impl KernelState {
    /// The state of a node without routes: the TUN, and the underlay and overlay rules of both families.
    pub fn new(claim: &Claim, tun: Tun) -> Self {
        let mut rules = BTreeSet::new();
        for family in [Family::V4, Family::V6] {
            rules.insert(Rule {
                family,
                priority: claim.underlay_priority,
                selector: Selector { mark: Some(claim.mark), ..Selector::default() },
                table: claim.uplink_table,
            });
            rules.insert(Rule {
                family,
                priority: claim.overlay_priority,
                selector: Selector::default(),
                table: claim.overlay_table,
            });
        }
        Self {
            claim: claim.clone(),
            tun,
            class_tuns: BTreeMap::new(),
            routes: BTreeMap::new(),
            import_tables: BTreeSet::new(),
            rules,
            masquerade: None,
            forward_ipv4: false,
            forward_ipv6: false,
        }
    }

    /// Adds a mesh route: `destination` is reached through the TUN by everybody on this host. `source` is
    /// the address that local programs send from.
    pub fn add_mesh_route(&mut self, destination: IpNet, source: Option<IpAddr>) {
        let table = self.claim.overlay_table;
        self.add_route(table, destination, TUN_METRIC, RouteTarget::Tun { source });
    }

    /// Leaves `destination` to the host's own tables, in spite of any shorter mesh or policy route: for
    /// connected networks and for the underlay addresses of peers.
    pub fn add_throw(&mut self, destination: IpNet) {
        let classes = self.class_tuns.keys().map(|class| self.claim.class_table(*class));
        let tables: Vec<u32> =
            [self.claim.overlay_table, self.claim.policy_table].into_iter().chain(classes).collect();
        for table in tables {
            self.add_route(table, destination, THROW_METRIC, RouteTarget::Throw);
        }
    }

    /// Brings packets of a steering policy to the TUN where no mesh route does it. With `hold` the packets
    /// stay blocked if the daemon dies: the TUN route vanishes with the device, the unreachable route stays.
    ///
    /// `from` and `to` must be of one family; otherwise nothing can match and nothing is added.
    pub fn add_steering(&mut self, from: IpNet, to: IpNet, hold: bool) {
        if Family::of(&from) != Family::of(&to) {
            return;
        }
        let table = self.claim.policy_table;
        self.rules.insert(Rule {
            family: Family::of(&from),
            priority: self.claim.policy_priority,
            selector: Selector { from: proper(from), to: proper(to), ..Selector::default() },
            table,
        });
        self.add_route(table, to, TUN_METRIC, RouteTarget::Tun { source: None });
        if hold {
            self.add_route(table, to, HOLD_METRIC, RouteTarget::Unreachable);
        }
    }

    /// Adds a class: packets with this mark, from this interface, or both, have a TUN of their own. Call it before
    /// [`add_throw`](Self::add_throw).
    pub fn add_class(&mut self, class: u8) {
        let Tun { name, mtu, gso_max_size, .. } = &self.tun;
        let (name, mtu, gso_max_size) = (class_tun_name(name, class), *mtu, *gso_max_size);
        self.class_tuns.insert(class, Tun { name, mtu, gso_max_size, addresses: BTreeSet::new() });
    }

    /// As [`add_steering`](Self::add_steering), for those packets of a class only, which the rest of `selector` tells.
    /// These packets don't come to the TUN that all others use, even where a mesh route leads there.
    pub fn add_class_steering(
        &mut self,
        class: u8,
        selector: Selector,
        [from, to]: [IpNet; 2],
        source: Option<IpAddr>,
        hold: bool,
    ) {
        if Family::of(&from) != Family::of(&to) {
            return;
        }
        let table = self.claim.class_table(class);
        let both = selector.mark.is_some() && selector.incoming.is_some();
        let priority = if both { self.claim.both_classes_priority() } else { self.claim.class_priority() };
        let selector = Selector { from: proper(from), to: proper(to), ..selector };
        self.rules.insert(Rule { family: Family::of(&from), priority, selector, table });
        self.add_route(table, to, TUN_METRIC, RouteTarget::ClassTun { class, source });
        if hold {
            self.add_route(table, to, HOLD_METRIC, RouteTarget::Unreachable);
        }
    }

    /// Adds a mesh route to a table of others, for their routing daemons to see.
    pub fn add_export(&mut self, table: u32, destination: IpNet, metric: u32, source: Option<IpAddr>) {
        self.add_route(table, destination, metric, RouteTarget::Tun { source });
    }

    fn add_route(&mut self, table: u32, destination: IpNet, metric: u32, target: RouteTarget) {
        self.routes.insert(RouteKey { table, destination: destination.trunc(), metric }, target);
    }
}

/// A zero-length prefix in a rule is the same as none, and the kernel reports it as none.
fn proper(net: IpNet) -> Option<IpNet> {
    (net.prefix_len() > 0).then(|| net.trunc())
}
