//! Our routes as netlink messages.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};

use super::netlink::{self, Mode, Netlink};
use super::state::{Claim, RouteKey, RouteTarget};

/// The kernel's table `local`, which holds its own addresses.
pub(super) const LOCAL_TABLE: u32 = 255;

/// The TUNs that are there, with their interface indices: those of classes by class, and that of all others as 0.
pub(super) type Tuns = BTreeMap<u8, u32>;

/// A route as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelRoute {
    pub(super) key: RouteKey,
    pub(super) protocol: u8,
    pub(super) kind: RouteType,
    pub(super) interface: Option<u32>,
    pub(super) source: Option<IpAddr>,
    pub(super) gateway: bool,
}

impl KernelRoute {
    /// The route as one of ours; `None` for a form that we never make.
    pub(super) fn target(&self, tuns: &Tuns) -> Option<RouteTarget> {
        match self.kind {
            RouteType::Unicast if !self.gateway => {
                let source = self.source;
                match tuns.iter().find(|(_, index)| self.interface == Some(**index))? {
                    (0, _) => Some(RouteTarget::Tun { source }),
                    (class, _) => Some(RouteTarget::ClassTun { class: *class, source }),
                }
            }
            RouteType::Throw => Some(RouteTarget::Throw),
            RouteType::Unreachable => Some(RouteTarget::Unreachable),
            _ => None,
        }
    }
}

/// The message that adds `key` → `target`. The target's TUN must be there.
pub(super) fn message(claim: &Claim, key: &RouteKey, target: RouteTarget, tuns: &Tuns) -> RouteMessage {
    let mut message = bare(claim, key);
    match target {
        RouteTarget::Tun { source } | RouteTarget::ClassTun { source, .. } => {
            message.header.kind = RouteType::Unicast;
            message.header.scope = scope(key);
            let index = target.tun().and_then(|tun| tuns.get(&tun)).copied().unwrap_or_default();
            message.attributes.push(RouteAttribute::Oif(index));
            if let Some(source) = source {
                message.attributes.push(RouteAttribute::PrefSource(source.into()));
            }
        }
        RouteTarget::Throw => message.header.kind = RouteType::Throw,
        RouteTarget::Unreachable => message.header.kind = RouteType::Unreachable,
    }
    message
}

/// An IPv4 route without a gateway has link scope; IPv6 has no scopes.
fn scope(key: &RouteKey) -> RouteScope {
    match key.destination {
        IpNet::V4(_) => RouteScope::Link,
        IpNet::V6(_) => RouteScope::Universe,
    }
}

/// The message that deletes `key`, whatever it leads to.
pub(super) fn deletion(claim: &Claim, key: &RouteKey) -> RouteMessage {
    let mut message = bare(claim, key);
    message.header.scope = RouteScope::NoWhere;
    message
}

fn bare(claim: &Claim, key: &RouteKey) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(&key.destination);
    message.header.destination_prefix_length = key.destination.prefix_len();
    message.header.protocol = RouteProtocol::from(claim.protocol);
    message.header.table = u8::try_from(key.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    message.attributes.push(RouteAttribute::Table(key.table));
    if key.destination.prefix_len() > 0 {
        message.attributes.push(RouteAttribute::Destination(key.destination.network().into()));
    }
    message.attributes.push(RouteAttribute::Priority(key.metric));
    message
}

pub(super) fn family(net: &IpNet) -> AddressFamily {
    match net {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    }
}

/// Reads a dumped route; `None` for what is no ordinary route.
pub(super) fn parse(message: &RouteMessage) -> Option<KernelRoute> {
    let mut route = KernelRoute {
        key: RouteKey {
            table: u32::from(message.header.table),
            destination: unspecified(message)?,
            metric: 0,
        },
        protocol: u8::from(message.header.protocol),
        kind: message.header.kind,
        interface: None,
        source: None,
        gateway: false,
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(table) => route.key.table = *table,
            RouteAttribute::Priority(metric) => route.key.metric = *metric,
            RouteAttribute::Oif(index) => route.interface = Some(*index),
            RouteAttribute::PrefSource(source) => route.source = address(source),
            RouteAttribute::Gateway(_) | RouteAttribute::Via(_) => route.gateway = true,
            RouteAttribute::MultiPath(hops) => {
                route.gateway = true;
                route.interface = hops.first().map(|hop| hop.interface_index);
            }
            RouteAttribute::Destination(destination) => {
                let length = message.header.destination_prefix_length;
                route.key.destination = IpNet::new(address(destination)?, length).ok()?;
            }
            _ => {}
        }
    }
    Some(route)
}

/// The default destination of the message's family: the kernel leaves the attribute out for it.
fn unspecified(message: &RouteMessage) -> Option<IpNet> {
    let address: IpAddr = match message.header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    IpNet::new(address, 0).ok()
}

fn address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// What a dump of routes is limited to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    Protocol(u8),
    Table(u32),
}

