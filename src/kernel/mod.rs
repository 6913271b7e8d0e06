//! Applies desired kernel state: addresses, routes, rules, masquerading and kernel settings.
//!
//! ```text
//!  prio  rule                        looks up
//!    89  iif … fwmark …               class table: packets of two classes at once
//!    90  fwmark OURS                 main (configurable): our own UDP never enters anybody's tunnel
//!    91  iif …, or fwmark …          class table: as the policy table, but → TUN of the class, since a packet
//!                                    that is read from a TUN shows neither. Before the mesh routes, therefore
//!    92  everything                  overlay table: mesh prefixes → TUN, throw for connected networks and
//!                                    for peers' underlay addresses; never a default route
//!    93  from <policy source> [to …] policy table: destinations that no mesh route covers (0.0.0.0/0 …)
//!                                    → TUN, behind it unreachable for `if_unreachable: drop`, throw as above
//! ```
//! All numbers are in [`Claim`]. Our routing protocol number marks each route and rule as ours, so what a
//! killed daemon left behind is found, adopted where it is still wanted, and removed where not; nothing
//! else is ever touched. The unreachable routes of `drop` policies outlive a crash (the TUN routes go with
//! the device); only [`Kernel::clean`] takes them away.
//!
//! The rules stand before those of NetBird (110: everything unmarked) and Tailscale (5210 and later, the last
//! one unreachable), and take only what is in our tables. Nothing is ever flushed, and routes are replaced in
//! one step, so no packet meets a gap.

mod addresses;
mod apply;
mod device;
mod host_forwarding;
mod masquerade;
mod netlink;
pub mod problem;
mod routes;
mod rules;
mod setting;
pub mod state;
#[cfg(test)]
mod tests;
mod watch;

pub use problem::Problem;
pub use state::{
    Claim, DUMMY_IPV4, Family, KernelState, Mark, Masquerade, RouteKey, RouteTarget, Rule, Selector, Tun,
    class_tun_name,
};
pub use watch::{Change, Changes};

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use rtnetlink::packet_route::route::RouteType;

use apply::Observed;
use host_forwarding::HostForwarding;
use netlink::Netlink;

/// A network that an interface of this host is part of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectedNetwork {
    /// The network.
    pub network: IpNet,
    /// Interface name.
    pub interface: String,
}

/// A unicast route that somebody else made and that does not lead into the mesh.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostRoute {
    /// Its table.
    pub table: u32,
    /// Where it leads.
    pub destination: IpNet,
    /// Number of the routing protocol that made it.
    pub protocol: u8,
}

/// An address of this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalAddress {
    /// The address.
    pub address: IpAddr,
    /// Interface name.
    pub interface: String,
}

/// Keeps the kernel as the node wants it.
#[derive(Debug)]
pub struct Kernel {
    claim: Claim,
    netlink: Netlink,
    host: HostForwarding,
    /// What the kernel is known to have; `None`: read it again.
    observed: Option<Observed>,
    /// Name of our TUN, once known: its addresses are not the host's.
    tun: Option<String>,
}

impl Kernel {
    /// Opens the connection to the kernel. Needs a running tokio runtime. `restore_file` keeps what the
    /// host's own settings were before we changed them, so that even the stop after a crash restores them.
    ///
    /// # Errors
    /// When no netlink socket can be opened.
    pub fn new(claim: Claim, restore_file: Option<PathBuf>) -> io::Result<Self> {
        Ok(Self {
            claim,
            netlink: Netlink::open()?,
            host: HostForwarding::recall(restore_file),
            observed: None,
            tun: None,
        })
    }

    /// Makes the kernel equal to `wanted` by changing the difference only. What cannot be done is returned;
    /// the rest is done. The first call reads what is there and so adopts what a crashed run left.
    pub async fn apply(&mut self, wanted: &KernelState) -> Vec<Problem> {
        self.apply_difference(wanted).await
    }

    /// Removes everything that is ours, a crashed run's leftovers included, and restores the host's settings.
    pub async fn clean(&mut self) -> Vec<Problem> {
        self.remove_everything().await
    }

    /// Forgets what is known about the kernel: the next [`Self::apply`] reads everything again. Call it after
    /// a [`Change`] with `ours`, and every minute.
    pub fn resync(&mut self) {
        self.observed = None;
    }

    /// Networks that this host's interfaces are part of, without the TUN's, loopback's and link-local ones.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub async fn connected_networks(&mut self) -> io::Result<Vec<ConnectedNetwork>> {
        let names = self.other_interfaces().await?;
        let networks = addresses::connected(&self.netlink, &names).await?;
        let named = networks.into_iter().filter_map(|(network, index)| {
            Some(ConnectedNetwork { network, interface: names.get(&index)?.clone() })
        });
        Ok(named.collect())
    }

    /// What others have in these tables. Our own routes are never among them, nor any that leads to the TUN,
    /// whoever made it.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub async fn host_routes(&mut self, tables: &BTreeSet<u32>) -> io::Result<Vec<HostRoute>> {
        let names = self.other_interfaces().await?;
        let mut found = BTreeSet::new();
        for table in tables {
            for route in routes::dump(&self.netlink, routes::Scope::Table(*table)).await? {
                let elsewhere = route.interface.is_some_and(|index| names.contains_key(&index));
                if elsewhere && route.kind == RouteType::Unicast && route.protocol != self.claim.protocol {
                    let destination = route.key.destination.trunc();
                    found.insert(HostRoute { table: *table, destination, protocol: route.protocol });
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Addresses of this host, without the TUN's and loopback's.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub async fn local_addresses(&mut self) -> io::Result<Vec<LocalAddress>> {
        let names = self.other_interfaces().await?;
        let addresses = addresses::dump(&self.netlink).await?;
        let named = addresses.into_iter().filter_map(|entry| {
            Some(LocalAddress { address: entry.address, interface: names.get(&entry.index)?.clone() })
        });
        Ok(named.collect())
    }

    async fn other_interfaces(&self) -> io::Result<std::collections::BTreeMap<u32, String>> {
        let mut names = addresses::interfaces(&self.netlink).await?;
        let ours = |tun: &String, name: &str| tun == name || state::is_class_tun(tun, name);
        names.retain(|_, name| !self.tun.as_ref().is_some_and(|tun| ours(tun, name)));
        Ok(names)
    }
}
