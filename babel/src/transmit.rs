//! Packets are written at the moment in which they are handed over, so that timestamps are true (RFC 9616 §3.2)
//! and announcements are about the present.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use crate::{
    INFINITY, InterfaceId, MULTICAST_GROUP, Prefix, Router, RouterId, Transmit,
    authentication::append_macs,
    feasibility::Distance,
    interface::Said,
    neighbour::{Neighbour, NeighbourKey},
    outbox::Outbox,
    path_mtu::{ANSWER_DELAY, Probe},
    route_table::Told,
    router::to_centiseconds,
    wire::{
        hello::Hello,
        ihu::Ihu,
        mac::PACKET_COUNTER,
        tlv::Tlv,
        update::{Announcement, Update},
        writer::PacketWriter,
    },
};

/// As long as nobody is heard, the first Hellos of an interface come this far apart, doubling.
const EARLY_HELLO: Duration = Duration::from_millis(200);
/// How many of them.
const EARLY_HELLOS: u32 = 4;
/// IHUs promise the next one within so many Hello intervals (RFC 8966 appendix B), though one goes with each.
const IHU_INTERVALS: u32 = 3;
/// A Hello older than this is not echoed.
const STALE_ECHO: Duration = Duration::from_secs(60);
/// The interval in the last Hello before we leave.
const LAST_HELLO_INTERVAL: u16 = 10;
/// Fast unicast Hellos come no faster than this, whatever both sides say.
const LEAST_FAST_INTERVAL: Duration = Duration::from_millis(20);
/// How often we say goodbye.
const FAREWELLS: u32 = 2;

/// To whom a packet goes.
#[derive(Clone, Copy)]
enum Audience {
    Everyone(InterfaceId),
    One(NeighbourKey),
}

impl Audience {
    const fn interface(self) -> InterfaceId {
        match self {
            Self::Everyone(interface) => interface,
            Self::One(key) => key.interface,
        }
    }
}

