//! Compressed SIDs of the NEXT-C-SID flavour (RFC 9800 §4.1): several stops in one destination address.
//!
//! ```text
//! |  block, e.g. 32 bits | C-SID of this stop, 16 bits | argument: the stops that follow, then zeros |
//! ```
//!
//! A stop moves the argument over its own C-SID, so that the next C-SID becomes the address that routers look up. With
//! a block of 32 bits the journey A→B→C→B→D fits in one address, and the packet needs no SRH at all.

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;

use crate::error::Misuse;
use crate::segment_path::{MAX_SEGMENTS, SegmentPath};
use crate::sid::is_segment;

/// Bits of a compressed SID.
pub const CSID_LEN: u8 = 16;

/// What ends a path behind the compressed SID of its exit. The numbers are local to the node (RFC 9800 §4.1's local
/// identifiers), and by convention the same on all of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// `f004`: End.DT4.
    Dt4,
    /// `f006`: End.DT6.
    Dt6,
    /// `f046`: End.DT46.
    Dt46,
    /// `f00f`: End.DT46 towards the internet.
    Internet,
}

impl Function {
    /// The number as it stands in an address.
    #[must_use]
    pub const fn csid(self) -> u16 {
        match self {
            Self::Dt4 => 0xf004,
            Self::Dt6 => 0xf006,
            Self::Dt46 => 0xf046,
            Self::Internet => 0xf00f,
        }
    }
}

/// The first number that is local to a node. Nodes have smaller ones.
pub const FIRST_LOCAL: u16 = 0xe000;

/// The compressed SID of one node in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompressedSid {
    block: Ipv6Net,
    csid: u16,
}

impl CompressedSid {
    /// Takes a block of 16, 32, 48 or 64 bits and a number that the registry gave to the node.
    ///
    /// # Errors
    /// [`Misuse::Address`] when the block has another length or is not unicast, or the number is 0 or one of those
    /// that are local to a node.
    pub fn new(block: Ipv6Net, csid: u16) -> Result<Self, Misuse> {
        let block = block.trunc();
        let whole = matches!(block.prefix_len(), 16 | 32 | 48 | 64);
        if !whole || !is_segment(&block.network()) || csid == 0 || csid >= FIRST_LOCAL {
            return Err(Misuse::Address);
        }
        Ok(Self { block, csid })
    }

    /// The block.
    #[must_use]
    pub const fn block(&self) -> Ipv6Net {
        self.block
    }

    /// Bits of the block.
    #[must_use]
    pub const fn block_len(&self) -> u8 {
        self.block.prefix_len()
    }

    /// The number.
    #[must_use]
    pub const fn csid(&self) -> u16 {
        self.csid
    }

    /// What the node announces: block and number.
    #[must_use]
    pub fn prefix(&self) -> Ipv6Net {
        let len = self.block_len().saturating_add(CSID_LEN);
        Ipv6Net::new_assert(place(self.block, &[self.csid]), len)
    }

    /// The SID with a function of the node behind it.
    #[must_use]
    pub fn function(&self, function: Function) -> Ipv6Addr {
        place(self.block, &[self.csid, function.csid()])
    }
}

/// Compressed SIDs that one address of this block holds.
#[must_use]
pub const fn capacity(block_len: u8) -> usize {
    128_usize.saturating_sub(block_len as usize) / CSID_LEN as usize
}

/// Packs a journey into as few addresses as it takes: over `waypoints` in their order, repeats allowed, to the function
/// of `exit`.
///
/// The result is an ordinary path whose segments are full of compressed SIDs; with one segment it needs no SRH.
///
/// # Errors
/// [`Misuse`] when the stops are not all of one block, or too many.
pub fn pack(
    waypoints: &[CompressedSid],
    exit: &CompressedSid,
    function: Function,
) -> Result<SegmentPath, Misuse> {
    let block = exit.block;
    if waypoints.iter().any(|waypoint| waypoint.block != block) {
        return Err(Misuse::Address);
    }
    let capacity = capacity(block.prefix_len());
    let mut numbers: Vec<u16> = waypoints.iter().map(|waypoint| waypoint.csid).collect();
    // The exit's function means something only behind the exit's own number: no border may part the two.
    if numbers.len() % capacity == capacity - 1 {
        let last_whole = numbers.len() - numbers.len() % capacity;
        let rest = numbers.split_off(last_whole);
        return containers(block, capacity, &[&numbers, &rest, &[exit.csid, function.csid()]]);
    }
    numbers.extend([exit.csid, function.csid()]);
    containers(block, capacity, &[&numbers])
}

