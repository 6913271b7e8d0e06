//! Time passes: what is due happens, and what follows from it.

use super::agenda::Happening;
use super::member::Emitted;
use super::packet::{self, Packet};
use super::stream::{Stream, StreamId, StreamReport};
use super::underlay::Flight;
use super::{Arrival, Hop, NodeId, PacketId, Simulation, roster};
use std::io::IoSlice;
use std::time::Duration;
use viamesh::control::{Reply, Request};
use viamesh::forwarding::virtio::{HEADER_LEN, VirtioHeader};
use viamesh::node::{ClientId, NodeEvent};
use viamesh::runtime::memory::Wire;

/// Turns of one node at one instant after which it is certain that it will never come to rest.
const PATIENCE: usize = 10_000;

impl Simulation {
    /// Starts a node, again if it ran before.
    ///
    /// # Panics
    /// If it runs, or refuses its settings.
    pub fn start(&mut self, node: NodeId) {
        assert!(!self.is_running(node), "{} runs already", self.name(node));
        let all = self.members.iter().enumerate().map(|(index, member)| (NodeId(index), &member.blueprint));
        let settings = roster::settings(node, &self.members[node.0].blueprint, all, self.seed);
        self.members[node.0].boot(settings, self.now);
        self.settle(node, None);
    }

    /// Starts all nodes that do not run.
    pub fn start_all(&mut self) {
        for node in self.nodes().filter(|node| !self.is_running(*node)).collect::<Vec<_>>() {
            self.start(node);
        }
    }

    /// Ends a node without a word, as a crash does. Its disk survives.
    pub fn kill(&mut self, node: NodeId) {
        let member = &mut self.members[node.0];
        member.running = None;
        if let Some(at) = member.wake.take() {
            self.wakes.remove(&(at, node));
        }
    }

    /// Ends a node in good order: it says goodbye.
    pub fn stop(&mut self, node: NodeId) {
        let now = self.now;
        if let Some(running) = &mut self.members[node.0].running {
            running.node.shutdown(now);
        }
        self.settle(node, None);
        self.kill(node);
    }

    /// Loses what a node keeps on its disk over restarts.
    pub fn lose_disk(&mut self, node: NodeId) {
        self.members[node.0].seqno = None;
    }

    /// An application of `from` sends a packet, now.
    pub fn send(&mut self, from: NodeId, packet: &Packet) -> PacketId {
        let id = self.journeys.begin(from, self.elapsed());
        if let Some(running) = &self.members[from.0].running {
            let octets = packet.octets(id);
            running.application.send(&[IoSlice::new(&VirtioHeader::PLAIN.to_bytes()), IoSlice::new(&octets)]);
        }
        self.settle(from, Some(id));
        id
    }

    /// An application of `from` sends packets at regular intervals, the first one now.
    pub fn stream(&mut self, from: NodeId, packet: Packet, interval: Duration) -> StreamId {
        let id = StreamId(self.streams.len());
        self.streams.push(Stream { from, packet, interval, running: true, sent: Vec::new() });
        self.agenda.enter(self.now, Happening::Tick(id));
        id
    }

    /// Ends a stream.
    pub fn stop_stream(&mut self, stream: StreamId) {
        self.streams[stream.0].running = false;
    }

    /// What became of a stream so far.
    pub fn report(&self, stream: StreamId) -> StreamReport {
        self.streams[stream.0].report(&self.journeys)
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
    }

