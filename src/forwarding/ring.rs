//! What passes between the workers and the control plane.
//!
//! Three bounded rings for each worker: authenticated packets up, strangers' messages up, and
//! everything that the control plane sends down. A full ring loses the newest message and
//! counts it; it never blocks a worker.

use super::snapshot::{LinkId, SocketIndex};
use crossbeam_queue::ArrayQueue;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// The longest IKE message that is handed up, in octets. Longer ones are dropped unread.
pub const LONGEST_STRANGER: usize = 8192;

/// From a worker to the control plane, about a peer that a security association vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Punt {
    /// An inner IP packet that the control plane answers: Babel, a probe's reply, an ICMP error.
    Packet {
        /// The link that authenticated the packet.
        link: LinkId,
        /// The whole IP packet.
        packet: Vec<u8>,
        /// When the kernel received the datagram.
        arrival: Instant,
    },
    /// The newest authenticated datagram came from another address than the link sends to.
    PeerMoved {
        /// The link whose peer moved.
        link: LinkId,
        /// The socket that received the datagram.
        socket: SocketIndex,
        /// The address of ours that it was sent to; unspecified if unknown.
        local: IpAddr,
        /// Where it came from.
        remote: SocketAddr,
        /// When the kernel received it.
        arrival: Instant,
    },
    /// The kernel refused a datagram because it knows a smaller path MTU.
    DatagramTooBig {
        /// The link whose path it is.
        link: LinkId,
        /// The UDP payload that was refused, in octets.
        datagram: usize,
    },
    /// Segmentation offload failed on a link; its trains leave as single datagrams for a while.
    SegmentationFailed {
        /// The link.
        link: LinkId,
        /// The error number of the kernel.
        errno: i32,
    },
    /// A packet could not leave because the link's security association is used up.
    SequenceExhausted {
        /// The link.
        link: LinkId,
    },
}

/// What anybody may send us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// An IKE message, its marker already removed.
    Ike(Vec<u8>),
    /// ESP for a security association that is not there; only now and then.
    UnknownSpi(u32),
}

/// A message from anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// The socket that received it.
    pub socket: SocketIndex,
    /// The address of ours that it was sent to; unspecified if unknown.
    pub local: SocketAddr,
    /// Where it came from.
    pub remote: SocketAddr,
    /// The message.
    pub heard: Heard,
    /// When the kernel received it.
    pub arrival: Instant,
}

/// From the control plane to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Down {
    /// Seal this inner IP packet and send it over this link, whatever the routes say.
    Control {
        /// The link.
        link: LinkId,
        /// A whole IP packet.
        packet: Vec<u8>,
    },
    /// Treat this IP packet as if it had been read from the TUN: steer it, route it.
    Inject {
        /// A whole IP packet.
        packet: Vec<u8>,
    },
    /// Route this IP packet as the node's own: not steered, and segments are allowed as destination.
    Originate {
        /// A whole IP packet.
        packet: Vec<u8>,
    },
    /// Write this IP packet to the TUN.
    Deliver {
        /// A whole IP packet.
        packet: Vec<u8>,
    },
    /// Send this UDP payload as it is: an IKE message with its marker, or a keepalive.
    Datagram {
        /// The socket to send from.
        socket: SocketIndex,
        /// The source address; unspecified lets the kernel choose.
        local: IpAddr,
        /// The destination.
        remote: SocketAddr,
        /// The UDP payload.
        payload: Vec<u8>,
    },
}

/// The rings of one worker.
#[derive(Debug)]
pub struct Rings {
    /// Up, vouched for by a security association.
    pub authenticated: ArrayQueue<Punt>,
    /// Up, from anybody.
    pub stranger: ArrayQueue<Stranger>,
    /// Down.
    pub down: ArrayQueue<Down>,
}

impl Rings {
    /// Rings with room for `capacity` messages each.
    pub fn new(capacity: usize) -> Self {
        Rings {
            authenticated: ArrayQueue::new(capacity),
            stranger: ArrayQueue::new(capacity),
            down: ArrayQueue::new(capacity),
        }
    }
}

impl Default for Rings {
    fn default() -> Self {
        Rings::new(512)
    }
}
