//! The port through which the data path hands bytes to whoever moves them.

use super::ring::{Punt, Stranger};
use super::snapshot::{LinkId, SocketIndex};
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};

/// The most datagrams that one send takes (the kernel's `UDP_MAX_SEGMENTS` before Linux 6.9).
pub const MAX_SEGMENTS: usize = 64;

/// The most octets that one send takes: the longest UDP payload over IPv4.
pub const MAX_TRAIN_LEN: usize = 65_507;

/// The most slices in one frame to the TUN: virtio header, first packet, payloads of the others.
pub const MAX_SLICES: usize = MAX_SEGMENTS + 2;

/// Datagrams of one size, except a shorter last, for one peer: one send.
#[derive(Debug, Clone, Copy)]
pub struct Transmit<'a> {
    /// The datagrams, one after the other.
    pub contents: &'a [u8],
    /// Octets of each datagram but the last.
    pub segment: usize,
    /// Where they go.
    pub route: TrainRoute,
}

impl Transmit<'_> {
    /// How many datagrams there are.
    pub fn count(&self) -> usize {
        self.contents.len().div_ceil(self.segment.max(1))
    }
}

/// Everything that the datagrams of a train have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainRoute {
    /// The link, unless the control plane sends on its own account.
    pub link: Option<LinkId>,
    /// The socket to send from.
    pub socket: SocketIndex,
    /// The source address; unspecified lets the kernel choose.
    pub local: IpAddr,
    /// The destination.
    pub remote: SocketAddr,
    /// The ECN codepoint of the outer header, 0–3.
    pub ecn: u8,
    /// Let the IP layer fragment, and send the datagrams one by one.
    pub fragment: bool,
    /// Send the datagrams one by one, because segmentation offload failed on this link.
    pub single: bool,
}

/// What became of a transmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way, or was refused for good and counted.
    Taken,
    /// The socket is full. Keep the rest and come back.
    Blocked {
        /// Octets of the contents that have left: whole datagrams, none of a train in one send.
        done: usize,
    },
}

/// Takes what the data path emits. The runtime stands behind it, or a test.
pub trait Egress {
    /// Sends a train.
    fn transmit(&mut self, transmit: &Transmit<'_>) -> Sent;

    /// Writes one frame, virtio header first, to the TUN. Says whether the TUN took it.
    fn deliver(&mut self, frame: &[IoSlice<'_>]) -> bool;

    /// Hands something authenticated to the control plane. Says whether there was room.
    fn punt(&mut self, punt: Punt) -> bool;

    /// Hands a stranger's message to the control plane. Says whether there was room.
    fn stranger(&mut self, stranger: Stranger) -> bool;
}
