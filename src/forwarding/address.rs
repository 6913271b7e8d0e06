//! What an address may be used for.

use std::net::{IpAddr, Ipv4Addr};

/// fe80::/10 or 169.254.0.0/16.
#[inline]
pub(crate) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Any multicast group, or the limited broadcast.
#[inline]
pub(crate) fn is_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address == Ipv4Addr::BROADCAST,
        IpAddr::V6(address) => address.is_multicast(),
    }
}

/// ff02::/16 whatever the flag bits are (RFC 4291 §2.7).
#[inline]
pub(crate) fn is_link_scope_multicast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.segments()[0] & 0xff0f == 0xff02)
}

/// Addresses that never are the source of a packet which is forwarded.
#[inline]
pub(crate) fn is_martian(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.octets()[0] == 0 || v4.is_loopback() || v4.octets()[0] >= 224 || v4.is_link_local()
        }
        IpAddr::V6(v6) => {
            let segments = v6.segments();
            segments[0] >= 0xff00
                || segments[0] & 0xffc0 == 0xfe80
                // ::/96 holds ::, ::1 and the IPv4-compatible addresses; ::ffff:0:0/96 the mapped ones.
                || (segments[..5] == [0; 5] && (segments[5] == 0 || segments[5] == 0xffff))
        }
    }
}