/// All routes of both families within `scope`.
pub(super) async fn dump(netlink: &Netlink, scope: Scope) -> io::Result<Vec<KernelRoute>> {
    let mut routes = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        match scope {
            Scope::Protocol(protocol) => request.header.protocol = RouteProtocol::from(protocol),
            Scope::Table(table) => request.attributes.push(RouteAttribute::Table(table)),
        }
        let answers = match netlink.dump(RouteNetlinkMessage::GetRoute(request)).await {
            Ok(answers) => answers,
            // The table does not exist yet, or the family is not compiled in.
            Err(error) if netlink::is_missing(&error) || error.kind() == io::ErrorKind::Unsupported => {
                continue;
            }
            Err(error) => return Err(error),
        };
        routes.extend(answers.iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(message) => parse(message),
            _ => None,
        }));
    }
    routes.retain(|route| match scope {
        Scope::Protocol(protocol) => route.protocol == protocol,
        Scope::Table(table) => route.key.table == table,
    });
    Ok(routes)
}

/// What is to be done so that `observed` becomes `wanted`: additions and replacements first, so that there is
/// never a moment without a route, then deletions.
pub(super) fn difference(
    claim: &Claim,
    observed: &BTreeMap<RouteKey, Option<RouteTarget>>,
    wanted: &BTreeMap<RouteKey, RouteTarget>,
    tuns: &Tuns,
) -> Vec<RouteChange> {
    let mut changes = Vec::new();
    for (key, target) in wanted {
        if observed.get(key) != Some(&Some(*target)) {
            let request = (RouteNetlinkMessage::NewRoute(message(claim, key, *target, tuns)), Mode::Replace);
            changes.push(RouteChange { key: *key, target: Some(*target), request });
        }
    }
    for key in observed.keys().filter(|key| !wanted.contains_key(key)) {
        let request = (RouteNetlinkMessage::DelRoute(deletion(claim, key)), Mode::Existing);
        changes.push(RouteChange { key: *key, target: None, request });
    }
    changes
}

/// One request to the kernel and what it makes of a route.
#[derive(Debug)]
pub(super) struct RouteChange {
    pub(super) key: RouteKey,
    /// What the route leads to afterwards; `None` if it is gone.
    pub(super) target: Option<RouteTarget>,
    pub(super) request: (RouteNetlinkMessage, Mode),
}

/// Tables of ours in which somebody else has routes.
pub(super) async fn shared_tables(netlink: &Netlink, claim: &Claim) -> io::Result<BTreeSet<u32>> {
    let tables = [claim.overlay_table, claim.policy_table];
    let mut shared = BTreeSet::new();
    for table in tables {
        if dump(netlink, Scope::Table(table)).await?.iter().any(|route| route.protocol != claim.protocol) {
            shared.insert(table);
        }
    }
    Ok(shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::{HOLD_METRIC, TUN_METRIC};

    fn key(destination: &str, metric: u32) -> RouteKey {
        RouteKey { table: 1180, destination: destination.parse().unwrap(), metric }
    }

    #[test]
    fn a_route_survives_the_way_to_the_kernel_and_back() {
        let claim = Claim::default();
        let source: Option<IpAddr> = Some("10.1.0.1".parse().unwrap());
        for (key, target) in [
            (key("10.4.0.0/16", TUN_METRIC), RouteTarget::Tun { source }),
            (key("0.0.0.0/0", HOLD_METRIC), RouteTarget::Unreachable),
            (key("::/0", HOLD_METRIC), RouteTarget::Unreachable),
            (key("fd5d:ac:1::/64", TUN_METRIC), RouteTarget::Tun { source: None }),
            (key("fd5d:ac:2::/64", TUN_METRIC), RouteTarget::ClassTun { class: 3, source: None }),
            (key("10.5.0.0/16", TUN_METRIC), RouteTarget::ClassTun { class: 3, source }),
            (key("192.0.2.1/32", 10), RouteTarget::Throw),
        ] {
            let tuns = Tuns::from([(0, 7), (3, 9)]);
            let route = parse(&message(&claim, &key, target, &tuns)).unwrap();
            assert_eq!(route.key, key);
            assert_eq!(route.protocol, claim.protocol);
            assert_eq!(route.target(&tuns), Some(target));
            let gone = route.target(&Tuns::new());
            assert_eq!(gone, Some(target).filter(|target| target.tun().is_none()), "another device");
        }
    }

    #[test]
    fn only_differences_act_and_additions_come_first() {
        let claim = Claim::default();
        let target = RouteTarget::Tun { source: None };
        let observed = BTreeMap::from([
            (key("10.1.0.0/16", TUN_METRIC), Some(target)),
            (key("10.2.0.0/16", TUN_METRIC), Some(target)),
            (key("10.3.0.0/16", TUN_METRIC), None),
        ]);
        let wanted = BTreeMap::from([
            (key("10.1.0.0/16", TUN_METRIC), target),
            (key("10.3.0.0/16", TUN_METRIC), target),
            (key("10.4.0.0/16", TUN_METRIC), target),
        ]);
        let changes = difference(&claim, &observed, &wanted, &Tuns::from([(0, 7)]));
        let summary: Vec<_> = changes
            .iter()
            .map(|change| (change.key.destination.to_string(), change.target.is_some()))
            .collect();
        assert_eq!(
            summary,
            [("10.3.0.0/16".into(), true), ("10.4.0.0/16".into(), true), ("10.2.0.0/16".into(), false)]
        );
        let same = BTreeMap::from([(key("10.1.0.0/16", TUN_METRIC), Some(target))]);
        assert!(
            difference(
                &claim,
                &same,
                &BTreeMap::from([(key("10.1.0.0/16", TUN_METRIC), target)]),
                &Tuns::from([(0, 7)])
            )
            .is_empty()
        );
    }
}
