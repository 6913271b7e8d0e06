//! Foreign peers: file systems of Debian releases with strongSwan, libreswan, BIRD and babeld in them.
//!
//! `cargo xtask setup` makes the file systems; programs of them run in a [`Host`](crate::Host) like any other:
//!
//! ```no_run
//! # use std::{process::Command, time::Duration};
//! # use lab::{World, peers::Release};
//! # fn main() -> lab::Result<()> {
//! let world = World::new()?;
//! let host = world.host("peer")?;
//! // The program sees the folder of the world under the same name, and has a `/run` and a `/tmp` of its own.
//! let root = Release::Debian13.root(world.directory())?;
//! let configuration = world.directory().join("bird.conf");
//! let bird = host.spawn_in(&root, {
//!     let mut command = Command::new("bird");
//!     command.arg("-f").arg("-c").arg(&configuration).arg("-s").arg(world.directory().join("bird.ctl"));
//!     command
//! })?;
//! # Ok(())
//! # }
//! ```

mod babel;
mod babeld;
mod bird;
mod cache;
pub mod charon;
mod guest;
mod recipe;
mod router;
mod template;

pub use babel::{BabelMac, BabelNeighbour, BabelRoute, BabelSetup};
pub use babeld::Babeld;
pub use bird::Bird;
pub use cache::Cache;
pub use charon::Charon;
pub use guest::{Guest, GuestKernel};
pub use recipe::{Recipe, Release};
pub use router::{Router, RouterPeer, RouterSetup};
