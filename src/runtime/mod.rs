//! Threads, event loops, TUN and UDP engines, and in-memory twins of both.
//!
//! A [`Worker`] moves packets between one TUN queue and its sockets, turn by turn. On Linux
//! [`start`] gives it a thread with an epoll loop; tests and simulations call
//! [`Worker::turn`] themselves.

pub mod clock;
mod configuration;
mod control_loop;
mod control_message;
mod daemon;
pub mod device;
pub mod event_loop;
mod kernel_task;
mod key_log;
mod log_request;
pub mod memory;
mod port;
mod registry_follower;
mod reload;
mod socket_options;
mod start_error;
mod state_file;
pub mod tun_linux;
pub mod udp_linux;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "a pattern of octets")]
mod udp_linux_tests;
pub mod worker;

pub use clock::Clock;
pub use daemon::{RunOptions, run};
pub use device::{Datagrams, SendError, TunDevice, UdpTransport};
pub use event_loop::{Notify, WorkerHandle, publish, start};
pub use start_error::StartError;
pub use tun_linux::{TunConfig, TunLinux};
pub use udp_linux::{SocketConfig, SocketNote, UdpSocketLinux};
pub use worker::{Ready, Snapshot, Turned, Worker};
