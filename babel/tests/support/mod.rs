//! A virtual network for tests.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(unreachable_pub, reason = "a module of several test crates")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

pub mod captures;
pub mod shortest_path;
pub mod topology;
