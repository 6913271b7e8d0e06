//! A router that translates addresses and ports, as those between homes and the internet do.
//!
//! The kernel does it (nftables and connection tracking), so that timeouts, filtering and the choice of ports are
//! those of real routers. Needs the program `nft`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::Result;
use crate::host::Host;
use crate::interface::Interface;
use crate::netlink::Netlink;

/// Longer than `nft` ever takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Ports in each range that a rebound router draws from.
const PORTS: u16 = 4000;
/// The first port of the first range.
const FIRST_PORT: u16 = 20_000;
/// How many ranges there are.
const RANGES: u16 = 10;

/// How a router chooses the outside port of a flow, and whom it lets in (RFC 4787 §4 and §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatKind {
    /// One outside port for all destinations of a source; only those that were sent to may answer
    /// ("port-restricted cone").
    Cone,
    /// As [`Self::Cone`], and everybody may send to the outside port of this UDP service behind the router
    /// ("full cone", or a static port forward).
    Open(SocketAddrV4),
    /// Another port for each destination ("symmetric").
    Symmetric,
}

/// Address translation in a router; it ends with the world.
#[derive(Debug)]
pub struct Nat {
    router: Host,
    outside: String,
    kind: NatKind,
    /// How often the router was made to choose other ports.
    rebound: Mutex<u16>,
}

impl Nat {
    /// Makes `router` translate IPv4 and UDP that leaves by `outside`.
    ///
    /// # Errors
    /// When `nft` is missing or refuses.
    pub fn start(router: &Host, outside: &Interface, kind: NatKind) -> Result<Self> {
        let nat =
            Self { router: router.clone(), outside: outside.name.clone(), kind, rebound: Mutex::new(0) };
        nat.load(0)?;
        Ok(nat)
    }

    /// Forgets all flows and gives them other outside ports from now on, as a router that was restarted does.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn rebind(&self) -> Result<()> {
        let mut rebound = self.rebound.lock().unwrap_or_else(PoisonError::into_inner);
        *rebound += 1;
        self.load(*rebound)?;
        self.forget()
    }

    /// Forgets all flows, as if none had been used for too long.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn forget(&self) -> Result<()> {
        self.router.within(|| Netlink::open_netfilter()?.forget_flows())?
    }

    /// How long a UDP flow may be silent before it is forgotten.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_timeout(&self, timeout: Duration) -> Result<()> {
        let seconds = timeout.as_secs().max(1).to_string();
        self.router.sysctl("net.netfilter.nf_conntrack_udp_timeout", &seconds)?;
        self.router.sysctl("net.netfilter.nf_conntrack_udp_timeout_stream", &seconds)
    }

    /// Drops all UDP that comes in or goes out through the router, or lets it pass again.
    ///
    /// # Errors
    /// When `nft` refuses.
    pub fn block_udp(&self, block: bool) -> Result<()> {
        let table = "inet lab-block";
        let rules = "chain forward { type filter hook forward priority -10; meta l4proto udp drop; }";
        let body = if block { rules } else { "" };
        self.nft(&format!("table {table} {{}}; delete table {table}; table {table} {{ {body} }}"))
    }

    fn load(&self, rebound: u16) -> Result<()> {
        self.nft(&ruleset(&self.outside, self.kind, rebound))
    }

    fn nft(&self, rules: &str) -> Result<()> {
        let mut command = Command::new("nft");
        command.arg(rules);
        self.router.run(command, PATIENCE)?.successful().map(drop)
    }
}

/// The rules as one transaction. What comes in unasked is dropped before connection tracking remembers it: else it
/// would occupy the port that an answer needs.
fn ruleset(outside: &str, kind: NatKind, rebound: u16) -> String {
    let ports = (rebound > 0).then(|| {
        let first = FIRST_PORT + (rebound % RANGES) * PORTS;
        format!(" to :{first}-{}", first + PORTS - 1)
    });
    let ports = ports.unwrap_or_default();
    let choice = if kind == NatKind::Symmetric { " random,fully-random" } else { "" };
    // Without a range the kernel keeps the port of the source where it can: one port for all destinations.
    let range = if kind == NatKind::Symmetric && ports.is_empty() {
        format!(" to :{FIRST_PORT}-{}", FIRST_PORT + PORTS - 1)
    } else {
        ports
    };
    let forward = match kind {
        NatKind::Open(inside) if *inside.ip() != Ipv4Addr::UNSPECIFIED => {
            format!("iifname \"{outside}\" udp dport {} dnat to {inside};", inside.port())
        }
        _ => String::new(),
    };
    format!(
        "table ip lab-nat {{}}; delete table ip lab-nat; table ip lab-nat {{ \
         chain in {{ type nat hook prerouting priority -100; {forward} }}; \
         chain out {{ type nat hook postrouting priority 100; \
           oifname \"{outside}\" ip protocol udp masquerade{range}{choice}; \
           oifname \"{outside}\" masquerade; }}; \
         chain unasked {{ type filter hook input priority 0; \
           iifname \"{outside}\" ct state new drop; }}; \
         chain passing {{ type filter hook forward priority 0; \
           iifname \"{outside}\" ct state new ct status & dnat == 0 drop; }}; }}"
    )
}

#[cfg(test)]
mod tests {
    use super::{NatKind, ruleset};

    #[test]
    fn a_rebound_router_draws_from_other_ports() {
        let rules = ruleset("eth1", NatKind::Cone, 1);
        assert!(rules.contains("masquerade to :24000-27999;"), "{rules}");
        assert!(ruleset("eth1", NatKind::Cone, 0).contains("masquerade;"));
        assert!(ruleset("eth1", NatKind::Symmetric, 0).contains("to :20000-23999 random,fully-random;"));
    }
}
