//! TCP connections from a chosen address.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::error::{Result, Trying};

/// Connects, in the namespace of the calling thread.
pub(crate) fn dial(target: SocketAddr, source: Option<IpAddr>, limit: Duration) -> Result<TcpStream> {
    let doing = || format!("connecting to {target}");
    let Some(source) = source else {
        return TcpStream::connect_timeout(&target, limit).trying(doing);
    };
    let family = if target.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).trying(doing)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(source, 0)))
        .trying(|| format!("binding to {source}"))?;
    // On Linux this limits connect too.
    let millis = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    setsockopt(&socket, SendTimeout, &TimeVal::milliseconds(millis)).trying(doing)?;
    connect(socket.as_raw_fd(), &SockaddrStorage::from(target)).trying(doing)?;
    setsockopt(&socket, SendTimeout, &TimeVal::milliseconds(0)).trying(doing)?;
    Ok(TcpStream::from(socket))
}
