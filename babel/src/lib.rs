//! The Babel routing protocol as a sans-IO state machine: a [`Router`] is fed packets and the time, and says
//! what to send and which routes to use.
//!
//! It opens no socket, reads no clock and installs no route. Packets are UDP payloads: the caller wraps them in
//! UDP (port [`PORT`]) and IPv6 (hop limit 1, from a link-local address to one or to [`MULTICAST_GROUP`]).
//!
//! ```
//! use std::{net::Ipv6Addr, time::Instant};
//!
//! use babel::{Config, Event, InterfaceConfig, InterfaceId, Prefix, Router, RouterId};
//! use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//!
//! let (a, b): (Ipv6Addr, Ipv6Addr) = ("fe80::a".parse()?, "fe80::b".parse()?);
//! # #[allow(clippy::disallowed_methods)]
//! let now = Instant::now();
//! let link = InterfaceId(1);
//! let router = |id, local| {
//!     let rng = ChaCha20Rng::seed_from_u64(id);
//!     let mut router = Router::new(Config::new(RouterId(id.to_be_bytes())), rng, now)?;
//!     router.add_interface(link, InterfaceConfig::new(local), now);
//!     Ok::<_, babel::Misuse>(router)
//! };
//! let (mut left, mut right) = (router(1, a)?, router(2, b)?);
//! right.announce(Prefix::to("10.9.0.0/16".parse()?), now);
//!
//! // A perfect link: what one sends arrives at the other at once.
//! let mut packet = Vec::new();
//! for _ in 0..4 {
//!     while let Some(transmit) = left.poll_transmit(&mut packet, now) {
//!         right.handle_packet(link, a, transmit.destination.is_multicast(), &packet, now, now)?;
//!     }
//!     while let Some(transmit) = right.poll_transmit(&mut packet, now) {
//!         left.handle_packet(link, b, transmit.destination.is_multicast(), &packet, now, now)?;
//!     }
//!     left.handle_timeout(now);
//!     right.handle_timeout(now);
//! }
//! let events: Vec<_> = std::iter::from_fn(|| left.poll_event()).collect();
//! assert!(matches!(events[..], [Event::NeighbourUp { .. }, Event::RouteSelected { neighbour, .. }] if neighbour == b));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! Standards: RFC 8966 (Babel), RFC 8967 and 9467 (MAC), RFC 9079 (source-specific routes),
//! RFC 9229 (IPv4 routes with an IPv6 next hop), RFC 9616 (round-trip time).
#![forbid(unsafe_code)]

mod acquisition;
pub mod authentication;
mod config;
mod decision;
mod error;
mod event;
mod feasibility;
mod hello_history;
mod import;
mod inspect;
mod interface;
mod neighbour;
mod outbox;
mod packet_counter;
mod path_mtu;
mod prefix;
mod receive;
mod report;
mod request_table;
mod requests;
mod route_table;
mod router;
mod router_id;
mod rtt;
mod selection;
mod seqno;
mod source_table;
mod timers;
mod transmit;
mod update_schedule;
pub mod wire;

pub use authentication::{MacAlgorithm, MacKey};
pub use config::{Config, CostMap, Hysteresis, InterfaceConfig, InterfaceId, Limits};
pub use error::{Malformed, Misuse, PacketError, Violation};
pub use event::{Event, NeighbourLoss};
pub use import::{ImportPolicy, ImportRefusal};
pub use prefix::Prefix;
pub use report::{NeighbourReport, RouteReport, RouteStatus};
pub use router::{Router, Transmit};
pub use router_id::RouterId;
pub use seqno::Seqno;

use std::net::Ipv6Addr;

/// The UDP port of Babel, source and destination.
pub const PORT: u16 = 6696;

/// Where multicast packets go: ff02::1:6.
pub const MULTICAST_GROUP: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 1, 6);

/// A metric or cost that means unreachable.
pub const INFINITY: u16 = 0xFFFF;
