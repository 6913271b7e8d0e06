//! Worlds of network namespaces with emulated links, and the processes in them.
//!
//! Needs nothing but the kernel: no `ip`, no `tc`, no `ping`. A [`World`] holds [`Host`]s, each a network namespace
//! of its own. A [`Link`] joins two of them, a [`Segment`] any number; both are TAP devices whose frames a thread of
//! this process moves with the delay, loss and rate of [`LinkSettings`], changeable at any time. [`Process`]es run in
//! hosts and die with the world. [`Pinger`], [`UdpStream`], [`TcpPump`] and [`TcpEcho`] measure what gets through.
//!
//! Runs as root, or in a user namespace of one's own where `/dev/net/tun` allows it: [`World::probe`] tells which,
//! and what to run when neither works.
//!
//! ```no_run
//! # use std::{process::Command, time::Duration};
//! # use lab::{LinkSettings, Pinger, World, wait_until};
//! # fn main() -> lab::Result<()> {
//! let world = World::new()?;
//! let internet = world.segment("internet")?;
//! let (tokyo, paris) = (world.host("tokyo")?, world.host("paris")?);
//! internet.attach(&tokyo)?;
//! let there = internet.attach(&paris)?;
//! internet.set("tokyo", "paris", LinkSettings::with_rtt_ms(220))?;
//! let daemon = tokyo.spawn(Command::new("some-daemon"))?;
//! wait_until(Duration::from_secs(5), "the daemon", || daemon.log_text().contains("ready"))?;
//! let report = Pinger::new(there.v4.expect("the segment has IPv4").into()).run(&tokyo)?;
//! assert!(report.median() >= Some(Duration::from_millis(220)));
//! # Ok(())
//! # }
//! ```

mod capability;
mod capture;
mod dial;
mod echo_socket;
mod emulator;
mod error;
mod fabric;
mod footprint;
mod frame;
mod host;
mod interface;
mod link;
mod link_model;
mod namespace;
mod nat;
mod netlink;
#[cfg(feature = "peers")]
pub mod peers;
mod pinger;
mod probe_log;
mod process;
mod punctual;
mod random;
mod report;
mod responder;
mod root;
mod roster;
mod segment;
mod server;
mod spawner;
mod tap;
mod tcp_echo;
mod tcp_pump;
mod udp_stream;
mod veth;
mod wait;
mod world;

pub use capability::{Capability, enter_user_namespace};
pub use capture::Capture;
pub use error::{LabError, Result};
pub use footprint::Footprint;
pub use host::Host;
pub use interface::Interface;
pub use link::Link;
pub use link_model::{Deliveries, LinkModel, LinkSettings, Lost};
pub use namespace::{Namespace, enter};
pub use nat::{Nat, NatKind};
pub use pinger::{PingReport, Pinger, RunningPinger};
pub use probe_log::{ProbeFilter, ProbeLog, Sighting};
pub use process::{Process, RunOutput};
pub use random::Random;
pub use report::{DemoReport, Step};
pub use responder::{Responder, ask_responder};
pub use root::Root;
pub use roster::Roster;
pub use segment::{Counters, Segment, SegmentConfig};
pub use tcp_echo::{EchoReport, EchoServer, TcpEcho};
pub use tcp_pump::{PumpReport, TcpPump};
pub use udp_stream::{RunningUdpStream, UdpReport, UdpStream};
pub use veth::Veth;
pub use wait::{Ready, wait_until};
pub use world::World;
