//! What is announced when (RFC 8966 §3.7).

use std::time::{Duration, Instant};

use crate::{InterfaceId, Prefix, Router, neighbour::NeighbourKey};

/// Urgent updates wait up to this for others.
const URGENT_DELAY: Duration = Duration::from_millis(4);
/// Other triggered updates wait up to this…
const TRIGGERED_DELAY: Duration = Duration::from_millis(40);
/// …and at least this after the previous packet of updates.
const TRIGGERED_SPACING: Duration = Duration::from_millis(100);

impl Router {
    //= RFC 8966 §3.7.2
    /// Schedules an update of one prefix on all interfaces.
    pub(crate) fn trigger(&mut self, prefix: Prefix, urgent: bool, now: Instant) {
        let delay = self.jitter(if urgent { URGENT_DELAY } else { TRIGGERED_DELAY });
        let via = self.learned_on(&prefix);
        for (id, interface) in &mut self.interfaces {
            //= RFC 8966 §3.7.4
            // Split horizon; but who may still believe in an earlier announcement is told that it is over.
            let silent = interface.config.split_horizon && via == Some(*id);
            if silent && !interface.is_announced(&prefix) {
                continue;
            }
            let earliest = interface.last_update.filter(|_| !urgent).map(|last| last + TRIGGERED_SPACING);
            let at = earliest.map_or(now + delay, |earliest| earliest.max(now + delay));
            interface.outbox.update(prefix, urgent, at);
        }
    }

    /// Schedules an update of one prefix to one neighbour, now.
    pub(crate) fn update_neighbour(&mut self, key: NeighbourKey, prefix: Prefix, now: Instant) {
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.outbox.update(prefix, false, now);
        }
    }

    /// Schedules updates of everything to one neighbour.
    pub(crate) fn dump_to_neighbour(&mut self, key: NeighbourKey, now: Instant) {
        let prefixes = self.announceable(key.interface);
        if let Some(neighbour) = self.neighbours.get_mut(&key) {
            neighbour.outbox.update_all(prefixes.into_iter(), now);
        }
    }

    //= RFC 8966 §3.7.1
    /// Schedules updates of everything on an interface.
    pub(crate) fn dump_to_interface(&mut self, id: InterfaceId, now: Instant) {
        let prefixes = self.announceable(id);
        if let Some(interface) = self.interfaces.get_mut(&id) {
            let retractions = interface.take_retractions();
            interface.outbox.update_all(prefixes.into_iter().chain(retractions), now);
        }
    }

    fn announceable(&self, id: InterfaceId) -> Vec<Prefix> {
        let split_horizon = self.interfaces.get(&id).is_some_and(|interface| interface.config.split_horizon);
        let learned = self.routes.iter().filter(|(_, destination)| {
            destination.installed.is_some_and(|installed| !split_horizon || installed.key.interface != id)
        });
        self.own.keys().chain(learned.map(|(prefix, _)| prefix)).copied().collect()
    }

    /// The interface that the selected route leaves by.
    pub(crate) fn learned_on(&self, prefix: &Prefix) -> Option<InterfaceId> {
        self.routes.get(prefix)?.installed.map(|installed| installed.key.interface)
    }
}
