//! What the tests of this crate share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "each test file uses a part; a failed expectation is a failed test; one start instant is needed"
)]

pub mod authority;
pub mod capture;
pub mod dialogue;
pub mod impostor;
pub mod pair;
