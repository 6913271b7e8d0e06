//! A router that does everything in its kernel (ESP with XFRM interfaces, BIRD's routes, seg6local) as a full member of
//! a mesh: the machine of `docs/interop.md`, with its files.

mod mesh;
mod routes;

use crate::case::{Case, is_full};

const PEER: &str = "kernel";

/// The whole matrix only: the guest's kernel takes minutes to build.
pub(crate) fn cases() -> Vec<Case> {
    if is_full() { routes::cases() } else { Vec::new() }
}
