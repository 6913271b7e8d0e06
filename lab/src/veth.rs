//! A pair of veth devices: no emulation, no delay, the kernel's full speed.

use crate::interface::Interface;

/// Both ends of a veth pair, with addresses.
#[derive(Debug, Clone)]
pub struct Veth {
    /// The interface of the first host.
    pub a: Interface,
    /// The interface of the second host.
    pub b: Interface,
}
