//! Addresses: the TUN's, which are ours, and those of the host, which we only read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use rtnetlink::packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeader, AddressMessage, AddressScope,
};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::route::RouteType;
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};

use super::netlink::{self, Mode, Netlink};
use super::problem::Problem;
use super::routes;
use super::state::DUMMY_IPV4;

/// An address of any interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InterfaceAddress {
    pub(super) index: u32,
    pub(super) address: IpAddr,
    /// The network that the interface is part of through this address.
    pub(super) network: IpNet,
}

/// All addresses of the host.
pub(super) async fn dump(netlink: &Netlink) -> io::Result<Vec<InterfaceAddress>> {
    let answers = netlink.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default())).await?;
    Ok(answers
        .iter()
        .filter_map(|answer| match answer {
            RouteNetlinkMessage::NewAddress(message) => parse(message),
            _ => None,
        })
        .collect())
}

fn parse(message: &AddressMessage) -> Option<InterfaceAddress> {
    let (mut local, mut peer) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(address) => local = Some(*address),
            AddressAttribute::Address(address) => peer = Some(*address),
            _ => {}
        }
    }
    let network = IpNet::new(peer.or(local)?, message.header.prefix_len).ok()?.trunc();
    Some(InterfaceAddress { index: message.header.index, address: local.or(peer)?, network })
}

/// Makes the addresses of interface `index` equal to `wanted`. Returns what is there afterwards.
pub(super) async fn apply(
    netlink: &Netlink,
    index: u32,
    observed: &BTreeSet<IpNet>,
    wanted: &BTreeSet<IpNet>,
    problems: &mut Vec<Problem>,
) -> BTreeSet<IpNet> {
    let mut present = observed.clone();
    for address in wanted.difference(observed) {
        let request = RouteNetlinkMessage::NewAddress(message(index, address));
        match netlink.execute(request, Mode::Create).await {
            Err(error) if !netlink::is_present(&error) => {
                problems.push(Problem::refused(format!("address {address}"), &error));
            }
            _ => {
                present.insert(*address);
            }
        }
    }
    for address in observed.difference(wanted) {
        let request = RouteNetlinkMessage::DelAddress(message(index, address));
        match netlink.execute(request, Mode::Existing).await {
            Err(error) if !netlink::is_missing(&error) => {
                problems.push(Problem::refused(format!("removal of address {address}"), &error));
            }
            _ => {
                present.remove(address);
            }
        }
    }
    present
}

/// Nobody else can have the address, so there is nothing to detect, and it works at once.
fn message(index: u32, address: &IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header = AddressHeader {
        family: routes::family(address),
        prefix_len: address.prefix_len(),
        scope: if address.addr() == DUMMY_IPV4 { AddressScope::Link } else { AddressScope::Universe },
        index,
        ..AddressHeader::default()
    };
    message.attributes.push(AddressAttribute::Local(address.addr()));
    message.attributes.push(AddressAttribute::Address(address.addr()));
    if message.header.family == AddressFamily::Inet6 {
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    message
}

/// Names of all interfaces but loopback, by index.
pub(super) async fn interfaces(netlink: &Netlink) -> io::Result<BTreeMap<u32, String>> {
    let answers = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default())).await?;
    let mut names = BTreeMap::new();
    for answer in answers {
        let RouteNetlinkMessage::NewLink(link) = answer else { continue };
        if link.header.flags.contains(LinkFlags::Loopback) {
            continue;
        }
        let name = link.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        });
        names.extend(name.map(|name| (link.header.index, name)));
    }
    Ok(names)
}

/// Networks on the interfaces in `names`: those of their addresses, and the on-link routes that DHCP and
/// router advertisements bring (clouds hand out a /32 and reach the gateway by such a route).
pub(super) async fn connected(
    netlink: &Netlink,
    names: &BTreeMap<u32, String>,
) -> io::Result<BTreeSet<(IpNet, u32)>> {
    const FROM_DHCP_OR_ADVERTISEMENT: [u8; 2] = [16, 9];
    const MAIN: u32 = 254;
    let mut networks: BTreeSet<(IpNet, u32)> = dump(netlink)
        .await?
        .into_iter()
        .filter(|address| names.contains_key(&address.index))
        .map(|address| (address.network, address.index))
        .collect();
    for protocol in FROM_DHCP_OR_ADVERTISEMENT {
        for route in routes::dump(netlink, routes::Scope::Protocol(protocol)).await? {
            let on_link = route.kind == RouteType::Unicast && !route.gateway && route.key.table == MAIN;
            if let Some(index) = route.interface.filter(|index| on_link && names.contains_key(index)) {
                networks.insert((route.key.destination, index));
            }
        }
    }
    networks.retain(|(network, _)| is_routable(network));
    Ok(networks)
}

/// Link-local networks are on every link, and a default route is no network.
fn is_routable(network: &IpNet) -> bool {
    let link_local = match network {
        IpNet::V4(network) => network.network().is_link_local(),
        IpNet::V6(network) => network.network().is_unicast_link_local(),
    };
    network.prefix_len() > 0 && !link_local
}
