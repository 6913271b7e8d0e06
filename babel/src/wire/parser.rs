//! The parser and its state (RFC 8966 §4.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    acknowledgment,
    address_encoding::{IPV4, IPV4_VIA_IPV6, IPV6},
    hello, ihu, next_hop,
    packet::{self, RawTlv, RawTlvs},
    route_request, router_id, seqno_request,
    tlv::Tlv,
    update,
};
use crate::{Malformed, RouterId};

/// What earlier TLVs of a packet mean for later ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParserState {
    pub(super) router_id: Option<RouterId>,
    pub(super) next_hop_ipv4: Option<Ipv4Addr>,
    pub(super) next_hop_ipv6: Ipv6Addr,
    // One default prefix for each encoding: AE 1 and AE 4 do not share theirs.
    default_ipv4: Option<[u8; 4]>,
    default_ipv6: Option<[u8; 16]>,
    default_ipv4_via_ipv6: Option<[u8; 4]>,
}

/// The omitted octets of a prefix.
pub(super) struct Omitted {
    octets: [u8; 16],
    count: usize,
}

impl Omitted {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.octets.get(..self.count).unwrap_or(&[])
    }
}

impl ParserState {
    //= RFC 8966 §4.5
    /// The IPv6 next hop starts as the source of the packet; there is no IPv4 one.
    fn new(source: Ipv6Addr) -> Self {
        Self {
            router_id: None,
            next_hop_ipv4: None,
            next_hop_ipv6: source,
            default_ipv4: None,
            default_ipv6: None,
            default_ipv4_via_ipv6: None,
        }
    }

    //= RFC 8966 §4.6.9
    /// The next hop of Updates of this encoding. `None`: there is none, and the Update is ignored.
    pub(super) fn next_hop(&self, encoding: u8) -> Option<IpAddr> {
        match encoding {
            IPV4 => self.next_hop_ipv4.map(IpAddr::V4),
            _ => Some(IpAddr::V6(self.next_hop_ipv6)),
        }
    }

    /// The first `count` octets of the default prefix for an encoding.
    pub(super) fn default_prefix(&self, encoding: u8, count: usize) -> Result<Omitted, Malformed> {
        let mut octets = [0; 16];
        if count == 0 {
            return Ok(Omitted { octets, count });
        }
        let default = match encoding {
            IPV4 => self.default_ipv4.as_ref().map(|octets| &octets[..]),
            IPV4_VIA_IPV6 => self.default_ipv4_via_ipv6.as_ref().map(|octets| &octets[..]),
            IPV6 => self.default_ipv6.as_ref().map(|octets| &octets[..]),
            // Nothing is known of other encodings; the caller skips the TLV without looking at the prefix.
            _ => return Ok(Omitted { octets, count: 0 }),
        };
        let default = default.ok_or(Malformed::State("the prefix of an Update"))?;
        if count > default.len() {
            return Err(Malformed::Value("the number of omitted octets"));
        }
        octets.iter_mut().zip(default).for_each(|(to, from)| *to = *from);
        Ok(Omitted { octets, count })
    }

    pub(super) fn set_default_prefix(&mut self, encoding: u8, address: IpAddr) {
        match (encoding, address) {
            (IPV4, IpAddr::V4(address)) => self.default_ipv4 = Some(address.octets()),
            (IPV4_VIA_IPV6, IpAddr::V4(address)) => self.default_ipv4_via_ipv6 = Some(address.octets()),
            (_, IpAddr::V6(address)) => self.default_ipv6 = Some(address.octets()),
            (_, IpAddr::V4(_)) => {}
        }
    }
}

/// Iterates over the TLVs of a packet body. A TLV to ignore is skipped; a malformed one is an error, after which
/// the rest is still parsed as far as the framing allows.
#[derive(Clone, Debug)]
pub struct Parser<'a> {
    frames: RawTlvs<'a>,
    state: ParserState,
}

impl<'a> Parser<'a> {
    /// Parses the body of a packet that came from `source`.
    #[must_use]
    pub fn new(body: &'a [u8], source: Ipv6Addr) -> Self {
        Self { frames: packet::tlvs(body), state: ParserState::new(source) }
    }

    fn parse(&mut self, frame: RawTlv<'_>) -> Result<Option<Tlv>, Malformed> {
        match frame.kind {
            acknowledgment::REQUEST => acknowledgment::parse_request(frame.body),
            acknowledgment::REPLY => acknowledgment::parse_reply(frame.body),
            hello::KIND => hello::parse(frame.body),
            ihu::KIND => ihu::parse(frame.body),
            router_id::KIND => router_id::parse(frame.body, &mut self.state).map(|()| None),
            next_hop::KIND => next_hop::parse(frame.body, &mut self.state).map(|()| None),
            update::KIND => update::parse(frame.body, &mut self.state),
            route_request::KIND => route_request::parse(frame.body),
            seqno_request::KIND => seqno_request::parse(frame.body),
            //= RFC 8966 §4.3
            // PadN, the TLVs of RFC 8967 (handled before) and unknown ones.
            _ => Ok(None),
        }
    }
}

impl Iterator for Parser<'_> {
    type Item = Result<Tlv, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let tlv = self.frames.next()?.and_then(|frame| self.parse(frame));
            if let Some(tlv) = tlv.transpose() {
                return Some(tlv);
            }
        }
    }
}
