//! Narrowing of traffic selectors as set algebra (RFC 7296 §2.9).

use std::net::IpAddr;

use crate::wire::TrafficSelector;

/// Selectors kept of an offer; more would only be a burden on us.
const MAX_RESULT: usize = 32;

/// All traffic of both families.
pub const EVERYTHING: [TrafficSelector; 2] = [TrafficSelector::ANY_IPV4, TrafficSelector::ANY_IPV6];

/// What is both offered and allowed; empty means TS_UNACCEPTABLE. Each result is a subset of an offered
/// selector of the same family, and none is contained in another.
pub fn narrow(offered: &[TrafficSelector], allowed: &[TrafficSelector]) -> Vec<TrafficSelector> {
    let mut result: Vec<TrafficSelector> = Vec::new();
    let pairs = offered.iter().flat_map(|one| allowed.iter().map(move |other| (one, other)));
    for common in pairs.filter_map(|(one, other)| intersect(one, other)) {
        if result.iter().any(|kept| contains(kept, &common)) {
            continue;
        }
        result.retain(|kept| !contains(&common, kept));
        if result.len() < MAX_RESULT {
            result.push(common);
        }
    }
    result
}

/// Whether every selector of `inner` lies within one of `outer`.
pub fn covers(outer: &[TrafficSelector], inner: &[TrafficSelector]) -> bool {
    inner.iter().all(|inner| outer.iter().any(|outer| contains(outer, inner)))
}

/// The address ranges, for the driver.
pub fn ranges(selectors: &[TrafficSelector]) -> Vec<(IpAddr, IpAddr)> {
    selectors.iter().map(|selector| (selector.first, selector.last)).collect()
}

fn contains(outer: &TrafficSelector, inner: &TrafficSelector) -> bool {
    intersect(outer, inner).as_ref() == Some(inner)
}

fn intersect(one: &TrafficSelector, other: &TrafficSelector) -> Option<TrafficSelector> {
    let protocol = match (one.protocol, other.protocol) {
        (0, any) | (any, 0) => any,
        (a, b) if a == b => a,
        _ => return None,
    };
    let (first, last) = intersect_addresses(one, other)?;
    let (first_port, last_port) = (one.first_port.max(other.first_port), one.last_port.min(other.last_port));
    let opaque = |selector: &TrafficSelector| selector.first_port > selector.last_port;
    if first > last || (first_port > last_port && !(opaque(one) && opaque(other))) {
        return None;
    }
    Some(TrafficSelector { protocol, first_port, last_port, first, last })
}

fn intersect_addresses(one: &TrafficSelector, other: &TrafficSelector) -> Option<(IpAddr, IpAddr)> {
    let families = [one.first, one.last, other.first, other.last].map(|address| address.is_ipv4());
    if families.iter().any(|family| *family != families[0]) {
        return None;
    }
    Some((one.first.max(other.first), one.last.min(other.last)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn v4(first: u32, last: u32) -> TrafficSelector {
        let address = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
        TrafficSelector { first: address(first), last: address(last), ..TrafficSelector::ANY_IPV4 }
    }

    #[test]
    fn everything_narrows_to_what_the_peer_has_and_back() {
        let hosts = [v4(1, 1), v4(5, 9)];
        assert_eq!(narrow(&EVERYTHING, &hosts), hosts);
        assert_eq!(narrow(&hosts, &EVERYTHING), hosts);
        assert_eq!(narrow(&EVERYTHING, &EVERYTHING), EVERYTHING);
    }

    #[test]
    fn families_do_not_mix() {
        assert!(narrow(&[TrafficSelector::ANY_IPV4], &[TrafficSelector::ANY_IPV6]).is_empty());
    }

    #[test]
    fn contained_selectors_are_said_once() {
        assert_eq!(narrow(&[v4(3, 4), v4(0, 9)], &EVERYTHING), [v4(0, 9)]);
    }

    fn selector() -> impl Strategy<Value = TrafficSelector> {
        (0u32..12, 0u32..12, 0u8..3, 0u16..6, 0u16..6).prop_map(|(a, b, protocol, c, d)| TrafficSelector {
            protocol,
            first_port: c.min(d),
            last_port: c.max(d),
            ..v4(a.min(b), a.max(b))
        })
    }

    fn matches(selectors: &[TrafficSelector], address: u32, protocol: u8, port: u16) -> bool {
        selectors.iter().any(|selector| {
            let address = IpAddr::V4(Ipv4Addr::from_bits(address));
            (selector.first..=selector.last).contains(&address)
                && (selector.protocol == 0 || selector.protocol == protocol)
                && (selector.first_port..=selector.last_port).contains(&port)
        })
    }

    proptest! {
        #[test]
        fn the_result_is_the_intersection(
            offered in proptest::collection::vec(selector(), 0..4),
            allowed in proptest::collection::vec(selector(), 0..4),
        ) {
            let result = narrow(&offered, &allowed);
            prop_assert!(covers(&offered, &result));
            for (address, protocol, port) in
                (0..12).flat_map(|a| (1..3).flat_map(move |p| (0..6).map(move |q| (a, p, q))))
            {
                let both = matches(&offered, address, protocol, port) && matches(&allowed, address, protocol, port);
                prop_assert_eq!(matches(&result, address, protocol, port), both);
            }
        }
    }
}