    /// Lets time pass until `done`, at most for `limit`. Says how long it took, or `None` if it took longer.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> Option<Duration> {
        let start = self.now;
        let end = start + limit;
        while !done(self) {
            if !self.step(end) {
                return done(self).then(|| self.now - start);
            }
        }
        Some(self.now - start)
    }

    /// Asks a node and waits for its answer, at most for `limit`. A node that does not run gives none.
    pub fn ask(&mut self, node: NodeId, request: &Request, limit: Duration) -> Option<Reply> {
        let client = ClientId(self.now.duration_since(self.origin).as_nanos().try_into().unwrap_or(u64::MAX));
        let now = self.now;
        let running = self.members[node.0].running.as_mut()?;
        let answered = running.node.handle_request(client, request, now);
        self.replies.remove(&(node, client));
        self.settle(node, None);
        if answered.is_some() {
            return answered;
        }
        self.run_until(limit, |simulation| simulation.replies.contains_key(&(node, client)))?;
        self.replies.remove(&(node, client))
    }

    /// The next thing happens, if it does so by `end`; otherwise it is `end`, and nothing is left to do until then.
    fn step(&mut self, end: std::time::Instant) -> bool {
        let event = self.agenda.next_at();
        let wake = self.wakes.first().copied();
        let next = event.into_iter().chain(wake.map(|(at, _)| at)).min();
        let Some(next) = next.filter(|next| *next <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        match (event, wake) {
            (Some(at), _) if at == next => self.happen(),
            (_, Some((_, node))) => self.settle(node, None),
            (_, None) => {}
        }
        true
    }

    fn happen(&mut self) {
        match self.agenda.pop() {
            Some(Happening::Delivery(flight)) => self.deliver(&flight),
            Some(Happening::Tick(stream)) => self.tick(stream),
            None => {}
        }
    }

    fn deliver(&mut self, flight: &Flight) {
        let Some((node, wire)) = self.underlay.routers.inbound(flight.wire) else { return };
        let running = self.members.get(node.0).and_then(|member| member.running.as_ref());
        if running.is_some_and(|running| running.receive(wire, &flight.contents)) {
            self.settle(node, flight.packet);
        }
    }

    fn tick(&mut self, id: StreamId) {
        let stream = &self.streams[id.0];
        if !stream.running {
            return;
        }
        let (from, packet, next) = (stream.from, stream.packet, self.now + stream.interval);
        let sent = self.send(from, &packet);
        self.streams[id.0].sent.push(sent);
        self.agenda.enter(next, Happening::Tick(id));
    }

    /// Lets a node work until it has nothing to do at this instant. `packet` is what its worker finds first.
    fn settle(&mut self, node: NodeId, packet: Option<PacketId>) {
        let mut packet = packet;
        for _ in 0..PATIENCE {
            let now = self.now;
            let Some(running) = &mut self.members[node.0].running else { return };
            let emitted = running.turn(now);
            let said = running.control(now);
            let idle = !emitted.worked && !said.busy;
            self.emit(node, emitted, packet.take());
            self.replies.extend(said.replies.into_iter().map(|(client, reply)| ((node, client), reply)));
            said.events.into_iter().for_each(|event| self.note(node, event));
            if idle {
                return self.set_wake(node);
            }
        }
        let running = self.members[node.0].running.as_ref();
        let reason = running.and_then(|running| running.node.poll_timeout());
        panic!("{} does not come to rest at {:?}: {reason:?}", self.name(node), self.elapsed());
    }

    fn set_wake(&mut self, node: NodeId) {
        let member = &mut self.members[node.0];
        let wake = member.running.as_ref().and_then(|running| running.node.poll_timeout()).map(|(at, _)| at);
        if member.wake == wake {
            return;
        }
        if let Some(at) = std::mem::replace(&mut member.wake, wake) {
            self.wakes.remove(&(at, node));
        }
        self.wakes.extend(wake.map(|at| (at, node)));
    }

    fn note(&mut self, node: NodeId, event: NodeEvent) {
        if let NodeEvent::Seqno(seqno) = event {
            self.members[node.0].seqno = Some(seqno);
        }
        self.events.push((self.elapsed(), node, event));
    }

    fn emit(&mut self, node: NodeId, emitted: Emitted, packet: Option<PacketId>) {
        for (wire, train) in emitted.trains {
            for contents in train.chunks(wire.segment.max(1)) {
                let flight = Flight {
                    wire: Wire { segment: contents.len(), ..wire },
                    contents: contents.to_vec(),
                    packet,
                };
                self.transmit(node, &flight);
            }
        }
        for frame in emitted.frames {
            self.arrive(node, frame.get(HEADER_LEN..).unwrap_or_default());
        }
    }

    fn transmit(&mut self, from: NodeId, flight: &Flight) {
        let elapsed = self.elapsed();
        let outcome = self.underlay.send(from, flight, elapsed, self.now);
        if let Some(journey) = flight.packet.and_then(|packet| self.journeys.get_mut(packet)) {
            journey.hops.push(Hop {
                at: elapsed,
                from,
                to: outcome.to,
                length: flight.contents.len(),
                lost: outcome.arrivals.is_empty(),
            });
        }
        for at in outcome.arrivals {
            let flight = Flight { wire: outcome.wire, ..flight.clone() };
            self.agenda.enter(at, Happening::Delivery(flight));
        }
    }

    /// A packet reaches an application.
    fn arrive(&mut self, node: NodeId, octets: &[u8]) {
        let at = self.elapsed();
        match packet::identify(octets) {
            Some((packet, intact)) => {
                if let Some(journey) = self.journeys.get_mut(packet) {
                    journey.arrivals.push(Arrival { at, node, intact });
                }
            }
            None if self.answer_echo(node, octets) => {}
            None => self.notices.push((at, node, octets.to_vec())),
        }
    }

    /// What the kernel of a host does with an IPv6 ping to it.
    fn answer_echo(&self, node: NodeId, octets: &[u8]) -> bool {
        let mut reply = vec![0; octets.len()];
        let Some(length) = srv6::ip::echo::reply(octets, &mut reply) else { return false };
        let Some(running) = &self.members[node.0].running else { return false };
        let header = VirtioHeader::PLAIN.to_bytes();
        running.application.send(&[IoSlice::new(&header), IoSlice::new(&reply[..length])]);
        true
    }
}
