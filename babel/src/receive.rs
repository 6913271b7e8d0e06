//! Packets arrive: neighbours are acquired and links are priced (RFC 8966 §3.4, RFC 9616 §3).

use std::{net::Ipv6Addr, time::Instant};

use crate::{
    Event, InterfaceId, MULTICAST_GROUP, Misuse, NeighbourLoss, PacketError, Router, Seqno, Violation,
    authentication,
    neighbour::{Echo, Neighbour, NeighbourKey},
    router::from_centiseconds,
    rtt,
    wire::{hello::Hello, ihu::Ihu, mac::Freshness, packet::Packet, parser::Parser, tlv::Tlv},
};

/// Wildcard requests to a new neighbour, as long as it announces nothing.
const ACQUISITION_REQUESTS: u8 = 3;

/// When and how a packet came.
#[derive(Clone, Copy)]
struct Arrival {
    received: Instant,
    now: Instant,
    /// The timestamp of the Hello in the same packet.
    peer_sent: Option<u32>,
}

impl Router {
    /// Takes a packet (a UDP payload). `source` is its IPv6 source, `multicast` says whether it was sent to
    /// [`crate::MULTICAST_GROUP`]. `received` is when it arrived at the socket: the closer, the better the
    /// round-trip times.
    ///
    /// # Errors
    /// The packet was refused, or parts of it were malformed (the others were processed).
    pub fn handle_packet(
        &mut self,
        interface: InterfaceId,
        source: Ipv6Addr,
        multicast: bool,
        payload: &[u8],
        received: Instant,
        now: Instant,
    ) -> Result<(), PacketError> {
        let config = &self.interfaces.get(&interface).ok_or(Misuse::UnknownInterface)?.config;
        //= RFC 8966 §4
        if !source.is_unicast_link_local() {
            return Err(Violation::SourceNotLinkLocal.into());
        }
        // Our own multicast, looped back.
        if source == config.local || self.shutting_down {
            return Ok(());
        }
        let packet = Packet::parse(payload)?;
        let key = NeighbourKey { interface, address: source };
        self.authenticate(key, multicast, payload, &packet, now)?;
        let (tlvs, error) = parse_all(packet.body, source);
        if !tlvs.is_empty() {
            self.admit_neighbour(key, received, now)?;
        }
        let peer_sent = tlvs.iter().find_map(|tlv| match tlv {
            Tlv::Hello(hello) => hello.timestamp,
            _ => None,
        });
        let arrival = Arrival { received, now, peer_sent };
        for tlv in tlvs {
            self.handle_tlv(key, tlv, arrival);
        }
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    //= RFC 8967 §4.3
    fn authenticate(
        &mut self,
        key: NeighbourKey,
        multicast: bool,
        payload: &[u8],
        packet: &Packet<'_>,
        now: Instant,
    ) -> Result<(), Violation> {
        let nonce = self.random();
        let Some(interface) = self.interfaces.get_mut(&key.interface) else { return Ok(()) };
        if interface.config.mac_keys.is_empty() {
            return Ok(());
        }
        let destination = if multicast { MULTICAST_GROUP } else { interface.config.local };
        if !authentication::verify(payload, &interface.config.mac_keys, key.address, destination) {
            return Err(Violation::NotAuthenticated);
        }
        let freshness = Freshness::parse(packet.body);
        if interface.counter.check(key.address, multicast, &freshness, nonce, now)? {
            // What it said before was dropped: let it speak again.
            interface.outbox.push(Tlv::RouteRequest { prefix: None }, now);
            self.hello_soon(key.interface, now);
        }
        Ok(())
    }

    fn admit_neighbour(
        &mut self,
        key: NeighbourKey,
        received: Instant,
        now: Instant,
    ) -> Result<(), Violation> {
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.last_traffic = neighbour.last_traffic.max(received);
            return Ok(());
        }
        if self.neighbours_on(key.interface).count() >= self.config.limits.neighbours_per_interface {
            self.limit_reached("neighbours", now);
            return Err(Violation::TooManyNeighbours);
        }
        let unicast_seqno = Seqno(self.random_u16());
        self.neighbours.insert(key, Neighbour::new(unicast_seqno, received));
        Ok(())
    }

