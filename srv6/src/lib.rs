//! IPv4, IPv6 and Segment Routing headers and behaviours, without IO.
//!
//! The crate reads and writes packets that its caller holds in a buffer. It opens no socket, reads no clock,
//! chooses no route and keeps no packet: every function that touches a packet works on borrowed bytes and
//! allocates nothing (`tests/no_allocation.rs` counts). What it decides is what the standards let one header
//! decide; where a packet goes next is the caller's table.
//!
//! Standards: RFC 791, RFC 792, RFC 1812 (ICMPv4 quoting), RFC 2473 §8 (errors on a tunnel's journey),
//! RFC 4443, RFC 6040 (ECN), RFC 6437 and RFC 6438 (flow label), RFC 8200, RFC 8754 (SRH), RFC 8986 (SRv6
//! behaviours), RFC 9259 (OAM), RFC 9800 (NEXT-C-SID). `CONFORMANCE.md` lists clause, function and test.
//!
//! The pieces, from the wire upwards:
//!
//! - [`ip`]: views of IPv4 and IPv6, the flow key, checksums, ICMP errors, MSS clamping, hop limits;
//! - [`wire`]: the segment routing header;
//! - [`sid`], [`compressed_sid`], [`segment_path`]: what a node is called and the list of nodes to visit;
//! - [`headend`]: puts a packet onto a path;
//! - [`endpoint`]: what a node does with a packet that is addressed to one of its [`local_sids`];
//! - [`hmac`]: proves that a header was written by somebody who knows a key;
//! - [`overhead`]: how many bytes all of that costs.
//!
//! A packet that goes from A over B, C and B again to the exit D:
//!
//! ```
//! use srv6::{Behaviour, Encapsulation, FlowSummary, Form, Locator, Outcome, SegmentPath, process};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mesh = "fd5d:ac::/32".parse()?;
//! let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| Locator::derive(mesh, "example", name).expect("a /32"));
//!
//! // Once per policy:
//! let path = SegmentPath::new(&[b.end(), c.end(), b.end(), d.dt46()])?;
//! let encapsulation = Encapsulation::new(a.node_address(), &path, Form::Reduced)?;
//! assert_eq!(encapsulation.header_len(), 40 + 8 + 3 * 16);
//!
//! // Once per packet, at A:
//! let inner = [&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0], &[10, 0, 0, 1, 10, 9, 0, 1][..]].concat();
//! let mut packet = vec![0; encapsulation.header_len()];
//! encapsulation.write(&mut packet, &FlowSummary::parse(&inner)?, inner.len())?;
//! packet.extend_from_slice(&inner);
//!
//! // At B, C and B:
//! for next in [c.end(), b.end(), d.dt46()] {
//!     let outcome = process(&mut packet, Behaviour::END)?;
//!     assert!(matches!(outcome, Outcome::Forward { destination, .. } if destination == next));
//! }
//!
//! // At D:
//! let Outcome::Decapsulated { inner: place } = process(&mut packet, Behaviour::EndDt46)? else { panic!() };
//! assert_eq!(packet[place], inner);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod compressed_sid;
pub mod endpoint;
pub mod error;
pub mod headend;
pub mod hmac;
pub mod ip;
pub mod local_sids;
pub mod overhead;
pub mod segment_path;
pub mod sid;
pub mod wire;

pub use compressed_sid::CompressedSid;
pub use endpoint::{Behaviour, Flavours, Outcome, process};
pub use error::{Error, Malformed, Misuse, Unsupported, Violation};
pub use headend::{Encapsulation, FlowSummary, Form};
pub use ip::flow::FlowKey;
pub use ip::icmp_error::IcmpError;
pub use local_sids::LocalSids;
pub use segment_path::SegmentPath;
pub use sid::Locator;
