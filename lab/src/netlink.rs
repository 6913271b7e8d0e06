//! The few requests to the kernel's rtnetlink that a world needs, written and read by hand.
//!
//! All numbers are in host byte order, addresses in network byte order, as netlink wants them. A socket acts in the
//! namespace of the thread that opened it.
#![expect(
    clippy::cast_possible_truncation,
    reason = "libc gives small constants larger types than the headers have"
)]

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use ipnet::IpNet;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use crate::error::{Result, Trying};

const HEADER_LENGTH: usize = 16;
const ACKNOWLEDGE: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
const CREATE: u16 = libc::NLM_F_CREATE as u16;
const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
const EXCLUSIVE: u16 = libc::NLM_F_EXCL as u16;

/// Nested attribute numbers that `libc` does not name.
const VETH_INFO_PEER: u16 = 1;

/// IPCTNL_MSG_CT_DELETE of the connection tracking subsystem.
const FLOW_DELETE: u16 = (libc::NFNL_SUBSYS_CTNETLINK as u16) << 8 | 2;

/// A netlink socket.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// What to change of a link; `None` leaves it as it is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LinkChange {
    pub(crate) up: Option<bool>,
    pub(crate) mtu: Option<u32>,
    pub(crate) transmit_queue: Option<u32>,
    pub(crate) mac: Option<[u8; 6]>,
}

/// One message of a dump: its type and its body.
pub(crate) type Dumped = (u16, Vec<u8>);

impl Netlink {
    /// Opens rtnetlink in the namespace of the calling thread.
    pub(crate) fn open() -> Result<Self> {
        Self::open_protocol(SockProtocol::NetlinkRoute)
    }

    /// Opens another netlink family.
    pub(crate) fn open_protocol(protocol: SockProtocol) -> Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)
            .trying(|| "opening a netlink socket".into())?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Opens the netlink of netfilter.
    pub(crate) fn open_netfilter() -> Result<Self> {
        Self::open_protocol(SockProtocol::NetlinkNetFilter)
    }

    /// Makes connection tracking forget all flows.
    pub(crate) fn forget_flows(&mut self) -> Result<()> {
        // `struct nfgenmsg`: any family, version 0.
        self.request(Message::new(FLOW_DELETE, ACKNOWLEDGE, &[0; 4])).trying(|| "forgetting flows".into())
    }

    /// Changes a link of this namespace.
    pub(crate) fn change_link(&mut self, index: u32, change: LinkChange) -> Result<()> {
        let up = libc::IFF_UP as u32;
        let (flags, mask) = change.up.map_or((0, 0), |on| (if on { up } else { 0 }, up));
        let mut message = Message::new(libc::RTM_NEWLINK, ACKNOWLEDGE, &interface_header(index, flags, mask));
        if let Some(mtu) = change.mtu {
            message.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        }
        if let Some(length) = change.transmit_queue {
            message.attribute(libc::IFLA_TXQLEN, &length.to_ne_bytes());
        }
        if let Some(mac) = change.mac {
            message.attribute(libc::IFLA_ADDRESS, &mac);
        }
        self.request(message).trying(|| format!("changing link {index} ({change:?})"))
    }

    /// The flags of a link of this namespace (`IFF_…`).
    pub(crate) fn link_flags(&mut self, index: u32) -> Result<libc::c_int> {
        let links = self.dump(libc::RTM_GETLINK, &interface_header(0, 0, 0))?;
        let word =
            |body: &[u8], offset: usize| body.get(offset..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let ours = links.iter().find(|(_, body)| word(body, 4) == Some(index));
        Ok(ours.and_then(|(_, body)| word(body, 8)).unwrap_or(0).cast_signed())
    }

    /// Adds an address, without duplicate address detection.
    pub(crate) fn add_address(&mut self, index: u32, address: IpNet) -> Result<()> {
        let no_detection = libc::IFA_F_NODAD;
        let mut header = vec![family(address.addr()), address.prefix_len(), 0, 0];
        header.extend_from_slice(&index.to_ne_bytes());
        let mut message = Message::new(libc::RTM_NEWADDR, ACKNOWLEDGE | CREATE | REPLACE, &header);
        let octets = octets(address.addr());
        message.attribute(libc::IFA_LOCAL, &octets);
        message.attribute(libc::IFA_ADDRESS, &octets);
        message.attribute(libc::IFA_FLAGS, &no_detection.to_ne_bytes());
        self.request(message).trying(|| format!("adding the address {address} to link {index}"))
    }

    /// Removes an address.
    pub(crate) fn remove_address(&mut self, index: u32, address: IpNet) -> Result<()> {
        let mut header = vec![family(address.addr()), address.prefix_len(), 0, 0];
        header.extend_from_slice(&index.to_ne_bytes());
        let mut message = Message::new(libc::RTM_DELADDR, ACKNOWLEDGE, &header);
        let octets = octets(address.addr());
        message.attribute(libc::IFA_LOCAL, &octets);
        message.attribute(libc::IFA_ADDRESS, &octets);
        self.request(message).trying(|| format!("removing the address {address} from link {index}"))
    }

    /// Adds a route to the main table, or replaces the one to the same destination.
    pub(crate) fn add_route(&mut self, destination: IpNet, via: IpAddr) -> Result<()> {
        let header =
            route_header(destination, libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST);
        let mut message = Message::new(libc::RTM_NEWROUTE, ACKNOWLEDGE | CREATE | REPLACE, &header);
        message.attribute(libc::RTA_DST, &octets(destination.network()));
        message.attribute(libc::RTA_GATEWAY, &octets(via));
        self.request(message).trying(|| format!("adding a route to {destination} via {via}"))
    }

    /// Removes a route from the main table.
    pub(crate) fn remove_route(&mut self, destination: IpNet) -> Result<()> {
        let header = route_header(destination, 0, libc::RT_SCOPE_NOWHERE, 0);
        let mut message = Message::new(libc::RTM_DELROUTE, ACKNOWLEDGE, &header);
        message.attribute(libc::RTA_DST, &octets(destination.network()));
        self.request(message).trying(|| format!("removing the route to {destination}"))
    }

    /// Creates a veth pair: one end here, the other in the namespace that `peer_namespace` refers to.
    pub(crate) fn add_veth(&mut self, name: &str, peer_name: &str, peer_namespace: RawFd) -> Result<()> {
        let header = interface_header(0, 0, 0);
        let mut message = Message::new(libc::RTM_NEWLINK, ACKNOWLEDGE | CREATE | EXCLUSIVE, &header);
        message.attribute(libc::IFLA_IFNAME, &text(name));
        message.nested(libc::IFLA_LINKINFO, |info| {
            info.attribute(libc::IFLA_INFO_KIND, b"veth");
            info.nested(libc::IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |peer| {
                    peer.bytes.extend_from_slice(&header);
                    peer.attribute(libc::IFLA_IFNAME, &text(peer_name));
                    peer.attribute(libc::IFLA_NET_NS_FD, &peer_namespace.to_ne_bytes());
                });
            });
        });
        self.request(message).trying(|| format!("creating the veth pair {name} and {peer_name}"))
    }

    /// All objects of one kind; `header` is the body that the kind wants.
    pub(crate) fn dump(&mut self, kind: u16, header: &[u8]) -> Result<Vec<Dumped>> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        self.exchange(Message::new(kind, flags, header))
            .trying(|| format!("reading a netlink table ({kind})"))
    }

    fn request(&mut self, message: Message) -> io::Result<()> {
        self.exchange(message).map(drop)
    }

    /// Sends a request and reads until its acknowledgement or the end of its dump.
    fn exchange(&mut self, message: Message) -> io::Result<Vec<Dumped>> {
        self.sequence += 1;
        let socket = self.socket.as_raw_fd();
        send(socket, &message.finish(self.sequence), MsgFlags::empty())?;
        let mut answers = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let length = recv(socket, &mut buffer, MsgFlags::empty())?;
            let mut rest = buffer.get(..length).unwrap_or_default();
            while let Some((header, body, tail)) = next_message(rest) {
                rest = tail;
                if header.sequence != self.sequence {
                    continue;
                }
                match i32::from(header.kind) {
                    libc::NLMSG_DONE => return Ok(answers),
                    libc::NLMSG_ERROR => return acknowledgement(body).map(|()| answers),
                    _ => answers.push((header.kind, body.to_vec())),
                }
            }
        }
    }
}

