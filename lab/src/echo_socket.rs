//! A raw socket that sends ICMP echo requests and finds the answers to its own (RFC 792, RFC 4443 §4.1).

use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, recvmsg, sendto, socket,
};

use crate::error::{Result, Trying};
use crate::frame::{finish, sum};

const HEADER: usize = 8;
/// What tells our payload from that of another program with the same identifier.
const MARK: [u8; 8] = *b"viamesh!";
/// Mark and number.
const SHORTEST_PAYLOAD: usize = 16;

/// A non-blocking ICMP or ICMPv6 socket.
#[derive(Debug)]
pub(crate) struct EchoSocket {
    socket: OwnedFd,
    target: IpAddr,
    identifier: u16,
}

impl EchoSocket {
    /// Opens a socket in the namespace of the calling thread.
    pub(crate) fn open(target: IpAddr, source: Option<IpAddr>, identifier: u16) -> Result<Self> {
        let (family, protocol) = match target {
            IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
            IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket =
            socket(family, SockType::Raw, flags, protocol).trying(|| "opening a raw ICMP socket".into())?;
        if let Some(source) = source {
            let address = SockaddrStorage::from(SocketAddr::new(source, 0));
            bind(socket.as_raw_fd(), &address).trying(|| format!("binding to {source}"))?;
        }
        Ok(Self { socket, target, identifier })
    }

    /// Sends the numbered probe.
    pub(crate) fn send(&self, number: u64, payload: usize) -> nix::Result<()> {
        let mut message = vec![self.request_type(), 0, 0, 0];
        message.extend_from_slice(&self.identifier.to_be_bytes());
        // The low 16 bits, for those who watch with other tools; the payload has them all.
        message.extend_from_slice(&number.to_be_bytes()[6..]);
        message.extend_from_slice(&MARK);
        message.extend_from_slice(&number.to_be_bytes());
        message.resize(HEADER + payload.max(SHORTEST_PAYLOAD), 0);
        if self.target.is_ipv4() {
            // For ICMPv6 the kernel does it, since only it knows the source address.
            let checksum = finish(sum(&message, 0), false);
            message[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
        let to = SockaddrStorage::from(SocketAddr::new(self.target, 0));
        sendto(self.socket.as_raw_fd(), &message, &to, MsgFlags::empty()).map(drop)
    }

    /// The number of the next answered probe; `None` when no more answers wait.
    pub(crate) fn receive(&self) -> Result<Option<u64>> {
        let mut buffer = [0; 256];
        loop {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let received =
                recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut parts, None, MsgFlags::empty());
            let length = match received {
                Ok(message) => message.bytes,
                Err(Errno::EAGAIN) => return Ok(None),
                // ICMP errors that concern this socket, and signals.
                Err(Errno::EINTR | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ECONNREFUSED) => {
                    continue;
                }
                Err(errno) => return Err(errno).trying(|| "receiving an echo".into()),
            };
            if let Some(number) = buffer.get(..length).and_then(|message| self.answer(message)) {
                return Ok(Some(number));
            }
        }
    }

    /// The number in a message, if it answers a probe of ours. The raw IPv4 socket shows the IP header too.
    fn answer(&self, message: &[u8]) -> Option<u64> {
        let icmp = match self.target {
            IpAddr::V4(_) => message.get(usize::from(message.first()? & 0x0f) * 4..)?,
            IpAddr::V6(_) => message,
        };
        let is_reply = *icmp.first()? == self.reply_type();
        let is_ours = icmp.get(4..6)? == self.identifier.to_be_bytes() && icmp.get(HEADER..16)? == MARK;
        let number = u64::from_be_bytes(*icmp.get(16..)?.first_chunk()?);
        (is_reply && is_ours).then_some(number)
    }

    fn request_type(&self) -> u8 {
        if self.target.is_ipv4() { 8 } else { 128 }
    }

    fn reply_type(&self) -> u8 {
        if self.target.is_ipv4() { 0 } else { 129 }
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
