//! Which routes pass between the mesh and the host's own routing tables.

use ipnet::IpNet;
use serde_json::json;

use super::scalar::{Scalar, Wrong, choice, number};

/// What a node takes from the host into the mesh, and gives from the mesh to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redistribution {
    /// Interfaces whose connected networks are announced.
    pub connected: Vec<String>,
    /// Kernel tables whose routes are announced.
    pub import: Vec<RouteImport>,
    /// Kernel tables that get the mesh's routes.
    pub export: Vec<RouteExport>,
}

/// Routes of a kernel table that are announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteImport {
    /// The table.
    pub table: u32,
    /// Protocol numbers of the routes that are taken; empty for all that [`RouteImport::admits`] describes.
    pub protocols: Vec<u8>,
    /// Which destinations.
    pub filter: RouteFilter,
    /// Babel metric that they are announced with.
    pub metric: u16,
}

/// Mesh routes that a kernel table gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteExport {
    /// The table.
    pub table: u32,
    /// Which destinations.
    pub filter: RouteFilter,
    /// Priority of the routes in the table, which routing daemons see as their metric.
    pub metric: u32,
}

/// Destinations: those within one of `prefixes` and within none of `except`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteFilter {
    /// Empty for all.
    pub prefixes: Vec<IpNet>,
    /// What is left out.
    pub except: Vec<IpNet>,
}

/// Routes that the kernel makes itself (`redirect`, `kernel`) or from router advertisements: `connected` is for these.
const KERNELS_OWN: [u8; 3] = [1, 2, 9];

impl RouteImport {
    /// Whether a route of the table is taken: by its protocol, and by its destination. Where no protocols are named,
    /// those count that the kernel did not make itself. Default routes never do.
    #[must_use]
    pub fn admits(&self, protocol: u8, destination: &IpNet) -> bool {
        let wanted = if self.protocols.is_empty() {
            !KERNELS_OWN.contains(&protocol)
        } else {
            self.protocols.contains(&protocol)
        };
        wanted && destination.prefix_len() > 0 && self.filter.admits(destination)
    }
}

impl RouteFilter {
    /// Whether a destination passes.
    #[must_use]
    pub fn admits(&self, destination: &IpNet) -> bool {
        let within = |networks: &[IpNet]| networks.iter().any(|network| network.contains(destination));
        (self.prefixes.is_empty() || within(&self.prefixes)) && !within(&self.except)
    }
}

/// Who made a route, by the names of `/etc/iproute2/rt_protos` or by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteOrigin(pub(crate) u8);

impl Scalar for RouteOrigin {
    const NOUN: &'static str = "a routing protocol such as static, bird, zebra, bgp or 186";

    fn parse(text: &str) -> Result<Self, Wrong> {
        if let Some(value) = number(text) {
            return u8::try_from(value).map(Self).map_err(|_| Wrong::because("protocols end at 255"));
        }
        let names = [
            ("redirect", 1),
            ("kernel", 2),
            ("boot", 3),
            ("static", 4),
            ("ra", 9),
            ("zebra", 11),
            ("bird", 12),
            ("dhcp", 16),
            ("babel", 42),
            ("bgp", 186),
            ("isis", 187),
            ("ospf", 188),
            ("rip", 189),
            ("eigrp", 192),
        ];
        choice(text, &names).map(Self)
    }

    fn schema() -> serde_json::Value {
        json!({"type": ["integer", "string"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(list: &[&str]) -> Vec<IpNet> {
        list.iter().map(|network| network.parse().expect("a network")).collect()
    }

    fn net(text: &str) -> IpNet {
        text.parse().expect("a network")
    }

    #[test]
    fn a_filter_takes_parts_of_its_prefixes_and_leaves_out_parts_of_the_exceptions() {
        let filter = RouteFilter {
            prefixes: networks(&["10.0.0.0/8", "fd00::/16"]),
            except: networks(&["10.9.0.0/16"]),
        };
        for (prefix, passes) in [
            ("10.0.0.0/8", true),
            ("10.8.1.0/24", true),
            ("10.9.0.0/16", false),
            ("10.9.4.0/24", false),
            ("0.0.0.0/0", false),
            ("192.0.2.0/24", false),
            ("fd00:1::/32", true),
        ] {
            assert_eq!(filter.admits(&net(prefix)), passes, "{prefix}");
        }
        assert!(RouteFilter::default().admits(&net("192.0.2.0/24")));
    }

    #[test]
    fn default_routes_and_what_the_kernel_made_are_not_taken() {
        let all =
            RouteImport { table: 254, protocols: Vec::new(), filter: RouteFilter::default(), metric: 0 };
        assert!(all.admits(12, &net("10.1.0.0/16")));
        assert!(!all.admits(2, &net("10.1.0.0/16")));
        assert!(!all.admits(12, &net("0.0.0.0/0")));
        let statics = RouteImport { protocols: vec![4], filter: all.filter.clone(), ..all };
        assert!(statics.admits(4, &net("10.1.0.0/16")) && !statics.admits(12, &net("10.1.0.0/16")));
    }

    #[test]
    fn protocols_have_names_and_numbers() {
        for (text, value) in [("bird", 12), ("static", 4), ("186", 186), ("ospf", 188)] {
            assert_eq!(RouteOrigin::parse(text).ok(), Some(RouteOrigin(value)), "{text}");
        }
        assert!(RouteOrigin::parse("256").is_err() && RouteOrigin::parse("bind").is_err());
    }
}
