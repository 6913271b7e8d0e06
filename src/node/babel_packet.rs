//! Babel packets inside a tunnel: UDP over IPv6 between link-local addresses.

use srv6::ip::ipv6::Ipv6View;
use srv6::ip::udp::{IPV6_HEADERS_LEN, UdpOverIpv6, UdpView};
use std::net::Ipv6Addr;

/// DSCP CS6, network control, as BIRD and babeld mark their packets.
const TRAFFIC_CLASS: u8 = 0xc0;

/// A Babel packet that came over a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BabelPacket<'a> {
    /// The neighbour's link-local address.
    pub(crate) source: Ipv6Addr,
    /// Whether it was sent to the group.
    pub(crate) multicast: bool,
    /// The UDP payload.
    pub(crate) payload: &'a [u8],
}

/// Wrap a UDP payload for the way through a tunnel. `None` if it is too long for any packet.
pub(crate) fn wrap(source: Ipv6Addr, destination: Ipv6Addr, payload: &[u8]) -> Option<Vec<u8>> {
    let mut packet = vec![0; IPV6_HEADERS_LEN + payload.len()];
    packet.get_mut(IPV6_HEADERS_LEN..)?.copy_from_slice(payload);
    let headers = UdpOverIpv6 {
        source,
        destination,
        source_port: babel::PORT,
        destination_port: babel::PORT,
        hop_limit: 1,
        traffic_class: TRAFFIC_CLASS,
    };
    headers.write(&mut packet, payload.len()).ok()?;
    Some(packet)
}

/// Recognise a Babel packet for `local`; `None` if it is anything else.
//= RFC 8966 §4
pub(crate) fn unwrap(packet: &[u8], local: Ipv6Addr) -> Option<BabelPacket<'_>> {
    let ip = Ipv6View::parse(packet).ok()?;
    let multicast = ip.destination() == babel::MULTICAST_GROUP;
    if !ip.source().is_unicast_link_local() || !(multicast || ip.destination() == local) {
        return None;
    }
    let udp = UdpView::parse_in_ipv6(&ip).ok()?;
    (udp.destination_port() == babel::PORT && udp.source_port() == babel::PORT).then_some(BabelPacket {
        source: ip.source(),
        multicast,
        payload: udp.payload(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xa);
    const B: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xb);

    #[test]
    fn what_is_wrapped_is_recognised() {
        let unicast = wrap(A, B, b"babel").expect("short enough");
        let found = unwrap(&unicast, B).expect("recognised");
        assert_eq!((found.source, found.multicast, found.payload), (A, false, b"babel".as_slice()));
        let multicast = wrap(A, babel::MULTICAST_GROUP, b"x").expect("short enough");
        assert!(unwrap(&multicast, B).expect("recognised").multicast);
    }

    #[test]
    fn others_are_not_babel() {
        let for_another = wrap(A, A, b"x").expect("short enough");
        assert_eq!(unwrap(&for_another, B), None);
        let routed = wrap("fd00::1".parse().expect("an address"), B, b"x").expect("short enough");
        assert_eq!(unwrap(&routed, B), None);
        let mut damaged = wrap(A, B, b"x").expect("short enough");
        if let Some(last) = damaged.last_mut() {
            *last ^= 1;
        }
        assert_eq!(unwrap(&damaged, B), None);
    }
}
