//! What happens because time passes.

use std::time::{Duration, Instant};

use crate::{
    INFINITY, NeighbourLoss, Router,
    neighbour::{Neighbour, NeighbourKey},
    wire::tlv::Tlv,
};

/// Expiry and lasting gains are looked at this often.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How long after the start a lost sequence number may be recovered.
pub(crate) const RECOVERY_PERIOD: Duration = Duration::from_secs(600);
/// A refusal is reported again after this.
pub(crate) const REFUSAL_PERIOD: Duration = Duration::from_secs(900);
/// Being woken this late is normal; beyond it, liveness deadlines move by the lateness.
const TOLERATED_LATENESS: Duration = Duration::from_millis(20);
/// A neighbour that is not heard for so long is forgotten.
const NEIGHBOUR_LIFETIME: Duration = Duration::from_secs(60);
/// Echoes of what we withdrew are expected for so long.
const WITHDRAWN_LIFETIME: Duration = Duration::from_secs(180);
/// Between wildcard requests to a new neighbour.
const REQUEST_SPACING: Duration = Duration::from_millis(500);

impl Router {
    /// When to call [`handle_timeout`](Self::handle_timeout) and then [`poll_transmit`](Self::poll_transmit), and
    /// why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.shutting_down {
            return None;
        }
        let mut next = (self.sweep_at, "expiry");
        let mut consider = |at: Option<Instant>, reason: &'static str| {
            if let Some(at) = at.filter(|at| *at < next.0) {
                next = (at, reason);
            }
        };
        for interface in self.interfaces.values() {
            consider(Some(interface.next_hello), "hello");
            consider(Some(interface.next_update), "periodic update");
            consider(interface.outbox.deadline(), "buffered TLVs");
        }
        for neighbour in self.neighbours.values() {
            consider(neighbour.outbox.deadline(), "buffered TLVs");
            consider(neighbour.next_fast_hello, "fast hello");
            consider(neighbour.next_request, "route request");
            consider(neighbour.probe.map(|probe| probe.at), "path MTU probe");
            consider(liveness_deadline(neighbour), "neighbour liveness");
            consider(neighbour.suspect_at().map(|(_, at)| at), "first sign of a failure");
        }
        consider(self.requests.deadline(), "seqno request");
        Some(next)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.make_up_for_lateness(now);
        let keys: Vec<_> = self.neighbours.keys().copied().collect();
        for key in keys {
            self.check_neighbour(key, now);
        }
        self.start_periodic_updates(now);
        for repeat in self.requests.take_due(now) {
            let source = (repeat.prefix, repeat.router_id);
            self.send_seqno_request(source, repeat.seqno, repeat.target, now);
        }
        if self.sweep_at <= now {
            self.sweep_at = now + SWEEP_INTERVAL;
            self.sweep(now);
        }
    }

    /// If we were woken late, packets may wait unread in our own queues: nobody dies of that.
    fn make_up_for_lateness(&mut self, now: Instant) {
        let liveness = self.neighbours.values().filter_map(liveness_deadline).min();
        let expected = liveness.map_or(self.sweep_at, |at| at.min(self.sweep_at));
        let lateness = now.saturating_duration_since(expected);
        if lateness <= TOLERATED_LATENESS {
            return;
        }
        self.neighbours.values_mut().for_each(|neighbour| neighbour.postpone(lateness));
        let routes = self.routes.values_mut().flat_map(|destination| destination.routes.values_mut());
        routes.for_each(|route| route.expires += lateness);
        self.sources.postpone(lateness);
    }

    fn check_neighbour(&mut self, key: NeighbourKey, now: Instant) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        neighbour.multicast.handle_timeout(now);
        neighbour.unicast.handle_timeout(now);
        let dead = neighbour.dead_at().is_some_and(|at| at <= now);
        let unheard = neighbour.ihu_expires.is_some_and(|at| at <= now);
        if neighbour.next_request.is_some_and(|at| at <= now) {
            let left = neighbour.requests_left.checked_sub(1);
            neighbour.requests_left = left.unwrap_or(0);
            neighbour.next_request = left.map(|_| now + REQUEST_SPACING);
            if left.is_some() {
                neighbour.outbox.push(Tlv::RouteRequest { prefix: None }, now);
            }
        }
        if let Some((since, _)) = neighbour.suspect_at().filter(|(_, at)| *at <= now) {
            neighbour.note_suspicion(since);
            self.prepare_for_loss(key, now);
        }
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        if unheard {
            neighbour.ihu_expires = None;
            neighbour.txcost = INFINITY;
            neighbour.wants_fast = None;
            self.price_link(key, NeighbourLoss::IhuMissing, now);
        }
        if dead {
            self.lose_neighbour(key, now);
        }
        self.check_probe(key, now);
    }

    fn start_periodic_updates(&mut self, now: Instant) {
        let due = self.interfaces.iter().filter(|(_, interface)| interface.next_update <= now);
        let due: Vec<_> = due.map(|(id, _)| *id).collect();
        for id in due {
            let jitter = self.jitter(Duration::from_millis(500));
            if let Some(interface) = self.interfaces.get_mut(&id) {
                let interval = interface.config.update_interval;
                interface.next_update = now + interval.saturating_sub(jitter.min(interval / 16));
            }
            self.dump_to_interface(id, now);
        }
    }

    /// Expires whatever is old.
    fn sweep(&mut self, now: Instant) {
        self.expire_routes(now);
        self.expire_neighbours(now);
        self.sources.expire(now);
        self.requests.expire(now);
        self.interfaces.values_mut().for_each(|interface| interface.counter.expire(now));
        self.withdrawn.retain(|_, at| now.saturating_duration_since(*at) < WITHDRAWN_LIFETIME);
        self.refused.retain(|_, at| now.saturating_duration_since(*at) < REFUSAL_PERIOD);
        self.routes
            .retain(|_, destination| !destination.routes.is_empty() || destination.installed.is_some());
    }

    //= RFC 8966 §3.5.4
    fn expire_routes(&mut self, now: Instant) {
        let mut changed = Vec::new();
        let mut refresh = Vec::new();
        for (prefix, destination) in &mut self.routes {
            let selected = destination.installed.map(|installed| installed.key);
            // Without a usable route, a newer sequence number is asked for until the answer comes.
            let mut judge_again = destination.challenger.is_some() || destination.installed.is_none();
            destination.routes.retain(|key, route| {
                let left = route.expires.saturating_duration_since(now);
                if left.is_zero() {
                    judge_again = true;
                    if route.advertised == INFINITY {
                        if let Some(neighbour) = self.neighbours.get_mut(key) {
                            neighbour.routes = neighbour.routes.saturating_sub(1);
                        }
                        return false;
                    }
                    route.advertised = INFINITY;
                    route.expires = now + route.hold;
                } else if left < route.hold / 4 && !route.refresh_asked && selected == Some(*key) {
                    route.refresh_asked = true;
                    refresh.push((*key, *prefix));
                }
                true
            });
            if judge_again {
                changed.push(*prefix);
            }
        }
        changed.into_iter().for_each(|prefix| self.reselect(prefix, now));
        //= RFC 8966 §3.8.2.3
        for (key, prefix) in refresh {
            if let Some(neighbour) = self.neighbours.get_mut(&key) {
                neighbour.outbox.push(Tlv::RouteRequest { prefix: Some(prefix) }, now);
            }
        }
    }

    fn expire_neighbours(&mut self, now: Instant) {
        let old = |neighbour: &Neighbour| {
            !neighbour.heard && now.saturating_duration_since(neighbour.last_traffic) >= NEIGHBOUR_LIFETIME
        };
        let gone: Vec<_> = self.neighbours.iter().filter(|(_, n)| old(n)).map(|(key, _)| *key).collect();
        for key in gone {
            self.forget_neighbour(key, NeighbourLoss::HellosMissing, now);
        }
    }
}

fn liveness_deadline(neighbour: &Neighbour) -> Option<Instant> {
    let deadlines = [
        neighbour.multicast.deadline(),
        neighbour.unicast.deadline(),
        neighbour.dead_at(),
        neighbour.ihu_expires,
    ];
    deadlines.into_iter().flatten().min()
}
