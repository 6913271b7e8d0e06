//! A UDP socket of Linux with segmentation and coalescing.

use super::control_message::ControlBuffer;
use super::device::{Datagrams, SendError, UdpTransport};
use super::socket_options as options;
use crate::forwarding::Transmit;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Octets of `struct sockaddr_storage`, on every Linux.
const ADDRESS_LEN: libc::socklen_t = 128;
const _: () = assert!(size_of::<libc::sockaddr_storage>() == 128);

/// How to open a socket.
#[derive(Debug, Clone)]
pub struct SocketConfig {
    /// Address and port to bind; an unspecified address takes all.
    pub bind: SocketAddr,
    /// Bind to this device.
    pub device: Option<String>,
    /// SO_MARK, so that routing rules know our own datagrams.
    pub mark: Option<u32>,
    /// Ask for UDP_SEGMENT. `VIAMESH_DISABLE_UDP_GSO` in the environment overrides it.
    pub segmentation: bool,
    /// Ask for UDP_GRO. `VIAMESH_DISABLE_UDP_GRO` in the environment overrides it.
    pub coalescing: bool,
    /// Octets of each kernel buffer.
    pub buffer: usize,
}

impl SocketConfig {
    /// The usual socket for this address.
    pub fn new(bind: SocketAddr) -> Self {
        SocketConfig {
            bind,
            device: None,
            mark: None,
            segmentation: true,
            coalescing: true,
            buffer: 16 << 20,
        }
    }
}

/// Something that was asked for and not obtained. The socket works without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocketNote {
    /// A kernel buffer is smaller than asked for.
    #[error("the {direction} buffer of {bind} has {got} octets instead of {wanted}: raise net.core.{sysctl}")]
    Buffer {
        /// The socket.
        bind: SocketAddr,
        /// "receive" or "send".
        direction: &'static str,
        /// The limit to raise.
        sysctl: &'static str,
        /// Asked for, in octets.
        wanted: usize,
        /// Obtained, in octets.
        got: usize,
    },
    /// No UDP_SEGMENT: each datagram is a system call.
    #[error("{0} sends without segmentation offload")]
    NoSegmentation(SocketAddr),
    /// No UDP_GRO: each datagram is a system call.
    #[error("{0} receives without coalescing")]
    NoCoalescing(SocketAddr),
}

/// The socket.
#[derive(Debug)]
pub struct UdpSocketLinux {
    socket: UdpSocket,
    local: SocketAddr,
    segmentation: bool,
    overflow: u64,
    last_overflow: u32,
    notes: Vec<SocketNote>,
}

impl UdpSocketLinux {
    /// Opens, binds and sets up a socket. Nobody else may use the port: no SO_REUSEADDR.
    ///
    /// # Errors
    /// `AddrInUse` if the port is taken, `PermissionDenied` for a mark or device without
    /// CAP_NET_ADMIN, or what the kernel says.
    pub fn bind(config: &SocketConfig) -> io::Result<Self> {
        let socket = options::open(config)?;
        let local = socket.local_addr()?;
        let mut notes = options::set_buffers(&socket, local, config.buffer);
        options::set_reception(&socket, local)?;
        let allowed = |name: &str| std::env::var_os(name).is_none();
        let segmentation = config.segmentation
            && allowed("VIAMESH_DISABLE_UDP_GSO")
            && options::supports_segmentation(&socket);
        let coalescing =
            config.coalescing && allowed("VIAMESH_DISABLE_UDP_GRO") && options::enable_coalescing(&socket);
        if !segmentation {
            notes.push(SocketNote::NoSegmentation(local));
        }
        if !coalescing {
            notes.push(SocketNote::NoCoalescing(local));
        }
        Ok(UdpSocketLinux { socket, local, segmentation, overflow: 0, last_overflow: 0, notes })
    }

    /// What could not be obtained.
    pub fn notes(&self) -> &[SocketNote] {
        &self.notes
    }

    /// Sends from the source that is known; if the host has lost that address, from the one that the kernel chooses.
    fn send_one(&self, contents: &[u8], segment: Option<u16>, transmit: &Transmit<'_>) -> io::Result<()> {
        let source = transmit.route.local;
        match self.send_from(source, contents, segment, transmit) {
            Err(error) if !source.is_unspecified() && may_be_about_the_source(&error) => {
                self.send_from(Ipv4Addr::UNSPECIFIED.into(), contents, segment, transmit)
            }
            outcome => outcome,
        }
    }

