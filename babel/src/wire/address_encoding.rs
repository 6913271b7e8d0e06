//! Address encodings (RFC 8966 §4.1.4, RFC 9229 §4.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::reader::Reader;
use crate::Malformed;

/// No address: a wildcard.
pub const WILDCARD: u8 = 0;
/// IPv4, up to 4 octets.
pub const IPV4: u8 = 1;
/// IPv6, up to 16 octets.
pub const IPV6: u8 = 2;
/// Link-local IPv6: the last 8 octets.
pub const LINK_LOCAL: u8 = 3;
/// IPv4 whose next hop is IPv6 (RFC 9229).
pub const IPV4_VIA_IPV6: u8 = 4;

/// `N` octets: the first from `default`, then `octets`, then zeros.
pub(super) fn complete<const N: usize>(default: &[u8], octets: &[u8]) -> [u8; N] {
    let mut address = [0; N];
    let given = default.iter().chain(octets);
    address.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    address
}

/// Reads a full address (for IHU and Next Hop). `Ok(None)` if the encoding is unknown or has no address.
///
/// # Errors
/// [`Malformed::TooShort`].
pub fn address(reader: &mut Reader<'_>, encoding: u8) -> Result<Option<IpAddr>, Malformed> {
    Ok(match encoding {
        IPV4 => Some(Ipv4Addr::from(reader.array::<4>()?).into()),
        IPV6 => Some(Ipv6Addr::from(reader.array::<16>()?).into()),
        LINK_LOCAL => Some(link_local(reader.array()?).into()),
        //= RFC 9229 §2.4
        _ => None,
    })
}

/// fe80::/64 with the given interface identifier.
fn link_local(identifier: [u8; 8]) -> Ipv6Addr {
    complete::<16>(&[0xFE, 0x80, 0, 0, 0, 0, 0, 0], &identifier).into()
}

/// An address and how it is encoded most briefly.
#[must_use]
pub fn encode_address(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (IPV4, address.octets().to_vec()),
        IpAddr::V6(address) => {
            let octets = address.octets();
            match octets {
                [0xFE, 0x80, 0, 0, 0, 0, 0, 0, identifier @ ..] => (LINK_LOCAL, identifier.to_vec()),
                _ => (IPV6, octets.to_vec()),
            }
        }
    }
}

/// What a prefix field holds, before it is known whether the TLV is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedPrefix {
    /// AE 0.
    Wildcard,
    /// An IPv4 or IPv6 prefix.
    Net(IpNet),
    /// Link-local prefixes cannot be routed to.
    LinkLocal,
    /// An encoding that we do not know.
    Unknown,
}

/// Reads a prefix of `length` bits whose first octets are `default` (the omitted ones).
///
/// # Errors
/// [`Malformed`] if the length is impossible or octets are missing.
pub fn prefix(
    reader: &mut Reader<'_>,
    encoding: u8,
    length: u8,
    default: &[u8],
) -> Result<EncodedPrefix, Malformed> {
    let longest = match encoding {
        WILDCARD => 0,
        IPV4 | IPV4_VIA_IPV6 => 32,
        LINK_LOCAL | IPV6 => 128,
        _ => return Ok(EncodedPrefix::Unknown),
    };
    if length > longest {
        return Err(Malformed::Value("the prefix length"));
    }
    if encoding == LINK_LOCAL {
        return Ok(EncodedPrefix::LinkLocal);
    }
    let present = usize::from(length.div_ceil(8)).checked_sub(default.len());
    let octets = reader.octets(present.ok_or(Malformed::Value("the number of omitted octets"))?)?;
    let net = match encoding {
        WILDCARD => return Ok(EncodedPrefix::Wildcard),
        IPV6 => Ipv6Net::new(complete::<16>(default, octets).into(), length).map(IpNet::V6),
        _ => Ipv4Net::new(complete::<4>(default, octets).into(), length).map(IpNet::V4),
    };
    let net = net.map_err(|_| Malformed::Value("the prefix length"))?;
    //= RFC 8966 §4.1.5
    Ok(EncodedPrefix::Net(net.trunc()))
}

/// The octets of a prefix that its length makes significant.
#[must_use]
pub fn significant_octets(net: &IpNet) -> Vec<u8> {
    let mut octets = match net.network() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    octets.truncate(usize::from(net.prefix_len().div_ceil(8)));
    octets
}