/// Each group begins an address of its own.
fn containers(block: Ipv6Net, capacity: usize, groups: &[&[u16]]) -> Result<SegmentPath, Misuse> {
    let addresses: Vec<Ipv6Addr> =
        groups.iter().flat_map(|group| group.chunks(capacity)).map(|csids| place(block, csids)).collect();
    if addresses.len() > MAX_SEGMENTS {
        return Err(Misuse::PathTooLong);
    }
    SegmentPath::new(&addresses)
}

/// The block and numbers behind it, then zeros.
fn place(block: Ipv6Net, csids: &[u16]) -> Ipv6Addr {
    let mut bits = block.network().to_bits();
    let mut free = 128 - u32::from(block.prefix_len());
    for csid in csids {
        free -= u32::from(CSID_LEN);
        bits |= u128::from(*csid) << free;
    }
    Ipv6Addr::from_bits(bits)
}

/// The destination after this stop, if compressed SIDs follow it: the argument moves over the stop's own number, and
/// zeros fill the end.
///
//= RFC 9800 §4.1.1 N01, N05, N06
#[must_use]
pub(crate) fn next(destination: Ipv6Addr, block_len: u8) -> Option<Ipv6Addr> {
    let bits = destination.to_bits();
    let behind_block = u128::MAX.checked_shr(u32::from(block_len))?;
    let argument = bits & behind_block.checked_shr(u32::from(CSID_LEN))?;
    (argument != 0).then(|| Ipv6Addr::from_bits(bits & !behind_block | argument << CSID_LEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csid(number: u16) -> CompressedSid {
        CompressedSid::new("fd5d:ac::/32".parse().unwrap(), number).unwrap()
    }

    fn packed(waypoints: &[u16], exit: u16) -> Vec<String> {
        let waypoints: Vec<_> = waypoints.iter().map(|number| csid(*number)).collect();
        let path = pack(&waypoints, &csid(exit), Function::Dt46).unwrap();
        path.as_slice().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_b_c_b_d_is_one_address() {
        assert_eq!(packed(&[0xb, 0xc, 0xb], 0xd), ["fd5d:ac:b:c:b:d:f046:0"]);
        assert_eq!(packed(&[], 0xd), ["fd5d:ac:d:f046::"]);
        assert_eq!(packed(&[1, 2, 3, 4], 0xd), ["fd5d:ac:1:2:3:4:d:f046"]);
    }

    #[test]
    fn exit_and_function_stay_together() {
        assert_eq!(packed(&[1, 2, 3, 4, 5], 0xd), ["fd5d:ac:1:2:3:4:5:0", "fd5d:ac:d:f046::"]);
        assert_eq!(packed(&[1, 2, 3, 4, 5, 6], 0xd), ["fd5d:ac:1:2:3:4:5:6", "fd5d:ac:d:f046::"]);
        assert_eq!(packed(&[1, 2, 3, 4, 5, 6, 7], 0xd), ["fd5d:ac:1:2:3:4:5:6", "fd5d:ac:7:d:f046::"]);
        let eleven: Vec<u16> = (1..=11).collect();
        assert_eq!(packed(&eleven, 0xd), ["fd5d:ac:1:2:3:4:5:6", "fd5d:ac:7:8:9:a:b:0", "fd5d:ac:d:f046::"]);
    }

    #[test]
    fn each_stop_uncovers_the_next() {
        let mut destination: Ipv6Addr = "fd5d:ac:b:c:b:d:f046:0".parse().unwrap();
        let mut visited = Vec::new();
        while let Some(next) = next(destination, 32) {
            visited.push(next.to_string());
            destination = next;
        }
        assert_eq!(
            visited,
            ["fd5d:ac:c:b:d:f046::", "fd5d:ac:b:d:f046::", "fd5d:ac:d:f046::", "fd5d:ac:f046::"]
        );
    }

    #[test]
    fn wrong_numbers_and_blocks_are_refused() {
        let block: Ipv6Net = "fd5d:ac::/32".parse().unwrap();
        for number in [0, FIRST_LOCAL, 0xffff] {
            assert_eq!(CompressedSid::new(block, number), Err(Misuse::Address));
        }
        for block in ["fd5d:ac::/40", "::/16", "ff02::/16", "fd5d::/128"] {
            assert_eq!(CompressedSid::new(block.parse().unwrap(), 1), Err(Misuse::Address), "{block}");
        }
        let other = CompressedSid::new("fd5e::/32".parse().unwrap(), 1).unwrap();
        assert_eq!(pack(&[other], &csid(1), Function::Dt4), Err(Misuse::Address));
        assert_eq!(pack(&[csid(1); 100], &csid(1), Function::Dt4), Err(Misuse::PathTooLong));
    }
}