struct Header {
    kind: u16,
    sequence: u32,
}

/// Takes the next message off: its header, its body, and what follows.
fn next_message(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let sequence = u32::from_ne_bytes(*bytes.get(8..)?.first_chunk()?);
    let body = bytes.get(HEADER_LENGTH..length)?;
    Some((Header { kind, sequence }, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The errno in an NLMSG_ERROR message; zero acknowledges.
fn acknowledgement(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(negative) => Err(io::Error::from_raw_os_error(-negative)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Walks the attributes of a message body behind its fixed header: kind (without flags) and value of each.
pub(crate) fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let (Some(length), Some(kind)) = (bytes.first_chunk(), bytes.get(2..).and_then(|b| b.first_chunk()))
    {
        let length = usize::from(u16::from_ne_bytes(*length));
        let Some(value) = bytes.get(4..length) else { break };
        found.push((u16::from_ne_bytes(*kind) & 0x3fff, value));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// A request under construction.
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_LENGTH];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(header);
        Self { bytes }
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |message| message.bytes.extend_from_slice(value));
    }

    /// An attribute whose value `fill` writes; its length is patched afterwards.
    fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        self.pad();
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        fill(self);
        let length = u16::try_from(self.bytes.len() - start).unwrap_or(u16::MAX);
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// `struct ifinfomsg`.
fn interface_header(index: u32, flags: u32, mask: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&mask.to_ne_bytes());
    header
}

/// `struct rtmsg`.
fn route_header(destination: IpNet, protocol: u8, scope: u8, kind: u8) -> [u8; 12] {
    let mut header = [0; 12];
    header[0] = family(destination.addr());
    header[1] = destination.prefix_len();
    header[4] = libc::RT_TABLE_MAIN;
    header[5] = protocol;
    header[6] = scope;
    header[7] = kind;
    header
}

/// The address family's number, as the one byte that these headers have for it.
pub(crate) fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A name with the closing zero that the kernel wants.
fn text(name: &str) -> Vec<u8> {
    name.bytes().chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::{Message, attributes, next_message};

    #[test]
    fn attributes_are_padded_and_found_again() {
        let mut message = Message::new(16, 1, &[]);
        message.attribute(3, b"abc");
        message.nested(18, |inner| inner.attribute(1, b"veth"));
        let bytes = message.finish(7);
        let (header, body, rest) = next_message(&bytes).unwrap();
        assert_eq!((header.kind, header.sequence, rest.len()), (16, 7, 0));
        let found = attributes(body);
        assert_eq!(found[0], (3, &b"abc"[..]));
        assert_eq!(attributes(found[1].1), [(1, &b"veth"[..])]);
    }

    #[test]
    fn garbage_ends_the_walk() {
        assert!(next_message(&[1, 2, 3]).is_none());
        assert!(attributes(&[255, 255, 0, 0, 1]).is_empty());
        assert!(attributes(&[0, 0, 0, 0]).is_empty());
    }
}
