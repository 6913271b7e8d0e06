//! The TUN device's properties.

use std::io;

use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage,
};
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage};

use super::netlink::{self, Mode, Netlink};
use super::problem::Problem;
use super::setting::Setting;
use super::state::Tun;

/// The device as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Device {
    pub(super) index: u32,
    up: bool,
    mtu: u32,
    gso_max_size: Option<u32>,
    gso_ipv4_max_size: Option<u32>,
    queueless: bool,
    /// `None` where the host has no IPv6.
    makes_link_local: Option<bool>,
}

/// Looks the device up; `None` if it does not exist.
pub(super) async fn find(netlink: &Netlink, name: &str) -> io::Result<Option<Device>> {
    let mut request = LinkMessage::default();
    request.attributes.push(LinkAttribute::IfName(name.to_owned()));
    match netlink.get(RouteNetlinkMessage::GetLink(request)).await {
        Ok(Some(RouteNetlinkMessage::NewLink(message))) => Ok(Some(parse(&message))),
        Ok(_) => Ok(None),
        Err(error) if netlink::is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(message: &LinkMessage) -> Device {
    let mut device = Device {
        index: message.header.index,
        up: message.header.flags.contains(LinkFlags::Up),
        ..Device::default()
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::Mtu(mtu) => device.mtu = *mtu,
            LinkAttribute::GsoMaxSize(size) => device.gso_max_size = Some(*size),
            LinkAttribute::GsoIpv4MaxSize(size) => device.gso_ipv4_max_size = Some(*size),
            LinkAttribute::Qdisc(name) => device.queueless = name == "noqueue",
            LinkAttribute::AfSpecUnspec(families) => device.makes_link_local = makes_link_local(families),
            _ => {}
        }
    }
    device
}

fn makes_link_local(families: &[AfSpecUnspec]) -> Option<bool> {
    families.iter().find_map(|family| match family {
        AfSpecUnspec::Inet6(attributes) => attributes.iter().find_map(|attribute| match attribute {
            AfSpecInet6::AddrGenMode(mode) => Some(*mode != In6AddrGenMode::None),
            _ => None,
        }),
        _ => None,
    })
}

/// Brings the device to what `tun` says. Link-local addresses live on links, not on the TUN, so the kernel is
/// told not to make one before the device comes up.
pub(super) async fn configure(
    netlink: &Netlink,
    device: &mut Device,
    tun: &Tun,
    problems: &mut Vec<Problem>,
) {
    if device.makes_link_local == Some(true) {
        let mode = vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)];
        let change = LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(mode)]);
        if set(netlink, device.index, "no link-local address on the TUN", vec![change], false, problems).await
        {
            device.makes_link_local = Some(false);
        }
    }
    if !device.up || device.mtu != tun.mtu {
        let what = format!("MTU {} on {}", tun.mtu, tun.name);
        if set(netlink, device.index, &what, vec![LinkAttribute::Mtu(tun.mtu)], true, problems).await {
            device.up = true;
            device.mtu = tun.mtu;
        }
    }
    limit_super_packets(netlink, device, tun, problems).await;
    if !device.queueless {
        device.queueless = remove_queue(netlink, device.index, problems).await;
    }
}

/// A super-packet and its overhead must fit one UDP send. Kernels before 6.3 have no limit of its own for
/// IPv4 and ignore the attribute.
async fn limit_super_packets(netlink: &Netlink, device: &mut Device, tun: &Tun, problems: &mut Vec<Problem>) {
    let differs = |size: Option<u32>| size.is_some_and(|size| size != tun.gso_max_size);
    if !differs(device.gso_max_size) && !differs(device.gso_ipv4_max_size) {
        return;
    }
    let sizes =
        vec![LinkAttribute::GsoMaxSize(tun.gso_max_size), LinkAttribute::GsoIpv4MaxSize(tun.gso_max_size)];
    if set(netlink, device.index, "the largest super-packet on the TUN", sizes, false, problems).await {
        device.gso_max_size = Some(tun.gso_max_size);
        device.gso_ipv4_max_size = device.gso_ipv4_max_size.map(|_| tun.gso_max_size);
    }
}

async fn set(
    netlink: &Netlink,
    index: u32,
    what: &str,
    attributes: Vec<LinkAttribute>,
    up: bool,
    problems: &mut Vec<Problem>,
) -> bool {
    let mut message = LinkMessage::default();
    message.header.index = index;
    if up {
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
    }
    message.attributes = attributes;
    match netlink.execute(RouteNetlinkMessage::SetLink(message), Mode::Existing).await {
        Ok(()) => true,
        Err(error) => {
            problems.push(Problem::refused(what, &error));
            false
        }
    }
}

/// Packets go straight to the TUN's own ring: a second queue before it only adds work.
async fn remove_queue(netlink: &Netlink, index: u32, problems: &mut Vec<Problem>) -> bool {
    let Ok(index) = i32::try_from(index) else { return false };
    let mut message = TcMessage::with_index(index);
    message.header.parent = TcHandle::ROOT;
    message.attributes.push(TcAttribute::Kind("noqueue".to_owned()));
    match netlink.execute(RouteNetlinkMessage::NewQueueDiscipline(message), Mode::Replace).await {
        Ok(()) => true,
        Err(error) => {
            problems.push(Problem::refused("queueing discipline noqueue on the TUN", &error));
            false
        }
    }
}

/// Settings of the TUN alone.
pub(super) fn apply_settings(tun: &str, ipv6: bool, problems: &mut Vec<Problem>) {
    let v4 = [
        // Loose: mesh traffic may come by another way than it would go (max of this and `all` applies).
        ("rp_filter", "2"),
        // Other programs' IPsec policies must not catch what comes out of our tunnels.
        ("disable_policy", "1"),
        ("disable_xfrm", "1"),
        ("send_redirects", "0"),
    ];
    let v6 = [("accept_ra", "0"), ("router_solicitations", "0"), ("disable_policy", "1")];
    let mut apply = |family: &str, settings: &[(&str, &str)]| {
        for (name, value) in settings {
            let setting = Setting::interface(family, tun, name);
            if setting.read().is_some() {
                problems.extend(setting.write(value).err());
            }
        }
    };
    apply("ipv4", &v4);
    if ipv6 {
        apply("ipv6", &v6);
    }
}