impl Router {
    /// Writes the next packet that is due (a UDP payload) into `buffer`, replacing its content, and says where it
    /// goes. Call until `None`, and hand each over at once: it carries `now` as its time of departure.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Transmit> {
        if self.shutting_down {
            return self.write_farewell(buffer, now);
        }
        if let Some(transmit) = self.write_challenge(buffer) {
            return Some(transmit);
        }
        while let Some(audience) = self.due_audience(now) {
            let written = match audience {
                Audience::Everyone(id) => self.write_multicast(id, buffer, now),
                Audience::One(key) => self.write_unicast(key, buffer, now),
            };
            if let Some(transmit) = written {
                return Some(transmit);
            }
        }
        self.write_probe(buffer, now)
    }

    fn due_audience(&self, now: Instant) -> Option<Audience> {
        let mut interfaces = self.interfaces.iter();
        if let Some((id, _)) = interfaces.find(|(_, i)| i.next_hello <= now || i.outbox.is_due(now)) {
            return Some(Audience::Everyone(*id));
        }
        let is_due = |n: &Neighbour| n.next_fast_hello.is_some_and(|at| at <= now) || n.outbox.is_due(now);
        self.neighbours.iter().find(|(_, n)| is_due(n)).map(|(key, _)| Audience::One(*key))
    }

    fn write_multicast(&mut self, id: InterfaceId, buffer: &mut Vec<u8>, now: Instant) -> Option<Transmit> {
        let interface = self.interfaces.get(&id)?;
        let limit = interface.packet_limit();
        let mut writer = PacketWriter::new(buffer, limit, interface.config.local_ipv4.is_some());
        if interface.next_hello <= now {
            self.write_hello(id, &mut writer, now);
        }
        let mut outbox = std::mem::take(&mut self.interfaces.get_mut(&id)?.outbox);
        let updates = self.write_outbox(Audience::Everyone(id), &mut outbox, &mut writer, now);
        let interface = self.interfaces.get_mut(&id)?;
        interface.outbox = outbox;
        if updates {
            interface.last_update = Some(now);
        }
        self.finish(writer, id, MULTICAST_GROUP)
    }

    fn write_unicast(&mut self, key: NeighbourKey, buffer: &mut Vec<u8>, now: Instant) -> Option<Transmit> {
        let Some(interface) = self.interfaces.get(&key.interface) else {
            self.neighbours.remove(&key);
            return None;
        };
        let limit = interface.packet_limit();
        let mut writer = PacketWriter::new(buffer, limit, interface.config.local_ipv4.is_some());
        if self.neighbours.get(&key)?.next_fast_hello.is_some_and(|at| at <= now) {
            self.write_fast_hello(key, &mut writer, now);
        }
        let mut outbox = std::mem::take(&mut self.neighbours.get_mut(&key)?.outbox);
        self.write_outbox(Audience::One(key), &mut outbox, &mut writer, now);
        self.neighbours.get_mut(&key)?.outbox = outbox;
        self.finish(writer, key.interface, key.address)
    }

    //= RFC 8966 §3.4.1
    fn write_hello(&mut self, id: InterfaceId, writer: &mut PacketWriter<'_>, now: Instant) {
        let timestamp = self.micros(now);
        let shortening = self.jitter(Duration::from_millis(50));
        let nobody = self.neighbours_on(id).all(|(_, neighbour)| !neighbour.heard);
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        let interval = interface.config.hello_interval;
        let hello = Hello {
            unicast: false,
            seqno: interface.hello_seqno,
            interval: to_centiseconds(interval),
            timestamp: interface.config.timestamps.then_some(timestamp),
        };
        let written = writer.push(&Tlv::Hello(hello));
        debug_assert!(written, "a Hello fits into an empty packet");
        interface.hello_seqno = interface.hello_seqno.plus(1);
        interface.last_hello = Some(now);
        let delay = if nobody && interface.hellos < EARLY_HELLOS {
            (EARLY_HELLO * 2_u32.pow(interface.hellos)).min(interval)
        } else {
            interval.saturating_sub(shortening.min(interval / 16))
        };
        interface.hellos = interface.hellos.saturating_add(1);
        interface.next_hello = now + delay;
        let keys: Vec<_> = self.neighbours_on(id).map(|(key, _)| *key).collect();
        for key in keys {
            self.write_ihu(key, writer, now);
        }
    }

    /// A unicast Hello, if one of both sides still wants them, and a few more: their IHUs say that it is over.
    fn write_fast_hello(&mut self, key: NeighbourKey, writer: &mut PacketWriter<'_>, now: Instant) {
        let timestamp = self.micros(now);
        let Some(interface) = self.interfaces.get(&key.interface) else { return };
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        let Some(ours) = interface.config.fast_hello.filter(|_| neighbour.last_fast_hellos > 0) else {
            neighbour.next_fast_hello = None;
            return;
        };
        let wanted = neighbour.want_fast(now);
        neighbour.update_fast(wanted, now);
        neighbour.last_fast_hellos -= 1;
        // The slower of the two, and never a flood.
        let interval = ours.max(neighbour.wants_fast.unwrap_or(ours)).max(LEAST_FAST_INTERVAL);
        let hello = Hello {
            unicast: true,
            seqno: neighbour.unicast_seqno,
            interval: to_centiseconds(interval),
            timestamp: interface.config.timestamps.then_some(timestamp),
        };
        neighbour.unicast_seqno = neighbour.unicast_seqno.plus(1);
        neighbour.next_fast_hello = Some(now + interval);
        if writer.push(&Tlv::Hello(hello)) {
            self.write_ihu(key, writer, now);
        }
    }

    //= RFC 8966 §3.4.2
    fn write_ihu(&mut self, key: NeighbourKey, writer: &mut PacketWriter<'_>, now: Instant) {
        let Some(interface) = self.interfaces.get(&key.interface) else { return };
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        // Who was never heard is not told so: its Hello may be on the way.
        if !neighbour.heard && !neighbour.told {
            return;
        }
        neighbour.told = true;
        let echo = neighbour
            .echo
            .filter(|echo| now.saturating_duration_since(echo.received) < STALE_ECHO)
            .filter(|_| interface.config.timestamps)
            .map(|echo| (echo.origin, echo.receive));
        let fast_hello = interface.config.fast_hello.filter(|_| neighbour.want_fast(now));
        let ihu = Ihu {
            address: Some(IpAddr::V6(key.address)),
            rxcost: if self.shutting_down { INFINITY } else { neighbour.rxcost(&self.config.cost) },
            interval: to_centiseconds(interface.config.hello_interval * IHU_INTERVALS),
            echo,
            fast_hello: fast_hello.map(to_centiseconds),
        };
        // What does not fit into the packet of the Hello is without value for round-trip times, and there is
        // another with the next Hello.
        let _fits = writer.push(&Tlv::Ihu(ihu));
    }

    /// Writes what waits. Returns whether there were updates.
    fn write_outbox(
        &mut self,
        audience: Audience,
        outbox: &mut Outbox,
        writer: &mut PacketWriter<'_>,
        now: Instant,
    ) -> bool {
        while let Some(tlv) = outbox.tlvs.front() {
            if !writer.push(tlv) {
                outbox.written(now);
                return false;
            }
            outbox.tlvs.pop_front();
        }
        let mut fresh = outbox.take_updates(now);
        // Updates of one originator share a Router-Id TLV.
        fresh.sort_by_key(|prefix| (self.originator(prefix), *prefix));
        outbox.ready.extend(fresh);
        let mut updates = false;
        while let Some(prefix) = outbox.ready.front().copied() {
            if let Some(update) = self.resolve(prefix, audience, now)
                && !writer.push(&Tlv::Update(update))
            {
                break;
            }
            outbox.ready.pop_front();
            updates = true;
        }
        outbox.written(now);
        updates
    }

    fn originator(&self, prefix: &Prefix) -> Option<RouterId> {
        if self.own.contains_key(prefix) {
            return Some(self.config.router_id);
        }
        self.routes.get(prefix)?.installed.map(|installed| installed.router_id)
    }

    /// What to say about a prefix now. Remembers the feasibility distance before it can be sent.
    fn resolve(&mut self, prefix: Prefix, audience: Audience, now: Instant) -> Option<Update> {
        let Some((router_id, distance)) = self.announcement_of(&prefix) else {
            return self.retraction_for(prefix, audience);
        };
        if router_id != self.config.router_id {
            if self.is_split(&prefix, audience) {
                let said = self.interfaces.get(&audience.interface())?.said.contains_key(&prefix);
                return if said { self.retraction_for(prefix, audience) } else { None };
            }
            let limit = self.config.limits.sources;
            if !self.sources.announce(prefix, router_id, distance, limit, now) {
                self.limit_reached("sources", now);
                return None;
            }
            if let Some(destination) = self.routes.get_mut(&prefix) {
                destination.told = Some(Told { router_id, metric: distance.metric });
            }
        }
        let interface = self.interfaces.get_mut(&audience.interface())?;
        interface.said.insert(prefix, Said::Announced);
        let local = &interface.config;
        let next_hop = match local.local_ipv4 {
            Some(address) if prefix.is_ipv4() => IpAddr::V4(address),
            _ => IpAddr::V6(local.local),
        };
        let interval = to_centiseconds(local.update_interval);
        let Distance { seqno, metric } = distance;
        Some(Update::Announce(Announcement { prefix, next_hop, router_id, seqno, metric, interval }))
    }

    fn retraction_for(&mut self, prefix: Prefix, audience: Audience) -> Option<Update> {
        let interface = self.interfaces.get_mut(&audience.interface())?;
        interface.note_retraction(prefix);
        if let Some(destination) = self.routes.get_mut(&prefix)
            && destination.installed.is_none()
        {
            destination.told = None;
        }
        Some(Update::Retract { prefix })
    }

    fn announcement_of(&self, prefix: &Prefix) -> Option<(RouterId, Distance)> {
        if let Some(metric) = self.own.get(prefix) {
            return Some((self.config.router_id, Distance { seqno: self.seqno, metric: *metric }));
        }
        let (_, metric) = self.selected_metric(prefix)?;
        let (_, route) = self.routes.get(prefix)?.selected()?;
        (metric < INFINITY).then_some((route.router_id, Distance { seqno: route.seqno, metric }))
    }

    /// Whether split horizon forbids to announce the prefix to everyone there.
    fn is_split(&self, prefix: &Prefix, audience: Audience) -> bool {
        let Audience::Everyone(id) = audience else { return false };
        let split_horizon = self.interfaces.get(&id).is_some_and(|interface| interface.config.split_horizon);
        split_horizon && self.learned_on(prefix) == Some(id)
    }

    /// One of the last packets: "I hear nobody, I have no route, do not wait for me".
    fn write_farewell(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Transmit> {
        let timestamp = self.micros(now);
        let (id, interface) = self.interfaces.iter_mut().find(|(_, i)| i.hellos < FAREWELLS)?;
        let id = *id;
        let mut writer = PacketWriter::new(buffer, interface.packet_limit(), true);
        let hello = Hello {
            unicast: false,
            seqno: interface.hello_seqno,
            interval: LAST_HELLO_INTERVAL,
            timestamp: interface.config.timestamps.then_some(timestamp),
        };
        interface.hellos += 1;
        interface.hello_seqno = interface.hello_seqno.plus(1);
        let _fits = writer.push(&Tlv::Hello(hello)) && writer.push(&Tlv::Update(Update::RetractAll));
        let keys: Vec<_> = self.neighbours_on(id).map(|(key, _)| *key).collect();
        for key in keys {
            self.write_ihu(key, &mut writer, now);
        }
        self.finish(writer, id, MULTICAST_GROUP)
    }

    /// A challenge, or the answer to one.
    fn write_challenge(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let mut interfaces = self.interfaces.iter_mut();
        let (id, outgoing) = interfaces.find_map(|(id, i)| Some((*id, i.counter.outgoing.pop_front()?)))?;
        let limit = self.interfaces.get(&id)?.packet_limit();
        let mut writer = PacketWriter::new(buffer, limit, true);
        writer.push_raw(outgoing.kind, &outgoing.nonce);
        self.finish(writer, id, outgoing.destination)
    }

    /// A padded packet that asks for an acknowledgment.
    fn write_probe(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Transmit> {
        let is_due = |probe: &Probe| probe.at <= now && probe.may_send();
        let mut neighbours = self.neighbours.iter_mut();
        let (key, neighbour) = neighbours.find(|(_, n)| n.probe.as_ref().is_some_and(is_due))?;
        let key = *key;
        let probe = neighbour.probe.as_mut()?;
        probe.sent(neighbour.rtt.rtt(), now);
        let (opaque, size) = (probe.opaque, probe.size);
        let limit = self.interfaces.get(&key.interface)?.limit_within(size);
        let mut writer = PacketWriter::new(buffer, limit, true);
        let request = Tlv::AckRequest { opaque, interval: to_centiseconds(ANSWER_DELAY) };
        let _fits = writer.push(&request);
        writer.pad_to(limit);
        self.finish(writer, key.interface, key.address)
    }

    /// Completes a packet and authenticates it. `None` if there is nothing in it.
    fn finish(
        &mut self,
        mut writer: PacketWriter<'_>,
        id: InterfaceId,
        destination: Ipv6Addr,
    ) -> Option<Transmit> {
        if writer.is_empty() {
            return None;
        }
        let fresh_index = self.random();
        let interface = self.interfaces.get_mut(&id)?;
        let keys = &interface.config.mac_keys;
        if keys.is_empty() {
            writer.finish();
        } else {
            writer.push_raw(PACKET_COUNTER, &interface.counter.next(fresh_index));
            append_macs(writer.finish(), keys, interface.config.local, destination);
        }
        Some(Transmit { interface: id, destination })
    }
}
