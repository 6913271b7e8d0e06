//! Which route is used for a prefix, and what a change of it sets in motion (RFC 8966 §3.6, §3.7.2, §3.8.2.1).

use std::time::Instant;

use crate::{
    Event, INFINITY, Prefix, Router,
    feasibility::is_feasible,
    neighbour::NeighbourKey,
    request_table::Target,
    route_table::{Destination, Installed, Route, Told},
    selection::{Candidate, Choice, choose},
};

/// Prefixes for which other ways are prepared when a neighbour falls silent.
const PREPARED: usize = 256;

impl Router {
    /// Judges all routes for a prefix again.
    pub(crate) fn reselect(&mut self, prefix: Prefix, now: Instant) {
        let Some(destination) = self.routes.get(&prefix) else { return };
        let before = destination.installed;
        let candidates = self.candidates(&prefix, destination);
        let choice = if self.own.contains_key(&prefix) {
            Choice { selected: None, challenger: None, judge_again: None }
        } else {
            let current = before.map(|installed| installed.key);
            choose(current, destination.challenger, &candidates, &self.config.hysteresis, now)
        };
        let after = choice.selected.and_then(|key| {
            let route = destination.routes.get(&key)?;
            Some(Installed { key, next_hop: route.next_hop, router_id: route.router_id })
        });
        let told = destination.told;
        if let Some(destination) = self.routes.get_mut(&prefix) {
            destination.challenger = choice.challenger;
            destination.installed = after;
        }
        if let Some(at) = choice.judge_again {
            self.sweep_at = self.sweep_at.min(at);
        }
        if before != after {
            self.count_selected(before, after, now);
            self.report_change(prefix, before, after);
        }
        self.trigger_if_needed(prefix, before, after, told, now);
        if before.is_none() && after.is_some() {
            self.requests.stop_asking(&prefix);
        }
        self.ask_for_unfeasible(prefix, &candidates, now);
    }

    /// Judges all routes of a neighbour again: the cost of the link changed.
    pub(crate) fn reselect_neighbour(&mut self, key: NeighbourKey, now: Instant) {
        for prefix in self.prefixes_of(key) {
            self.reselect(prefix, now);
        }
    }

    fn candidates(&self, prefix: &Prefix, destination: &Destination) -> Vec<Candidate<NeighbourKey>> {
        let candidate = |(key, route): (&NeighbourKey, &Route)| Candidate {
            key: *key,
            metric: route.metric(self.neighbours.get(key).map_or(INFINITY, |neighbour| neighbour.cost)),
            feasible: is_feasible(route.distance(), self.sources.distance(prefix, route.router_id)),
        };
        destination.routes.iter().map(candidate).collect()
    }

    /// The selected neighbour and the total metric.
    pub(crate) fn selected_metric(&self, prefix: &Prefix) -> Option<(NeighbourKey, u16)> {
        let (key, route) = self.routes.get(prefix)?.selected()?;
        let cost = self.neighbours.get(&key).map_or(INFINITY, |neighbour| neighbour.cost);
        Some((key, route.metric(cost)))
    }

    fn count_selected(&mut self, before: Option<Installed>, after: Option<Installed>, now: Instant) {
        for (installed, add) in [(before, false), (after, true)] {
            let Some(key) = installed.map(|installed| installed.key) else { continue };
            let Some(neighbour) = self.neighbours.get_mut(&key) else { continue };
            neighbour.selected =
                if add { neighbour.selected + 1 } else { neighbour.selected.saturating_sub(1) };
            let fast = self.interfaces.get(&key.interface).is_some_and(|i| i.config.fast_hello.is_some());
            if fast {
                let wanted = neighbour.want_fast(now);
                neighbour.update_fast(wanted, now);
            }
        }
    }