    /// Sends from this source; an unspecified one leaves the choice to the kernel.
    fn send_from(
        &self,
        source: IpAddr,
        contents: &[u8],
        segment: Option<u16>,
        transmit: &Transmit<'_>,
    ) -> io::Result<()> {
        let address = SockaddrStorage::from(transmit.route.remote);
        let mut control = ControlBuffer::new();
        self.push_source(&mut control, source);
        self.push_ecn(&mut control, transmit.route.ecn);
        if let Some(segment) = segment {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        let mut slice =
            libc::iovec { iov_base: contents.as_ptr().cast_mut().cast(), iov_len: contents.len() };
        // SAFETY: msghdr is plain data for which all zeroes is a valid value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = address.len();
        message.msg_iov = &raw mut slice;
        message.msg_iovlen = 1;
        if control.len() > 0 {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = control.len() as _;
        }
        loop {
            // SAFETY: every pointer in `message` is to a live local or to `contents`, with the length
            // beside it; sendmsg writes to none of them.
            let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const message, 0) };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// The source address, where it is known: the peer expects the one that it sends to.
    fn push_source(&self, control: &mut ControlBuffer, source: IpAddr) {
        match source {
            IpAddr::V4(source) if !source.is_unspecified() && self.local.is_ipv4() => {
                // struct in_pktinfo: interface 0 (any), source, destination (unused).
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&source.octets());
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            IpAddr::V6(source) if !source.is_unspecified() && self.local.is_ipv6() => {
                // struct in6_pktinfo: source, interface 0 (any).
                let mut info = [0; 20];
                info[..16].copy_from_slice(&source.octets());
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            _ => {}
        }
    }

    fn push_ecn(&self, control: &mut ControlBuffer, ecn: u8) {
        if ecn == 0 {
            return;
        }
        let value = libc::c_int::from(ecn).to_ne_bytes();
        if self.local.is_ipv4() {
            control.push(libc::IPPROTO_IP, libc::IP_TOS, &value);
        } else {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &value);
        }
    }

    fn send_singly(&self, transmit: &Transmit<'_>) -> Result<(), SendError> {
        let mut done = 0;
        for datagram in transmit.contents.chunks(transmit.segment.max(1)) {
            if let Err(error) = self.send_one(datagram, None, transmit) {
                return Err(SendError { done, error, segmented: false });
            }
            done += datagram.len();
        }
        Ok(())
    }

    fn read_control(&mut self, control: &ControlBuffer, len: usize, datagrams: &mut Datagrams) {
        for (level, kind, data) in control.messages(len) {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let size = number(data).and_then(|size| usize::try_from(size).ok());
                    datagrams.segment = size.filter(|size| *size > 0).unwrap_or(datagrams.len);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => datagrams.ecn = data.first().map_or(0, |tos| tos & 3),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    datagrams.ecn = number(data).and_then(|class| u8::try_from(class & 3).ok()).unwrap_or(0);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let address = data.get(4..).and_then(|data| data.first_chunk::<4>());
                    datagrams.local = address.map(|address| Ipv4Addr::from(*address).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    datagrams.local = data.first_chunk::<16>().map(|address| Ipv6Addr::from(*address).into());
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => datagrams.stamp = timespec(data),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    let total = number(data).map_or(self.last_overflow, i32::cast_unsigned);
                    self.overflow += u64::from(total.wrapping_sub(self.last_overflow));
                    self.last_overflow = total;
                }
                _ => {}
            }
        }
    }
}

impl UdpTransport for UdpSocketLinux {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Datagrams> {
        let mut control = ControlBuffer::new();
        // SAFETY: sockaddr_storage and msghdr are plain data for which all zeroes is a valid value.
        let (mut address, mut message): (libc::sockaddr_storage, libc::msghdr) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        message.msg_name = (&raw mut address).cast();
        message.msg_namelen = ADDRESS_LEN;
        message.msg_iov = &raw mut slice;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = super::control_message::CAPACITY as _;
        // SAFETY: every pointer in `message` is to a live, exclusively borrowed buffer with its length
        // beside it; the kernel writes at most that much.
        let received =
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
        let Ok(len) = usize::try_from(received) else { return Err(io::Error::last_os_error()) };
        let remote = peer(&address, message.msg_namelen)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "datagram without a source address"))?;
        let mut datagrams = Datagrams { len, segment: len, local: None, remote, ecn: 0, stamp: None };
        self.read_control(&control, message.msg_controllen, &mut datagrams);
        if message.msg_flags & libc::MSG_TRUNC != 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "datagram longer than the buffer"));
        }
        Ok(datagrams)
    }

    fn send(&mut self, transmit: &Transmit<'_>) -> Result<(), SendError> {
        let route = &transmit.route;
        if route.fragment {
            return options::while_fragmenting(&self.socket, self.local, || self.send_singly(transmit));
        }
        let segment = u16::try_from(transmit.segment).ok().filter(|_| transmit.count() > 1);
        match segment {
            Some(segment) if self.segmentation && !route.single => self
                .send_one(transmit.contents, Some(segment), transmit)
                .map_err(|error| SendError { done: 0, error, segmented: true }),
            _ => self.send_singly(transmit),
        }
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn overflow(&self) -> u64 {
        self.overflow
    }
}

impl AsFd for UdpSocketLinux {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What the kernel says, among other things, when the source is no address of this host.
fn may_be_about_the_source(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENETUNREACH | libc::EADDRNOTAVAIL))
}

fn number(data: &[u8]) -> Option<i32> {
    data.first_chunk().map(|octets| i32::from_ne_bytes(*octets))
}

fn timespec(data: &[u8]) -> Option<Duration> {
    let seconds = i64::from_ne_bytes(*data.first_chunk()?);
    let nanoseconds = i64::from_ne_bytes(*data.get(8..)?.first_chunk()?);
    Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?))
}

/// The peer's address in what the kernel wrote.
fn peer(address: &libc::sockaddr_storage, len: libc::socklen_t) -> Option<SocketAddr> {
    // SAFETY: `address` is a live sockaddr_storage and `len` says how much of it the kernel wrote;
    // from_raw checks the family against the length and copies.
    let address = unsafe { SockaddrStorage::from_raw((&raw const *address).cast(), Some(len)) }?;
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    let v6 = address.as_sockaddr_in6()?;
    Some(SocketAddr::V6((*v6).into()))
}
