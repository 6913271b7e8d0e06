//! End-to-end tests, and what they need.
//!
//! [`simulation`] runs whole meshes in one process and in virtual time. The tests under `tests/` use it, and the
//! worlds of the `lab` crate where the kernel or foreign software has to judge.
#![forbid(unsafe_code)]

pub mod babel_speaker;
pub mod daemon;
pub mod documentation;
pub mod foreign;
pub mod simulation;
