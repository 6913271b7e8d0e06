//! A network interface of a host, as the lab set it up.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;

use crate::error::{LabError, Result};
use crate::host::Host;
use crate::netlink::{LinkChange, Netlink};
use crate::wait::wait_until;

/// Far longer than the kernel takes.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(10);

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
                add_address(&mut netlink, &self.name, *address)?;
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

/// Adds an address to an interface in the namespace of the calling thread, and returns when others can find it.
pub(crate) fn add_address(netlink: &mut Netlink, interface: &str, address: IpNet) -> Result<()> {
    let index = index_of(interface)?;
    netlink.add_address(index, address)?;
    let IpNet::V6(net) = address else { return Ok(()) };
    let flags = netlink.link_flags(index)?;
    if flags & libc::IFF_UP == 0 {
        return Ok(());
    }
    // The kernel does the rest later, on a worker of its own. First of all it makes the address local.
    let what = format!("{interface} to have {}", net.addr());
    wait_until(ADDRESS_PATIENCE, &what, || is_local(net.addr()))?;
    if flags & (libc::IFF_LOOPBACK | libc::IFF_NOARP) != 0 {
        return Ok(());
    }
    // Then it joins the address's solicited-node group. A solicitation that comes before gets no answer, and the next
    // one follows a whole second later.
    let what = format!("{interface} to listen for {}", net.addr());
    wait_until(ADDRESS_PATIENCE, &what, || listens_for(interface, net.addr()))
}

/// Whether the kernel has a local route to an address.
fn is_local(address: Ipv6Addr) -> bool {
    const RTF_LOCAL: u32 = 0x8000_0000;
    let destination: String = address.octets().iter().map(|octet| format!("{octet:02x}")).collect();
    let routes = std::fs::read_to_string("/proc/thread-self/net/ipv6_route").unwrap_or_default();
    routes.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let flags = words.get(8).and_then(|word| u32::from_str_radix(word, 16).ok());
        words.starts_with(&[&destination, "80"]) && flags.is_some_and(|flags| flags & RTF_LOCAL != 0)
    })
}

/// Whether the interface has joined the solicited-node group of an address (RFC 4291 §2.7.1).
fn listens_for(interface: &str, address: Ipv6Addr) -> bool {
    let [.., high, middle, low] = address.octets();
    let group = format!("ff0200000000000000000001ff{high:02x}{middle:02x}{low:02x}");
    let groups = std::fs::read_to_string("/proc/thread-self/net/igmp6").unwrap_or_default();
    groups.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some(interface) && words.next() == Some(&group)
    })
}

/// The index of an interface in the namespace of the calling thread.
pub(crate) fn index_of(name: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(|errno| LabError::System {
        what: format!("looking for the interface {name}"),
        source: errno.into(),
    })
}
