//! Writes packets, leaving out what the parser state of the receiver already holds (RFC 8966 §4.5).

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::{
    acknowledgment,
    address_encoding::{IPV4, IPV4_VIA_IPV6, IPV6, WILDCARD, encode_address, significant_octets},
    hello::{self, Hello},
    ihu::{self, Ihu},
    next_hop,
    packet::{HEADER_LEN, MAGIC, VERSION},
    route_request, router_id,
    seqno_request::{self, SeqnoRequest},
    sub_tlv,
    tlv::Tlv,
    update::{self, Announcement, Update},
};
use crate::{INFINITY, Prefix, RouterId};

/// The interval written into retractions, in centiseconds: not used by the receiver, but it must not be zero.
const RETRACTION_INTERVAL: u16 = 400;

/// What the receiver will know at this point of the packet.
#[derive(Clone, Copy, Debug, Default)]
struct WriterState {
    router_id: Option<RouterId>,
    next_hop_ipv4: Option<Ipv4Addr>,
    default_ipv4: Option<[u8; 4]>,
    default_ipv4_via_ipv6: Option<[u8; 4]>,
    default_ipv6: Option<[u8; 16]>,
}

/// Builds one packet in a caller's buffer.
#[derive(Debug)]
pub struct PacketWriter<'a> {
    buffer: &'a mut Vec<u8>,
    limit: usize,
    state: WriterState,
    ipv4_encoding: u8,
}

impl<'a> PacketWriter<'a> {
    /// Starts a packet of at most `limit` octets; what `buffer` held is discarded. `has_ipv4` says whether IPv4
    /// prefixes are retracted as AE 1 or AE 4.
    pub fn new(buffer: &'a mut Vec<u8>, limit: usize, has_ipv4: bool) -> Self {
        buffer.clear();
        buffer.extend_from_slice(&[MAGIC, VERSION, 0, 0]);
        let ipv4_encoding = if has_ipv4 { IPV4 } else { IPV4_VIA_IPV6 };
        Self { buffer, limit, state: WriterState::default(), ipv4_encoding }
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.len() <= HEADER_LEN
    }

    /// Appends a TLV with what it depends on. Returns `false`, and changes nothing, if it does not fit.
    #[must_use]
    pub fn push(&mut self, tlv: &Tlv) -> bool {
        let (length, state) = (self.buffer.len(), self.state);
        self.write(tlv);
        let fits = self.buffer.len() <= self.limit;
        if !fits {
            self.buffer.truncate(length);
            self.state = state;
        }
        fits
    }

    /// Appends PadN TLVs until the packet has exactly `length` octets (or one less where no TLV fits).
    pub fn pad_to(&mut self, length: usize) {
        loop {
            match length.saturating_sub(self.buffer.len()) {
                0 => return,
                1 => self.buffer.push(0),
                missing => {
                    let zeros = missing.saturating_sub(2).min(255);
                    self.tlv(1, |body| body.resize(body.len().saturating_add(zeros), 0));
                }
            }
        }
    }

    /// Appends a TLV of another layer (RFC 8967) whatever the limit.
    pub fn push_raw(&mut self, kind: u8, body: &[u8]) {
        self.tlv(kind, |out| out.extend_from_slice(body));
    }

    /// Completes the header and returns the packet.
    pub fn finish(self) -> &'a mut Vec<u8> {
        let length = u16::try_from(self.buffer.len().saturating_sub(HEADER_LEN)).unwrap_or(u16::MAX);
        if let Some(field) = self.buffer.get_mut(2..4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
        self.buffer
    }

    fn write(&mut self, tlv: &Tlv) {
        match tlv {
            Tlv::AckRequest { opaque, interval } => self.tlv(acknowledgment::REQUEST, |body| {
                put(body, &[0, *opaque, *interval]);
            }),
            Tlv::Ack { opaque } => self.tlv(acknowledgment::REPLY, |body| put(body, &[*opaque])),
            Tlv::Hello(hello) => self.hello(hello),
            Tlv::Ihu(ihu) => self.ihu(ihu),
            Tlv::Update(Update::Announce(announcement)) => self.announcement(announcement),
            Tlv::Update(Update::Retract { prefix }) => self.retraction(prefix),
            Tlv::Update(Update::RetractAll) => self.tlv(update::KIND, |body| {
                body.extend_from_slice(&[WILDCARD, 0, 0, 0]);
                put(body, &[RETRACTION_INTERVAL, 0, INFINITY]);
            }),
            Tlv::RouteRequest { prefix } => self.route_request(prefix.as_ref()),
            Tlv::SeqnoRequest(request) => self.seqno_request(request),
        }
    }

    fn hello(&mut self, hello: &Hello) {
        let flags = if hello.unicast { hello::UNICAST_FLAG } else { 0 };
        self.tlv(hello::KIND, |body| {
            put(body, &[flags, hello.seqno.0, hello.interval]);
            if let Some(timestamp) = hello.timestamp {
                body.extend_from_slice(&[sub_tlv::TIMESTAMP, 4]);
                body.extend_from_slice(&timestamp.to_be_bytes());
            }
        });
    }

    fn ihu(&mut self, ihu: &Ihu) {
        let (encoding, address) = ihu.address.map_or((WILDCARD, Vec::new()), encode_address);
        self.tlv(ihu::KIND, |body| {
            body.extend_from_slice(&[encoding, 0]);
            put(body, &[ihu.rxcost, ihu.interval]);
            body.extend_from_slice(&address);
            if let Some((origin, receive)) = ihu.echo {
                body.extend_from_slice(&[sub_tlv::TIMESTAMP, 8]);
                body.extend_from_slice(&origin.to_be_bytes());
                body.extend_from_slice(&receive.to_be_bytes());
            }
            if let Some(interval) = ihu.fast_hello {
                body.extend_from_slice(&[sub_tlv::FAST_HELLO, 2]);
                put(body, &[interval]);
            }
        });
    }

