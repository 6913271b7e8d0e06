//! Updates arrive: routes are acquired (RFC 8966 §3.5.3).

use std::{collections::btree_map::Entry, time::Instant};

use crate::{
    Event, INFINITY, ImportRefusal, Prefix, Router, RouterId,
    feasibility::{Distance, is_feasible},
    neighbour::NeighbourKey,
    request_table::Target,
    route_table::Route,
    router::from_centiseconds,
    timers::{RECOVERY_PERIOD, REFUSAL_PERIOD},
    wire::update::{Announcement, Update},
};

/// Refusals remembered, so that each is reported once.
const REFUSALS: usize = 512;

/// What became of an announcement.
enum Stored {
    /// There is no room.
    Refused,
    /// It was known: it lives on.
    Unchanged,
    /// It is new, or different.
    Changed,
}

impl Router {
    pub(crate) fn handle_update(&mut self, key: NeighbourKey, update: &Update, now: Instant) {
        match update {
            Update::Announce(announcement) => self.handle_announcement(key, announcement, now),
            Update::Retract { prefix } => self.retract(*prefix, key, now),
            //= RFC 8966 §4.6.9
            Update::RetractAll => self.retract_all(key, now),
        }
    }

    /// The neighbour has no route to anything.
    pub(crate) fn retract_all(&mut self, key: NeighbourKey, now: Instant) {
        for prefix in self.prefixes_of(key) {
            self.retract(prefix, key, now);
        }
    }

    fn handle_announcement(&mut self, key: NeighbourKey, announcement: &Announcement, now: Instant) {
        let Announcement { prefix, router_id, .. } = *announcement;
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.requests_left = 0;
        }
        if router_id == self.config.router_id {
            self.handle_echo(key, announcement, now);
            return self.retract(prefix, key, now);
        }
        if let Err(reason) = self.policy.judge(&prefix, router_id) {
            self.refuse(key, announcement, reason, now);
            return self.retract(prefix, key, now);
        }
        let announced = Distance { seqno: announcement.seqno, metric: announcement.metric };
        let distance = self.sources.distance(&prefix, router_id);
        //= RFC 8966 §3.5.3
        // An unfeasible update of the selected route of the same originator may be ignored: the route stays as
        // it was, and feasible, until the newer seqno that we ask for arrives or it expires.
        if let Some(distance) = distance.filter(|distance| !is_feasible(announced, Some(*distance)))
            && self.is_selected(key, &prefix, router_id)
        {
            let seqno = distance.seqno.plus(1);
            return self.ask_for_seqno((prefix, router_id), seqno, Target::Neighbour(key), now);
        }
        match self.store(key, announcement, now) {
            Stored::Refused => return,
            // Most updates are periodic ones: they say what is known and cost next to nothing.
            Stored::Unchanged => {}
            Stored::Changed => self.reselect(prefix, now),
        }
        self.answer_requesters(announcement, now);
    }

    fn is_selected(&self, key: NeighbourKey, prefix: &Prefix, router_id: RouterId) -> bool {
        let installed = self.routes.get(prefix).and_then(|destination| destination.installed);
        installed.is_some_and(|installed| installed.key == key && installed.router_id == router_id)
    }

    /// Enters an announcement into the table.
    fn store(&mut self, key: NeighbourKey, new: &Announcement, now: Instant) -> Stored {
        let hold = from_centiseconds(new.interval) * 7 / 2;
        let route = Route {
            router_id: new.router_id,
            seqno: new.seqno,
            advertised: new.metric,
            next_hop: new.next_hop,
            expires: now + hold,
            hold,
            refresh_asked: false,
        };
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return Stored::Refused };
        let full = self.routes.len() >= self.config.limits.destinations;
        if full && !self.routes.contains_key(&new.prefix) {
            self.limit_reached("destinations", now);
            return Stored::Refused;
        }
        let destination = self.routes.entry(new.prefix).or_default();
        match destination.routes.entry(key) {
            Entry::Vacant(entry) if neighbour.routes < self.config.limits.routes_per_neighbour => {
                neighbour.routes += 1;
                entry.insert(route);
            }
            Entry::Vacant(_) => {
                if destination.routes.is_empty() {
                    self.routes.remove(&new.prefix);
                }
                self.limit_reached("routes of a neighbour", now);
                return Stored::Refused;
            }
            Entry::Occupied(mut entry) => {
                if std::mem::replace(entry.get_mut(), route).says_the_same_as(&route) {
                    return Stored::Unchanged;
                }
            }
        }
        Stored::Changed
    }

    /// Passes the answer to a forwarded request on at once.
    fn answer_requesters(&mut self, new: &Announcement, now: Instant) {
        let Some(requesters) = self.requests.satisfy((new.prefix, new.router_id), new.seqno) else { return };
        for requester in requesters {
            self.update_neighbour(requester, new.prefix, now);
        }
    }

    /// A neighbour announces something as ours.
    fn handle_echo(&mut self, key: NeighbourKey, echo: &Announcement, now: Instant) {
        let young = now.saturating_duration_since(self.started) < RECOVERY_PERIOD;
        if self.own.contains_key(&echo.prefix) {
            if self.config.seqno.is_none() && young && echo.seqno.is_newer_than(self.seqno) {
                // It heard it in our previous life, whose sequence number we lost.
                return self.set_seqno(echo.seqno.plus(1), now);
            }
            if !echo.seqno.is_newer_than(self.seqno) {
                return;
            }
        }
        let leftover = young || self.withdrawn.contains_key(&echo.prefix);
        if !leftover && self.report_once((echo.prefix, None), now) {
            self.events.push_back(Event::DuplicateRouterId {
                prefix: echo.prefix,
                neighbour: key.address,
                interface: key.interface,
            });
        }
    }

    fn refuse(&mut self, key: NeighbourKey, refused: &Announcement, reason: ImportRefusal, now: Instant) {
        if self.report_once((refused.prefix, Some(reason)), now) {
            self.events.push_back(Event::Rejected {
                prefix: refused.prefix,
                router_id: refused.router_id,
                interface: key.interface,
                neighbour: key.address,
                reason,
            });
        }
    }

    fn report_once(&mut self, what: (Prefix, Option<ImportRefusal>), now: Instant) -> bool {
        let reported = self.refused.get(&what).copied();
        let full = self.refused.len() >= REFUSALS && reported.is_none();
        if full || reported.is_some_and(|at| now.saturating_duration_since(at) < REFUSAL_PERIOD) {
            return false;
        }
        self.refused.insert(what, now);
        true
    }

    /// The neighbour has no route any more.
    fn retract(&mut self, prefix: Prefix, key: NeighbourKey, now: Instant) {
        let Some(destination) = self.routes.get_mut(&prefix) else { return };
        let Some(route) = destination.routes.get_mut(&key) else { return };
        if route.advertised == INFINITY {
            return;
        }
        route.advertised = INFINITY;
        route.expires = now + route.hold;
        self.reselect(prefix, now);
    }

    /// Removes all routes of a neighbour that is gone.
    pub(crate) fn drop_routes_of(&mut self, key: NeighbourKey, now: Instant) {
        for prefix in self.prefixes_of(key) {
            if let Some(destination) = self.routes.get_mut(&prefix) {
                destination.routes.remove(&key);
            }
            self.reselect(prefix, now);
        }
    }

    /// Prefixes to which the neighbour has a route in the table.
    pub(crate) fn prefixes_of(&self, key: NeighbourKey) -> Vec<Prefix> {
        let has_route = self.routes.iter().filter(|(_, destination)| destination.routes.contains_key(&key));
        has_route.map(|(prefix, _)| *prefix).collect()
    }
}
