//! ESP (RFC 4303) with AES-GCM (RFC 4106) or ChaCha20-Poly1305 (RFC 7634), extended sequence numbers,
//! and its UDP encapsulation (RFC 3948), as pure functions over buffers that the caller owns.
//!
//! What it deliberately does not do: it opens no socket, reads no clock, logs nothing, spawns no thread
//! and never looks inside the packets that it carries. Keys come from IKEv2; finding the SA for an SPI,
//! choosing a path and acting on a lifetime are the daemon's work.
//!
//! # The life of a packet
//!
//! Both directions are split so that the cryptography can run on another core than the bookkeeping:
//!
//! ```text
//! out:  OutboundSa::reserve(n)  ->  OutboundSa::prepare  ->  PendingSeal::seal
//! in:   InboundSa::pre_check    ->  InboundSa::open      ->  InboundSa::commit
//! ```
//!
//! The types carry the security argument. A [`SequenceNumber`] comes from a [`Reservation`] only, is not
//! `Clone`, and is consumed by sealing: a nonce cannot be used twice. An [`Opened`] comes from `open` only
//! and does not show its payload; `commit` consumes it, checks the replay window a second time and then
//! gives an [`Accepted`]: no packet can bypass the check that counts.
//!
//! All methods take `&self`; both SAs are `Send + Sync` and live in an `Arc`. Nothing allocates per packet.
//!
//! ```
//! use esp::{Algorithm, Backend, HEADER_LEN, InboundSa, OutboundSa, sealed_len};
//!
//! let key_material = [7; 36];
//! let algorithm = Algorithm::Aes256Gcm16;
//! let sender = OutboundSa::new(0x1001, algorithm, &key_material, true, Backend::default())?;
//! let receiver = InboundSa::new(0x1001, algorithm, &key_material, true, 4096, Backend::default())?;
//!
//! let packet = b"an IPv4 packet";
//! let mut datagram = vec![0; sealed_len(packet.len())];
//! for sequence in sender.reserve(1)? {
//!     datagram[HEADER_LEN..HEADER_LEN + packet.len()].copy_from_slice(packet);
//!     sender.seal(sequence, &mut datagram, packet.len(), esp::NEXT_HEADER_IPV4)?;
//! }
//!
//! let pending = receiver.pre_check(&datagram)?;
//! let opened = receiver.open(&pending, &mut datagram)?;
//! let accepted = receiver.commit(opened, 1_000)?;
//! assert_eq!(&datagram[accepted.payload()], packet);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod aead;
mod error;
mod inbound_sa;
mod lifetime;
mod outbound_sa;
pub mod overhead;
mod replay_window;
mod sequence;
mod trailer;
mod udp_encapsulation;
mod wire;

pub use aead::{Aead, Algorithm, Backend, has_aes_acceleration};
pub use error::{Discard, IntegrityFailure, Misuse, SequenceExhausted};
pub use inbound_sa::{
    Accepted, InboundBatch, InboundSa, MAX_REPLAY_WINDOW, MIN_REPLAY_WINDOW, Opened, PendingOpen,
};
pub use lifetime::{Lifetime, Limits, Verdict};
pub use outbound_sa::{MAX_PAYLOAD_LEN, OutboundSa, PendingSeal};
pub use overhead::sealed_len;
pub use replay_window::{Place, ReplayWindow};
pub use sequence::{Reservation, SequenceNumber};
pub use trailer::{NEXT_HEADER_DUMMY, NEXT_HEADER_IPV4, NEXT_HEADER_IPV6};
pub use udp_encapsulation::{Encapsulated, KEEPALIVE, NON_ESP_MARKER, demultiplex, uses_marker};
pub use wire::{HEADER_LEN, ICV_LEN, MIN_DATAGRAM_LEN};