    fn announcement(&mut self, announcement: &Announcement) {
        if self.state.router_id != Some(announcement.router_id) {
            self.state.router_id = Some(announcement.router_id);
            self.tlv(router_id::KIND, |body| {
                body.extend_from_slice(&[0, 0]);
                body.extend_from_slice(&announcement.router_id.0);
            });
        }
        let encoding = match (announcement.prefix.destination, announcement.next_hop) {
            (IpNet::V4(_), IpAddr::V4(next_hop)) => {
                self.next_hop_ipv4(next_hop);
                IPV4
            }
            //= RFC 9229 §2.1
            (IpNet::V4(_), IpAddr::V6(_)) => IPV4_VIA_IPV6,
            (IpNet::V6(_), _) => IPV6,
        };
        let Announcement { interval, seqno, metric, .. } = *announcement;
        self.update(&announcement.prefix, encoding, [interval, seqno.0, metric]);
    }

    fn retraction(&mut self, prefix: &Prefix) {
        let encoding = if prefix.is_ipv4() { self.ipv4_encoding } else { IPV6 };
        self.update(prefix, encoding, [RETRACTION_INTERVAL, 0, INFINITY]);
    }

    fn next_hop_ipv4(&mut self, next_hop: Ipv4Addr) {
        if self.state.next_hop_ipv4 != Some(next_hop) {
            self.state.next_hop_ipv4 = Some(next_hop);
            self.tlv(next_hop::KIND, |body| {
                body.extend_from_slice(&[IPV4, 0]);
                body.extend_from_slice(&next_hop.octets());
            });
        }
    }

    fn update(&mut self, prefix: &Prefix, encoding: u8, numbers: [u16; 3]) {
        let octets = significant_octets(&prefix.destination);
        let omitted = self.shared_octets(encoding, &octets);
        let flags = if omitted == 0 && !octets.is_empty() { update::PREFIX_FLAG } else { 0 };
        if flags != 0 {
            self.set_default(encoding, prefix.destination.network());
        }
        let length = prefix.destination.prefix_len();
        self.tlv(update::KIND, |body| {
            body.extend_from_slice(&[encoding, flags, length, u8::try_from(omitted).unwrap_or(0)]);
            put(body, &numbers);
            body.extend_from_slice(octets.get(omitted..).unwrap_or(&[]));
            put_source(body, prefix);
        });
    }

    /// How many leading octets the default prefix of the encoding already has.
    fn shared_octets(&self, encoding: u8, octets: &[u8]) -> usize {
        let default = match encoding {
            IPV4 => self.state.default_ipv4.as_ref().map(|octets| &octets[..]),
            IPV4_VIA_IPV6 => self.state.default_ipv4_via_ipv6.as_ref().map(|octets| &octets[..]),
            _ => self.state.default_ipv6.as_ref().map(|octets| &octets[..]),
        };
        let default = default.unwrap_or(&[]);
        default.iter().zip(octets).take_while(|(left, right)| left == right).count()
    }

    fn set_default(&mut self, encoding: u8, address: IpAddr) {
        match (encoding, address) {
            (IPV4, IpAddr::V4(address)) => self.state.default_ipv4 = Some(address.octets()),
            (_, IpAddr::V4(address)) => self.state.default_ipv4_via_ipv6 = Some(address.octets()),
            (_, IpAddr::V6(address)) => self.state.default_ipv6 = Some(address.octets()),
        }
    }

    fn route_request(&mut self, prefix: Option<&Prefix>) {
        self.tlv(route_request::KIND, |body| match prefix {
            None => body.extend_from_slice(&[WILDCARD, 0]),
            Some(prefix) => {
                body.extend_from_slice(&[request_encoding(prefix), prefix.destination.prefix_len()]);
                body.extend_from_slice(&significant_octets(&prefix.destination));
                put_source(body, prefix);
            }
        });
    }

    fn seqno_request(&mut self, request: &SeqnoRequest) {
        let prefix = &request.prefix;
        self.tlv(seqno_request::KIND, |body| {
            body.extend_from_slice(&[request_encoding(prefix), prefix.destination.prefix_len()]);
            put(body, &[request.seqno.0]);
            body.extend_from_slice(&[request.hop_count, 0]);
            body.extend_from_slice(&request.router_id.0);
            body.extend_from_slice(&significant_octets(&prefix.destination));
            put_source(body, prefix);
        });
    }

    fn tlv(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[kind, 0]);
        body(self.buffer);
        // Every TLV written here is far below 256 octets.
        let length = self.buffer.len().saturating_sub(start).saturating_sub(2);
        if let Some(field) = self.buffer.get_mut(start.saturating_add(1)) {
            *field = u8::try_from(length).unwrap_or(u8::MAX);
        }
    }
}

/// Requests for IPv4 use AE 1: it is understood by all, and answered with whatever encoding fits.
fn request_encoding(prefix: &Prefix) -> u8 {
    if prefix.is_ipv4() { IPV4 } else { IPV6 }
}

fn put(body: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| body.extend_from_slice(&number.to_be_bytes()));
}

fn put_source(body: &mut Vec<u8>, prefix: &Prefix) {
    if let Some(source) = &prefix.source {
        let octets = significant_octets(source);
        let length = u8::try_from(octets.len().saturating_add(1)).unwrap_or(u8::MAX);
        body.extend_from_slice(&[sub_tlv::SOURCE_PREFIX, length, source.prefix_len()]);
        body.extend_from_slice(&octets);
    }
}
