//! A network interface of a host, as the lab set it up.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::error::{LabError, Result};
use crate::host::Host;
use crate::netlink::{LinkChange, Netlink};

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

/// What an interface is given when it is set up.
#[derive(Debug, Clone)]
pub(crate) struct InterfacePlan {
    pub(crate) name: String,
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: u32,
    pub(crate) transmit_queue: u32,
    pub(crate) addresses: Vec<IpNet>,
}

impl InterfacePlan {
    /// Sets the existing device of that name up, in a host.
    pub(crate) fn apply(&self, host: &Host) -> Result<Interface> {
        let index = host.within(|| {
            let index = index_of(&self.name)?;
            let mut netlink = Netlink::open()?;
            let change = LinkChange {
                up: None,
                mtu: Some(self.mtu),
                transmit_queue: Some(self.transmit_queue),
                mac: Some(self.mac),
            };
            netlink.change_link(index, change)?;
            netlink.change_link(index, LinkChange { up: Some(true), ..LinkChange::default() })?;
            for address in &self.addresses {
                netlink.add_address(index, *address)?;
            }
            Ok::<_, LabError>(index)
        })??;
        let v4 = self.addresses.iter().find_map(|net| match net {
            IpNet::V4(net) => Some(net.addr()),
            IpNet::V6(_) => None,
        });
        let v6 = self.addresses.iter().find_map(|net| match net {
            IpNet::V6(net) => Some(net.addr()),
            IpNet::V4(_) => None,
        });
        Ok(Interface { name: self.name.clone(), index, mac: self.mac, v4, v6 })
    }
}

/// The index of an interface in the namespace of the calling thread.
pub(crate) fn index_of(name: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(|errno| LabError::System {
        what: format!("looking for the interface {name}"),
        source: errno.into(),
    })
}
