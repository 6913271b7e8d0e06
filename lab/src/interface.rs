//! A network interface of a host, as the lab set it up.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An interface and the addresses that it was given.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Its name in the host, `eth0` and so on.
    pub name: String,
    /// Its kernel index in the host.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Its IPv4 address, unless the segment has none.
    pub v4: Option<Ipv4Addr>,
    /// Its IPv6 address, unless the segment has none.
    pub v6: Option<Ipv6Addr>,
}
