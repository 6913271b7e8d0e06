//! A pair of veth devices: no emulation, no delay, the kernel's full speed.

use std::os::fd::{AsFd, AsRawFd};

use crate::error::Result;
use crate::host::Host;
use crate::interface::{Interface, InterfacePlan};
use crate::netlink::Netlink;
use crate::segment::{SegmentConfig, ethernet_address};

/// The kernel's own default for veth.
const TRANSMIT_QUEUE: u32 = 1000;

/// Both ends of a veth pair, with addresses.
#[derive(Debug, Clone)]
pub struct Veth {
    /// The interface of the first host.
    pub a: Interface,
    /// The interface of the second host.
    pub b: Interface,
}

impl Veth {
    /// Creates the pair, with the addresses of the first two stations of a segment.
    pub(crate) fn create(a: &Host, b: &Host, config: &SegmentConfig, number: u16) -> Result<Self> {
        let plan = |host: &Host, station| -> Result<InterfacePlan> {
            Ok(InterfacePlan {
                name: host.next_interface_name(),
                mac: ethernet_address(number, station),
                mtu: config.mtu,
                transmit_queue: TRANSMIT_QUEUE,
                addresses: config.addresses(station)?,
            })
        };
        let (plan_a, plan_b) = (plan(a, 1)?, plan(b, 2)?);
        let peer = b.namespace().as_fd().as_raw_fd();
        a.within(|| Netlink::open()?.add_veth(&plan_a.name, &plan_b.name, peer))??;
        Ok(Self { a: plan_a.apply(a)?, b: plan_b.apply(b)? })
    }
}