    fn report_change(&mut self, prefix: Prefix, before: Option<Installed>, after: Option<Installed>) {
        let Some(Installed { key, next_hop, router_id }) = after else {
            self.events.push_back(Event::RouteLost { prefix });
            return;
        };
        let seqno = self.routes.get(&prefix).and_then(|d| d.routes.get(&key)).map(|route| route.seqno);
        self.events.push_back(Event::RouteSelected {
            prefix,
            interface: key.interface,
            neighbour: key.address,
            next_hop,
            metric: self.selected_metric(&prefix).map_or(INFINITY, |(_, metric)| metric),
            router_id,
            seqno: seqno.unwrap_or_default(),
            rtt: self.neighbours.get(&key).and_then(|neighbour| neighbour.rtt.rtt()),
            replaces: before.is_some(),
        });
    }

    //= RFC 8966 §3.7.2
    fn trigger_if_needed(
        &mut self,
        prefix: Prefix,
        before: Option<Installed>,
        after: Option<Installed>,
        told: Option<Told>,
        now: Instant,
    ) {
        let Some(after) = after else {
            if before.is_some() && !self.own.contains_key(&prefix) {
                self.trigger(prefix, true, now);
            }
            return;
        };
        let metric = self.selected_metric(&prefix).map_or(INFINITY, |(_, metric)| metric);
        let Some(told) = told else {
            return self.trigger(prefix, false, now);
        };
        if told.router_id != after.router_id {
            self.trigger(prefix, true, now);
        } else if told.metric.abs_diff(metric) >= (told.metric / 8).max(32) || before.is_none() {
            self.trigger(prefix, false, now);
        }
    }

    /// A neighbour is silent and may be lost soon. Where only unfeasible routes would be left, a newer sequence number
    /// is asked for now: it makes one of them usable, and traffic moves at the moment of the loss.
    pub(crate) fn prepare_for_loss(&mut self, key: NeighbourKey, now: Instant) {
        let at_stake = self
            .routes
            .iter()
            .filter(|(_, destination)| destination.installed.is_some_and(|installed| installed.key == key));
        let at_stake: Vec<Prefix> = at_stake.map(|(prefix, _)| *prefix).take(PREPARED).collect();
        for prefix in at_stake {
            let Some(destination) = self.routes.get(&prefix) else { continue };
            let mut others = self.candidates(&prefix, destination);
            others.retain(|candidate| candidate.key != key && candidate.metric < INFINITY);
            if others.iter().any(|candidate| candidate.feasible) {
                continue;
            }
            let Some(best) = others.iter().min_by_key(|candidate| (candidate.metric, candidate.key)) else {
                continue;
            };
            let Some(router_id) = destination.routes.get(&best.key).map(|route| route.router_id) else {
                continue;
            };
            let Some(distance) = self.sources.distance(&prefix, router_id) else { continue };
            let seqno = distance.seqno.plus(1);
            self.ask_for_seqno((prefix, router_id), seqno, Target::Neighbour(best.key), now);
        }
    }

    //= RFC 8966 §3.8.2.1 and §3.8.2.2
    /// If an unfeasible route is better than the selected one, or the only one, a newer sequence number would make
    /// it usable: ask for one.
    fn ask_for_unfeasible(&mut self, prefix: Prefix, candidates: &[Candidate<NeighbourKey>], now: Instant) {
        let unfeasible = candidates.iter().filter(|candidate| !candidate.feasible);
        let Some(best) = unfeasible.min_by_key(|candidate| (candidate.metric, candidate.key)) else { return };
        if best.metric == INFINITY || self.own.contains_key(&prefix) {
            return;
        }
        let target = match self.selected_metric(&prefix) {
            None => Target::Everyone,
            Some((_, metric)) => {
                let gain = metric.saturating_sub(best.metric);
                if gain < self.config.hysteresis.clear_gain(metric) {
                    return;
                }
                Target::Neighbour(best.key)
            }
        };
        let route = self.routes.get(&prefix).and_then(|destination| destination.routes.get(&best.key));
        let Some(router_id) = route.map(|route| route.router_id) else { return };
        let Some(distance) = self.sources.distance(&prefix, router_id) else { return };
        self.ask_for_seqno((prefix, router_id), distance.seqno.plus(1), target, now);
    }
}
