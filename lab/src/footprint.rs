//! What the kernel holds for a host: to show that a program left nothing behind.
#![expect(
    clippy::cast_possible_truncation,
    reason = "libc gives small constants larger types than the headers have"
)]

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::{LabError, Result};
use crate::host::Host;
use crate::netlink::{Netlink, attributes};

/// Dump requests for tables of nftables, and what they answer with.
const NFT_GET_TABLE: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETTABLE as u16;
const NFT_TABLE_NAME: u16 = 1;
const INTERFACE_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;
const NFT_HEADER: usize = 4;
/// Attributes of routes and of rules; where both have them they have the same numbers.
const SOURCE: u16 = 2;
const PRIORITY: u16 = 6;
const TABLE: u16 = 15;
const RULE_MARK: u16 = 10;

/// Links, addresses, routes, rules and nftables of a host, one line of text each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    lines: BTreeSet<String>,
}

impl Footprint {
    /// Looks at a host.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn of(host: &Host) -> Result<Self> {
        host.within(Self::of_this_namespace)?
    }

    /// All lines.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// What is here and was not there before.
    pub fn beyond(&self, before: &Self) -> Vec<String> {
        self.lines.difference(&before.lines).cloned().collect()
    }

    fn of_this_namespace() -> Result<Self> {
        let mut netlink = Netlink::open()?;
        let mut lines = BTreeSet::new();
        for (_, body) in netlink.dump(libc::RTM_GETLINK, &[0; INTERFACE_HEADER])? {
            lines.extend(link(&body));
        }
        for (_, body) in netlink.dump(libc::RTM_GETADDR, &[0; ADDRESS_HEADER])? {
            lines.extend(address(&body));
        }
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            let mut header = [0; ROUTE_HEADER];
            header[0] = family;
            for (_, body) in netlink.dump(libc::RTM_GETROUTE, &header)? {
                lines.extend(route("route", &body));
            }
            for (_, body) in netlink.dump(libc::RTM_GETRULE, &header)? {
                lines.extend(route("rule", &body));
            }
        }
        for (_, body) in nft_tables()? {
            lines.extend(nft_table(&body));
        }
        Ok(Self { lines })
    }
}

fn nft_tables() -> Result<Vec<(u16, Vec<u8>)>> {
    let answer =
        Netlink::open_netfilter().and_then(|mut netlink| netlink.dump(NFT_GET_TABLE, &[0; NFT_HEADER]));
    match answer {
        // A kernel without nftables has no tables.
        Err(LabError::System { source, .. }) if source.kind() != std::io::ErrorKind::PermissionDenied => {
            Ok(Vec::new())
        }
        answer => answer,
    }
}

fn link(body: &[u8]) -> Option<String> {
    let name = find(body, INTERFACE_HEADER, libc::IFLA_IFNAME)?;
    Some(format!("link {}", text(name)))
}

fn address(body: &[u8]) -> Option<String> {
    let length = body.get(1)?;
    let index = word(body.get(4..)?)?;
    // Of the two, the local one is ours on a point-to-point link; IPv6 gives it only there.
    let address = find(body, ADDRESS_HEADER, libc::IFA_LOCAL)
        .or_else(|| find(body, ADDRESS_HEADER, libc::IFA_ADDRESS))?;
    Some(format!("address {}/{length} on link {index}", ip(address)?))
}

/// A route or a rule: their headers and most of their attributes are alike.
fn route(kind: &str, body: &[u8]) -> Option<String> {
    let (destination_length, source_length) = (body.get(1)?, body.get(2)?);
    let flags = word(body.get(8..)?)?;
    if kind == "route" && flags & libc::RTM_F_CLONED != 0 {
        // Not a route but a memory of one that was used.
        return None;
    }
    let mut line = format!("{kind} family {}", body.first()?);
    for (name, attribute, length) in
        [("to", libc::RTA_DST, destination_length), ("from", SOURCE, source_length)]
    {
        if let Some(address) = find(body, ROUTE_HEADER, attribute).and_then(ip) {
            line += &format!(" {name} {address}/{length}");
        }
    }
    if let Some(gateway) = find(body, ROUTE_HEADER, libc::RTA_GATEWAY).and_then(ip) {
        line += &format!(" via {gateway}");
    }
    // In rules these numbers mean something else.
    let numbers: &[(&str, u16)] = match kind {
        "route" => &[("link", libc::RTA_OIF), ("metric", PRIORITY), ("table", TABLE)],
        _ => &[("priority", PRIORITY), ("mark", RULE_MARK), ("table", TABLE)],
    };
    for (name, attribute) in numbers {
        if let Some(number) = find(body, ROUTE_HEADER, *attribute).and_then(word) {
            line += &format!(" {name} {number}");
        }
    }
    Some(line + &format!(" type {}", body.get(7)?))
}

fn nft_table(body: &[u8]) -> Option<String> {
    let name = find(body, NFT_HEADER, NFT_TABLE_NAME)?;
    Some(format!("nft table family {} {}", body.first()?, text(name)))
}

/// The value of an attribute behind a header of that length.
fn find(body: &[u8], header: usize, kind: u16) -> Option<&[u8]> {
    let found = attributes(body.get(header..)?);
    found.into_iter().find(|(found, _)| *found == kind).map(|(_, value)| value)
}

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => octets.first_chunk().map(|octets| Ipv4Addr::from(*octets).into()),
        16 => octets.first_chunk().map(|octets| Ipv6Addr::from(*octets).into()),
        _ => None,
    }
}
