//! Route requests and seqno requests (RFC 8966 §3.8).

use std::time::{Duration, Instant};

use crate::{
    Event, INFINITY, Prefix, Router, RouterId, Seqno,
    feasibility::is_feasible,
    neighbour::NeighbourKey,
    request_table::Target,
    timers::RECOVERY_PERIOD,
    wire::{seqno_request::SeqnoRequest, tlv::Tlv},
};

/// How far our own requests travel.
const HOP_COUNT: u8 = 64;
/// A neighbour's wildcard requests are answered no more often than this.
const DUMP_SPACING: Duration = Duration::from_millis(200);

impl Router {
    //= RFC 8966 §3.8.1.1
    pub(crate) fn handle_route_request(&mut self, key: NeighbourKey, prefix: Option<Prefix>, now: Instant) {
        match prefix {
            // With an Update or a retraction, whatever split horizon says.
            Some(prefix) => self.update_neighbour(key, prefix, now),
            None => {
                let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
                let recent =
                    neighbour.last_dump.is_some_and(|at| now.saturating_duration_since(at) < DUMP_SPACING);
                if !recent {
                    neighbour.last_dump = Some(now);
                    self.dump_to_neighbour(key, now);
                }
            }
        }
    }

    //= RFC 8966 §3.8.1.2
    pub(crate) fn handle_seqno_request(&mut self, key: NeighbourKey, request: &SeqnoRequest, now: Instant) {
        let SeqnoRequest { prefix, router_id, seqno, hop_count } = *request;
        if let Some((our_id, our_seqno)) = self.announced_source(&prefix)
            && (our_id != router_id || !seqno.is_newer_than(our_seqno))
        {
            return self.update_neighbour(key, prefix, now);
        }
        if router_id == self.config.router_id {
            if self.own.contains_key(&prefix) {
                self.increase_seqno(seqno, now);
                self.trigger(prefix, true, now);
            }
            return;
        }
        if hop_count >= 2 {
            self.forward_seqno_request(key, request, now);
        }
    }

    /// What we announce a prefix as: originator and sequence number.
    fn announced_source(&self, prefix: &Prefix) -> Option<(RouterId, Seqno)> {
        if self.own.contains_key(prefix) {
            return Some((self.config.router_id, self.seqno));
        }
        let (_, metric) = self.selected_metric(prefix)?;
        let (_, route) = self.routes.get(prefix)?.selected()?;
        (metric < INFINITY).then_some((route.router_id, route.seqno))
    }

    /// Forwards to a neighbour other than the requester that offers a feasible route, else to one that offers
    /// any.
    fn forward_seqno_request(&mut self, requester: NeighbourKey, request: &SeqnoRequest, now: Instant) {
        let prefix = request.prefix;
        let Some(destination) = self.routes.get(&prefix) else { return };
        let cost = |key| self.neighbours.get(key).map_or(INFINITY, |neighbour| neighbour.cost);
        let next = destination
            .routes
            .iter()
            .filter(|(key, route)| **key != requester && route.metric(cost(key)) < INFINITY)
            .min_by_key(|(key, route)| {
                let distance = self.sources.distance(&prefix, route.router_id);
                (!is_feasible(route.distance(), distance), route.metric(cost(key)))
            })
            .map(|(key, _)| *key);
        let Some(next) = next else { return };
        let source = (prefix, request.router_id);
        let limit = self.config.limits.requests;
        if self.requests.forward(source, request.seqno, requester, limit, now) {
            let forwarded = SeqnoRequest { hop_count: request.hop_count - 1, ..*request };
            if let Some(neighbour) = self.neighbours.get_mut(&next) {
                neighbour.outbox.push(Tlv::SeqnoRequest(forwarded), now);
            }
        }
    }

    /// Sends a request of our own, unless the same is under way.
    pub(crate) fn ask_for_seqno(
        &mut self,
        source: (Prefix, RouterId),
        seqno: Seqno,
        target: Target,
        now: Instant,
    ) {
        if self.requests.ask(source, seqno, target, self.config.limits.requests, now) {
            self.send_seqno_request(source, seqno, target, now);
        }
    }

    pub(crate) fn send_seqno_request(
        &mut self,
        (prefix, router_id): (Prefix, RouterId),
        seqno: Seqno,
        target: Target,
        now: Instant,
    ) {
        let request = Tlv::SeqnoRequest(SeqnoRequest { prefix, router_id, seqno, hop_count: HOP_COUNT });
        match target {
            Target::Neighbour(key) => {
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.outbox.push(request, now);
                }
            }
            Target::Everyone => {
                self.interfaces.values_mut().for_each(|interface| interface.outbox.push(request, now));
            }
        }
    }

    //= RFC 8966 §3.8.1.2
    /// A neighbour needs `wanted`: our number grows by one. If we lost it, it is made up for at once.
    fn increase_seqno(&mut self, wanted: Seqno, now: Instant) {
        let young = now.saturating_duration_since(self.started) < RECOVERY_PERIOD;
        let recovering = self.config.seqno.is_none() && young;
        self.set_seqno(if recovering { wanted } else { self.seqno.plus(1) }, now);
    }

    /// Changes our sequence number. All that we originate carries the new one from now on.
    pub(crate) fn set_seqno(&mut self, seqno: Seqno, now: Instant) {
        self.seqno = seqno;
        self.events.push_back(Event::SeqnoChanged(seqno));
        let own: Vec<_> = self.own.keys().copied().collect();
        for prefix in own {
            self.trigger(prefix, false, now);
        }
    }
}