    fn handle_tlv(&mut self, key: NeighbourKey, tlv: Tlv, arrival: Arrival) {
        let now = arrival.now;
        match tlv {
            //= RFC 8966 §3.3
            Tlv::AckRequest { opaque, .. } => {
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.outbox.push(Tlv::Ack { opaque }, now);
                }
            }
            Tlv::Ack { opaque } => self.handle_ack(key, opaque, now),
            Tlv::Hello(hello) => self.handle_hello(key, &hello, arrival),
            Tlv::Ihu(ihu) => self.handle_ihu(key, &ihu, arrival),
            Tlv::Update(update) => self.handle_update(key, &update, now),
            Tlv::RouteRequest { prefix } => self.handle_route_request(key, prefix, now),
            Tlv::SeqnoRequest(request) => self.handle_seqno_request(key, &request, now),
        }
    }

    fn handle_hello(&mut self, key: NeighbourKey, hello: &Hello, arrival: Arrival) {
        let receive = self.micros(arrival.received);
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        let history = if hello.unicast { &mut neighbour.unicast } else { &mut neighbour.multicast };
        let restarted = history.receive(hello.seqno, from_centiseconds(hello.interval), arrival.received);
        if restarted {
            neighbour.rtt.clear();
        }
        // A router that started anew has forgotten its feasibility distances, and with them the promise on which
        // our routes through it rest.
        let restarted = restarted && !hello.unicast;
        if restarted {
            neighbour.unicast.clear();
        }
        if let Some(origin) = hello.timestamp {
            neighbour.echo = Some(Echo { origin, receive, received: arrival.received });
        }
        // An unscheduled Hello proves nothing about the next one, so it makes nobody reachable.
        if hello.interval == 0 {
            return;
        }
        if !neighbour.heard || restarted {
            neighbour.heard = true;
            neighbour.requests_left = ACQUISITION_REQUESTS;
            neighbour.next_request = Some(arrival.now);
            self.hello_soon(key.interface, arrival.now);
        }
        if restarted {
            self.retract_all(key, arrival.now);
        }
        self.price_link(key, NeighbourLoss::Unheard, arrival.now);
    }

    fn handle_ihu(&mut self, key: NeighbourKey, ihu: &Ihu, arrival: Arrival) {
        let Some(interface) = self.interfaces.get(&key.interface) else { return };
        //= RFC 8966 §3.4.2
        if ihu.address.is_some_and(|address| address != interface.config.local) {
            return;
        }
        let sample = match (ihu.echo, arrival.peer_sent, interface.config.timestamps) {
            (Some((origin, peer_received)), Some(peer_sent), true) => {
                rtt::sample(origin, peer_received, peer_sent, self.micros(arrival.received))
            }
            _ => None,
        };
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        neighbour.hear_ihu(ihu.rxcost, from_centiseconds(ihu.interval), arrival.received);
        neighbour.wants_fast = ihu.fast_hello.map(from_centiseconds);
        if let Some(sample) = sample {
            neighbour.rtt.add(sample, arrival.received);
        }
        if interface.config.fast_hello.is_some() {
            let wanted = neighbour.want_fast(arrival.now);
            neighbour.update_fast(wanted, arrival.now);
        }
        self.price_link(key, NeighbourLoss::Unheard, arrival.now);
    }

    /// Computes the cost of a link anew; if it changed, routes over it are judged again. `reason` is reported if
    /// the neighbour is lost by it.
    pub(crate) fn price_link(&mut self, key: NeighbourKey, reason: NeighbourLoss, now: Instant) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        let was_up = neighbour.is_up();
        if !neighbour.update_cost(&self.config.cost) {
            return;
        }
        let is_up = neighbour.is_up();
        let NeighbourKey { interface, address } = key;
        match (was_up, is_up) {
            (false, true) => {
                self.events.push_back(Event::NeighbourUp { interface, address });
                self.dump_to_neighbour(key, now);
            }
            (true, false) => self.events.push_back(Event::NeighbourDown { interface, address, reason }),
            _ => {}
        }
        self.reselect_neighbour(key, now);
    }

    /// A neighbour's Hellos stopped.
    pub(crate) fn lose_neighbour(&mut self, key: NeighbourKey, now: Instant) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        neighbour.lose();
        self.price_link(key, NeighbourLoss::HellosMissing, now);
        // Say at once that we do not hear it: the other direction may work.
        self.hello_soon(key.interface, now);
    }

    /// Removes a neighbour and its routes.
    pub(crate) fn forget_neighbour(&mut self, key: NeighbourKey, reason: NeighbourLoss, now: Instant) {
        let Some(neighbour) = self.neighbours.remove(&key) else { return };
        if neighbour.is_up() {
            let NeighbourKey { interface, address } = key;
            self.events.push_back(Event::NeighbourDown { interface, address, reason });
        }
        self.requests.forget(key);
        self.drop_routes_of(key, now);
    }
}

fn parse_all(body: &[u8], source: Ipv6Addr) -> (Vec<Tlv>, Option<crate::Malformed>) {
    let mut error = None;
    let tlvs = Parser::new(body, source)
        .filter_map(|tlv| tlv.map_err(|malformed| error.get_or_insert(malformed).to_owned()).ok())
        .collect();
    (tlvs, error)
}
