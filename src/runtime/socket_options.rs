//! Options of UDP sockets that the standard library does not know.

use super::device::SendError;
use super::udp_linux::{SocketConfig, SocketNote};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Opens and binds. What must be set before the first datagram arrives is set before the bind.
pub(super) fn open(config: &SocketConfig) -> io::Result<UdpSocket> {
    let family = if config.bind.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let descriptor = nix::sys::socket::socket(family, SockType::Datagram, flags, None)?;
    let socket = UdpSocket::from(descriptor);
    if config.bind.is_ipv6() {
        set(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    if let Some(mark) = config.mark {
        set(&socket, libc::SOL_SOCKET, libc::SO_MARK, mark.cast_signed())?;
    }
    if let Some(device) = &config.device {
        set_bytes(&socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device.as_bytes())?;
    }
    // The socket discovers path MTUs itself: no fragments, and no belief in ICMP from strangers.
    set_discovery(&socket, config.bind, libc::IP_PMTUDISC_PROBE)?;
    nix::sys::socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(config.bind))?;
    Ok(socket)
}

/// Asks for source address, ECN, time stamp and overflow count with each datagram.
pub(super) fn set_reception(socket: &UdpSocket, local: SocketAddr) -> io::Result<()> {
    if local.is_ipv4() {
        set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
        set(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
    } else {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
    }
    // Nothing fails without these.
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    bypass_kernel_policies(socket, local);
    Ok(())
}

/// Keeps IPsec policies of the kernel, of a strongSwan on the same host say, off our datagrams.
/// Needs CAP_NET_ADMIN and a kernel that knows them; without either there is nothing to keep off
/// or nothing to be done.
fn bypass_kernel_policies(socket: &UdpSocket, local: SocketAddr) {
    // struct xfrm_userpolicy_info of linux/xfrm.h: all zero is "any selector, action allow".
    const LEN: usize = 168;
    const DIRECTION_AT: usize = 160;
    let (level, name, family) = if local.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_XFRM_POLICY, libc::AF_INET)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_XFRM_POLICY, libc::AF_INET6)
    };
    for direction in [0, 1] {
        let mut policy = [0; LEN];
        // The family stands behind both addresses, ports and masks of the selector.
        policy[40..42].copy_from_slice(&u16::try_from(family).unwrap_or(0).to_ne_bytes());
        policy[DIRECTION_AT] = direction;
        let _ = set_bytes(socket, level, name, &policy);
    }
}

/// Large buffers, by privilege if there is any; notes what stays below the wish.
pub(super) fn set_buffers(socket: &UdpSocket, bind: SocketAddr, wanted: usize) -> Vec<SocketNote> {
    let sides = [
        ("receive", "rmem_max", libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        ("send", "wmem_max", libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ];
    let mut notes = Vec::new();
    let value = libc::c_int::try_from(wanted).unwrap_or(libc::c_int::MAX);
    for (direction, sysctl, force, plain) in sides {
        if set(socket, libc::SOL_SOCKET, force, value).is_err() {
            let _ = set(socket, libc::SOL_SOCKET, plain, value);
        }
        // The kernel doubles the value for its own bookkeeping and says so.
        let got = get(socket, libc::SOL_SOCKET, plain).map_or(0, |got| usize::try_from(got / 2).unwrap_or(0));
        if got < wanted {
            notes.push(SocketNote::Buffer { bind, direction, sysctl, wanted, got });
        }
    }
    notes
}

/// Whether the kernel knows UDP_SEGMENT. Only asked, never set: a set size would cut every send.
pub(super) fn supports_segmentation(socket: &UdpSocket) -> bool {
    get(socket, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok()
}

/// Turns UDP_GRO on where it is sound: before Linux 5.12 the kernel glued datagrams of sockets
/// that had not asked.
pub(super) fn enable_coalescing(socket: &UdpSocket) -> bool {
    kernel_is_at_least(5, 12) && set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Lets the IP layer fragment while `send` runs.
pub(super) fn while_fragmenting(
    socket: &UdpSocket,
    local: SocketAddr,
    send: impl FnOnce() -> Result<(), SendError>,
) -> Result<(), SendError> {
    let failed = |error| SendError { done: 0, error, segmented: false };
    set_discovery(socket, local, libc::IP_PMTUDISC_DONT).map_err(failed)?;
    let result = send();
    set_discovery(socket, local, libc::IP_PMTUDISC_PROBE).map_err(failed)?;
    result
}

fn set_discovery(socket: &UdpSocket, local: SocketAddr, mode: libc::c_int) -> io::Result<()> {
    if local.is_ipv4() {
        set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, mode)
    } else {
        // The values are those of IPv4.
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, mode)
    }
}

fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let Ok(name) = nix::sys::utsname::uname() else { return false };
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    let found = (numbers.next(), numbers.next());
    matches!(found, (Some(Ok(a)), Some(Ok(b))) if (a, b) >= (major, minor))
}

fn set(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set_bytes(socket, level, name, &value.to_ne_bytes())
}

fn set_bytes(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
    let len = libc::socklen_t::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `value` is live and `len` octets long; the kernel only reads it.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get(socket: &UdpSocket, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut len: libc::socklen_t = 4;
    // SAFETY: `value` and `len` are live locals and `len` says how long `value` is.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
