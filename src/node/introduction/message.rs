//! Messages of the introduction protocol, inside a tunnel: UDP over IPv6 between link-local addresses.
//!
//! ```text
//! "vmi1" | kind: 1 octet | name of the node | serial number of its endpoint | address (introduction only)
//! ```
//! A name is an organization and a common name; each text is preceded by its length in one octet. An address is its
//! family (4 or 6), 4 or 16 octets, and the port. All numbers are big-endian. What follows is ignored: later versions
//! may add to it.

use crate::config::settings::NodeName;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The UDP port of the protocol, at both ends.
pub(crate) const PORT: u16 = 13001;

const MAGIC: &[u8; 4] = b"vmi1";
const REQUEST: u8 = 1;
const INTRODUCTION: u8 = 2;

/// An endpoint of a node, as the registry names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointName {
    pub(crate) node: NodeName,
    pub(crate) serial: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// The sender wants to be introduced to this endpoint.
    Request(EndpointName),
    /// The endpoint is seen at this address, and learns at the same time where the receiver is seen.
    Introduction(EndpointName, SocketAddr),
}

impl Message {
    /// The octets of the message; `None` if a name is too long for it.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let (kind, endpoint, address) = match self {
            Self::Request(endpoint) => (REQUEST, endpoint, None),
            Self::Introduction(endpoint, address) => (INTRODUCTION, endpoint, Some(address)),
        };
        let mut octets = MAGIC.to_vec();
        octets.push(kind);
        for text in [&endpoint.node.organization, &endpoint.node.common_name, &endpoint.serial] {
            octets.push(u8::try_from(text.len()).ok()?);
            octets.extend_from_slice(text.as_bytes());
        }
        match address.map(SocketAddr::ip) {
            Some(IpAddr::V4(address)) => {
                octets.push(4);
                octets.extend_from_slice(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                octets.push(6);
                octets.extend_from_slice(&address.octets());
            }
            None => {}
        }
        octets.extend(address.iter().flat_map(|address| address.port().to_be_bytes()));
        Some(octets)
    }

    /// The message in these octets; `None` if there is none that this version understands.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let rest = octets.strip_prefix(MAGIC)?;
        let (kind, rest) = rest.split_first()?;
        let (organization, rest) = text(rest)?;
        let (common_name, rest) = text(rest)?;
        let (serial, rest) = text(rest)?;
        let endpoint = EndpointName { node: NodeName::new(organization, common_name), serial };
        match *kind {
            REQUEST => Some(Self::Request(endpoint)),
            INTRODUCTION => Some(Self::Introduction(endpoint, address(rest)?)),
            _ => None,
        }
    }
}

fn text(octets: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = octets.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((std::str::from_utf8(text).ok()?.to_owned(), rest))
}

fn address(octets: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = octets.split_first()?;
    let (address, rest): (IpAddr, _) = match family {
        4 => {
            let (address, rest) = rest.split_first_chunk::<4>()?;
            (Ipv4Addr::from(*address).into(), rest)
        }
        6 => {
            let (address, rest) = rest.split_first_chunk::<16>()?;
            (Ipv6Addr::from(*address).into(), rest)
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_be_bytes(*rest.first_chunk()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn endpoint() -> EndpointName {
        EndpointName { node: NodeName::new("acme", "tokyo"), serial: "0".into() }
    }

    #[test]
    fn messages_come_back_as_they_went() {
        for message in [
            Message::Request(endpoint()),
            Message::Introduction(endpoint(), "192.0.2.7:4500".parse().expect("an address")),
            Message::Introduction(endpoint(), "[2001:db8::7]:4500".parse().expect("an address")),
        ] {
            let octets = message.encode().expect("short names");
            assert_eq!(Message::decode(&octets), Some(message.clone()));
            let longer = [octets.as_slice(), b"of a later version"].concat();
            assert_eq!(Message::decode(&longer), Some(message), "what follows is ignored");
            for end in 0..octets.len() {
                assert_eq!(Message::decode(&octets[..end]), None, "cut at {end}");
            }
        }
    }

    #[test]
    fn a_name_that_does_not_fit_is_not_sent() {
        let node = NodeName::new("a".repeat(256), "b");
        assert_eq!(Message::Request(EndpointName { node, serial: String::new() }).encode(), None);
    }

    proptest! {
        #[test]
        fn no_octets_are_too_strange(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Message::decode(&octets);
            let _ = Message::decode(&[b"vmi1\x02".as_slice(), &octets].concat());
        }
    }
}
