//! What a worker needs of a TUN and of a UDP socket. Behind these traits stand Linux, the other
//! systems that tun-rs knows, and memory.

use crate::forwarding::{Offload, Transmit};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// One queue of a TUN. Frames begin with a virtio header
/// ([`virtio::HEADER_LEN`](crate::forwarding::virtio::HEADER_LEN) octets).
pub trait TunDevice: Send {
    /// Reads one frame.
    ///
    /// # Errors
    /// `WouldBlock` if there is none now; anything else is the device's trouble.
    fn read(&mut self, frame: &mut [u8]) -> io::Result<usize>;

    /// Writes one frame, whose first slice is the virtio header.
    ///
    /// # Errors
    /// Why the device refused it; the frame is lost.
    fn write(&mut self, frame: &[IoSlice<'_>]) -> io::Result<()>;

    /// Which super-packets it takes.
    fn offload(&self) -> Offload;
}

/// Datagrams of one size, except a shorter last, from one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagrams {
    /// Octets in the buffer.
    pub len: usize,
    /// Octets of each datagram but the last.
    pub segment: usize,
    /// The address they were sent to, if known.
    pub local: Option<IpAddr>,
    /// Where they came from.
    pub remote: SocketAddr,
    /// The ECN codepoint of the outer header.
    pub ecn: u8,
    /// The kernel's stamp, since the Unix epoch.
    pub stamp: Option<Duration>,
}

/// A UDP socket.
pub trait UdpTransport: Send {
    /// Receives datagrams into `buffer`.
    ///
    /// # Errors
    /// `WouldBlock` if there are none now; other errors are transient (an ICMP error of another
    /// peer's) or the socket's trouble.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Datagrams>;

    /// Sends a train, in one call if the socket can.
    ///
    /// # Errors
    /// [`SendError`] says how much had left.
    fn send(&mut self, transmit: &Transmit<'_>) -> Result<(), SendError>;

    /// Address and port that the socket is bound to.
    fn local_address(&self) -> SocketAddr;

    /// Datagrams that the kernel has dropped so far because the receive buffer was full.
    fn overflow(&self) -> u64 {
        0
    }
}

/// Why a train did not leave, or not as a whole.
#[derive(Debug, thiserror::Error)]
#[error("sending stopped after {done} octets: {error}")]
pub struct SendError {
    /// Octets that had left: whole datagrams.
    pub done: usize,
    /// Why the next datagram did not.
    pub error: io::Error,
    /// The train was to leave in one call, and the kernel may have refused just that.
    pub segmented: bool,
}
