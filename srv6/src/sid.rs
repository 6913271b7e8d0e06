//! Locators and functions: what a segment identifier is made of (RFC 8986 §3.1).
//!
//! ```text
//! |  mesh prefix, 32 bits | node, 32 bits | function, 64 bits |
//! |<------------ locator, 64 bits ------->|
//! ```

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;

use crate::error::Misuse;

/// Bits of a locator.
pub const LOCATOR_LEN: u8 = 64;
/// Bits of the prefix that all nodes of a mesh share.
pub const MESH_PREFIX_LEN: u8 = 32;

/// A node's /64, from which its address and its SIDs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator(Ipv6Net);

impl Locator {
    /// Takes a /64 as it stands in a registry.
    ///
    /// # Errors
    /// [`Misuse::Address`] when it is not 64 bits long or not unicast.
    pub fn new(prefix: Ipv6Net) -> Result<Self, Misuse> {
        let prefix = prefix.trunc();
        if prefix.prefix_len() != LOCATOR_LEN || !is_segment(&prefix.network()) {
            return Err(Misuse::Address);
        }
        Ok(Self(prefix))
    }

    /// The locator of a node that has no explicit one: the mesh prefix and a 32-bit hash of the node's name.
    ///
    /// The hash is FNV-1a (64 bits) over the length of the organization as four bytes in network order, the
    /// organization and the common name, both UTF-8, folded to 32 bits by XOR of its halves. It is part of the
    /// protocol between nodes: every node derives everybody's locator.
    ///
    /// # Errors
    /// [`Misuse::Address`] when the mesh prefix is not a unicast /32.
    pub fn derive(mesh_prefix: Ipv6Net, organization: &str, common_name: &str) -> Result<Self, Misuse> {
        let prefix = mesh_prefix.trunc();
        if prefix.prefix_len() != MESH_PREFIX_LEN {
            return Err(Misuse::Address);
        }
        let node = u128::from(name_hash(organization, common_name)) << 64;
        let network = Ipv6Addr::from_bits(prefix.network().to_bits() | node);
        Self::new(Ipv6Net::new(network, LOCATOR_LEN).map_err(|_| Misuse::Address)?)
    }

    /// The /64 itself, as it is announced.
    #[must_use]
    pub const fn prefix(&self) -> Ipv6Net {
        self.0
    }

    /// Whether an address belongs to this node.
    #[must_use]
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        self.0.contains(&address)
    }

    /// `::1`: the address of the node itself.
    #[must_use]
    pub fn node_address(&self) -> Ipv6Addr {
        self.function(0x1)
    }

    /// `::4`: End.DT4, the journey ends here and an IPv4 packet goes on.
    #[must_use]
    pub fn dt4(&self) -> Ipv6Addr {
        self.function(0x4)
    }

    /// `::6`: End.DT6, the journey ends here and an IPv6 packet goes on.
    #[must_use]
    pub fn dt6(&self) -> Ipv6Addr {
        self.function(0x6)
    }

    /// `::46`: End.DT46, the journey ends here and a packet of either family goes on.
    #[must_use]
    pub fn dt46(&self) -> Ipv6Addr {
        self.function(0x46)
    }

    /// `::e`: End, a waypoint.
    #[must_use]
    pub fn end(&self) -> Ipv6Addr {
        self.function(0xe)
    }

    /// `::f`: End.DT46 towards the internet.
    #[must_use]
    pub fn internet(&self) -> Ipv6Addr {
        self.function(0xf)
    }

    /// `::e:n:n`: End.X, a waypoint that goes on over its own link to a neighbour, whatever routing says. `n:n` are the
    /// low 32 bits of the neighbour's locator, so that everybody knows the SID who knows both nodes.
    #[must_use]
    pub fn end_x(&self, neighbour: &Self) -> Ipv6Addr {
        let node = neighbour.0.network().to_bits() >> 64 & 0xffff_ffff;
        self.function(0xe_0000_0000 | u64::try_from(node).unwrap_or_default())
    }

    fn function(&self, function: u64) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.0.network().to_bits() | u128::from(function))
    }
}

impl std::fmt::Display for Locator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether an address may be a segment: unicast, and neither unspecified nor loopback nor IPv4 in disguise.
#[must_use]
pub fn is_segment(address: &Ipv6Addr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.to_ipv4_mapped().is_some())
}

fn name_hash(organization: &str, common_name: &str) -> u32 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let length = u32::try_from(organization.len()).unwrap_or(u32::MAX).to_be_bytes();
    let octets = length.iter().chain(organization.as_bytes()).chain(common_name.as_bytes());
    let hash = octets.fold(OFFSET_BASIS, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(PRIME));
    let folded = (hash >> 32) ^ (hash & 0xffff_ffff);
    u32::try_from(folded).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh() -> Ipv6Net {
        "fd5d:ac::/32".parse().unwrap()
    }

    #[test]
    fn functions_stand_in_the_lower_half() {
        let locator = Locator::new("fd5d:ac:0:9::/64".parse().unwrap()).unwrap();
        assert_eq!(locator.node_address().to_string(), "fd5d:ac:0:9::1");
        assert_eq!(locator.dt4().to_string(), "fd5d:ac:0:9::4");
        assert_eq!(locator.dt6().to_string(), "fd5d:ac:0:9::6");
        assert_eq!(locator.dt46().to_string(), "fd5d:ac:0:9::46");
        assert_eq!(locator.end().to_string(), "fd5d:ac:0:9::e");
        assert_eq!(locator.internet().to_string(), "fd5d:ac:0:9::f");
        let neighbour = Locator::new("fd5d:ac:1234:7::/64".parse().unwrap()).unwrap();
        assert_eq!(locator.end_x(&neighbour).to_string(), "fd5d:ac:0:9:0:e:1234:7");
        assert!(locator.contains(locator.end()));
    }

    /// The derivation is a protocol: these values must never change.
    #[test]
    fn derivation_is_pinned() {
        let tokyo = Locator::derive(mesh(), "example", "tokyo").unwrap();
        let osaka = Locator::derive(mesh(), "example", "osaka").unwrap();
        assert_eq!(tokyo.to_string(), "fd5d:ac:5c0d:1a20::/64");
        assert_eq!(osaka.to_string(), "fd5d:ac:fb59:d403::/64");
    }

    #[test]
    fn numbered_names_do_not_collide() {
        let locators: std::collections::BTreeSet<_> = (0..5000)
            .map(|number| Locator::derive(mesh(), "example", &format!("node{number}")).unwrap())
            .collect();
        assert_eq!(locators.len(), 5000);
    }

    #[test]
    fn the_border_between_names_counts() {
        assert_ne!(Locator::derive(mesh(), "ab", "c").unwrap(), Locator::derive(mesh(), "a", "bc").unwrap());
    }

    #[test]
    fn wrong_prefixes_are_refused() {
        let long = "fd5d:ac::/48".parse().unwrap();
        assert_eq!(Locator::derive(long, "a", "b"), Err(Misuse::Address));
        assert_eq!(Locator::new(mesh()), Err(Misuse::Address));
        assert_eq!(Locator::new("ff00::/64".parse().unwrap()), Err(Misuse::Address));
    }
}
