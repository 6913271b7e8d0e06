//! Other settings for a running node: only what differs is touched.

use super::link::{Link, LinkKey, RemoteAddress};
use super::link_table::{LinkPlan, PlannedLink};
use super::sockets::{SocketChange, SocketSpec};
use super::{Node, NodeEvent, policy_paths, publish, routing, security};
use crate::config::diff::Changes;
use crate::config::settings::Settings;
use crate::forwarding::{LinkId, SocketIndex};
use crate::policy::{ClassTable, SteeringTable};
use babel::InterfaceId;
use ikev2::ConnectionId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the number of a link that is gone is not given to another: its last messages may be under way.
const NUMBER_REST: Duration = Duration::from_secs(60);

/// A change of settings that a node can make. Nothing has happened yet.
#[derive(Debug)]
pub struct Reconfiguration {
    settings: Settings,
    changes: Changes,
    sockets: SocketChange,
    classes: ClassTable,
}

impl Reconfiguration {
    /// What differs.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The settings after the change.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The classes after the change: those that the node did not have must have a TUN before [`Node::reconfigure`].
    pub fn classes(&self) -> &ClassTable {
        &self.classes
    }

    /// Sockets that must be open before [`Node::reconfigure`].
    pub fn opens(&self) -> &[(SocketIndex, SocketSpec)] {
        &self.sockets.opened
    }
}

impl Node {
    /// What has to be done to run on `wanted`. What only a restart can change stays as it is, and is named in
    /// [`Changes::needs_restart`].
    ///
    /// # Errors
    /// In words, if the node cannot get there without a restart.
    pub fn plan(&self, wanted: Settings) -> Result<Reconfiguration, String> {
        let old = &self.settings;
        if wanted.name != old.name {
            return Err(format!("this node runs as {}: another name needs a restart", old.name));
        }
        if wanted.mesh_prefix != old.mesh_prefix {
            return Err("another `mesh_prefix` needs a restart".to_owned());
        }
        let changes = Changes::between(old, &wanted);
        let settings = Settings {
            private_key: old.private_key.clone(),
            kernel: old.kernel.clone(),
            workers: old.workers,
            state_dir: old.state_dir.clone(),
            control_socket: old.control_socket.clone(),
            metrics: old.metrics.clone(),
            page: old.page.clone(),
            hmac_keys: old.hmac_keys.clone(),
            ike: old.ike.clone(),
            require_hmac_from: old.require_hmac_from.clone(),
            ..wanted
        };
        let sockets =
            self.sockets.updated(&settings).map_err(|reason| format!("{reason}: this needs a restart"))?;
        let classes = classes(&settings, &self.classes);
        Ok(Reconfiguration { settings, changes, sockets, classes })
    }

    /// Run on other settings from now on. Returns the sockets to close: [`Self::release_socket`] says when.
    pub fn reconfigure(&mut self, plan: Reconfiguration, now: Instant) -> Vec<SocketIndex> {
        let Reconfiguration { settings, changes, sockets, classes } = plan;
        self.classes = classes;
        self.sockets = sockets.plan;
        self.settings = settings;
        if changes.is_empty() {
            return sockets.closed;
        }
        self.change_timers(&changes, now);
        self.change_links(now);
        self.announcements.stale = true;
        self.refresh_announcements(now);
        self.change_policies();
        self.forwarding_changed = true;
        self.kernel_changed = true;
        self.pump(now);
        sockets.closed
    }

    /// A socket that [`Self::reconfigure`] named was left open for farewells: may it be closed now?
    pub fn release_socket(&mut self, index: SocketIndex) -> bool {
        self.sockets.release(index)
    }

    fn change_timers(&mut self, changes: &Changes, now: Instant) {
        if changes.timers {
            let mut timers = *self.ike.timers();
            security::set_timers(&mut timers, &self.settings.timers);
            self.ike.set_timers(timers);
            let up: Vec<LinkId> =
                self.links.values().filter(|link| link.is_up()).map(|link| link.id).collect();
            for id in up {
                self.add_babel_interface(id, now);
            }
        }
        if changes.cost {
            self.babel.set_cost(routing::cost_map(&self.settings.cost), now);
        }
    }

    fn change_links(&mut self, now: Instant) {
        let present: BTreeMap<LinkKey, LinkId> =
            self.links.values().map(|link| (link.key.clone(), link.id)).collect();
        self.resting.retain(|(_, since)| now.saturating_duration_since(*since) < NUMBER_REST);
        let mut taken: Vec<LinkId> = self.links.keys().copied().collect();
        taken.extend(self.resting.iter().map(|(id, _)| *id));
        let plan =
            LinkPlan::new(&self.settings, &self.sockets, &self.shared_keys, |key| match present.get(key) {
                Some(id) => *id,
                None => {
                    let free = (0..).map(LinkId).find(|id| !taken.contains(id)).unwrap_or(LinkId(u32::MAX));
                    taken.push(free);
                    free
                }
            });
        for text in plan.refused {
            self.events.push_back(NodeEvent::Trouble { text });
        }
        let stays = |id: &LinkId| plan.links.iter().any(|planned| planned.link.id == *id);
        let gone: Vec<LinkId> = self.links.keys().filter(|id| !stays(id)).copied().collect();
        for id in gone {
            self.remove_link(id, now);
            self.resting.push((id, now));
        }
        for planned in plan.links {
            if self.links.contains_key(&planned.link.id) {
                self.update_link(planned, now);
            } else {
                self.add_link(planned, now);
            }
        }
    }

    /// Begin with a link.
    pub(super) fn add_link(&mut self, planned: PlannedLink, now: Instant) {
        let id = planned.link.id;
        if let RemoteAddress::Name(name, port) = &planned.link.address {
            self.resolve.push_back((id, name.clone(), *port));
        }
        self.links.insert(id, planned.link);
        self.ike.set_connection(ConnectionId(id.0), planned.connection, now);
        self.seek_introduction(id, now);
    }

    /// Delete a link's SAs at the peer and forget it.
    fn remove_link(&mut self, id: LinkId, now: Instant) {
        self.ike.remove_connection(ConnectionId(id.0), now);
        self.drain_ike(now);
        self.babel.remove_interface(InterfaceId(id.0), now);
        self.links.remove(&id);
        self.introductions.forget(id);
    }

    fn update_link(&mut self, mut planned: PlannedLink, now: Instant) {
        let id = planned.link.id;
        let Some(link) = self.links.get_mut(&id) else { return };
        let new = &planned.link;
        let same_ends = (&link.trust.local_id, &link.trust.remote_id, link.socket, link.local_port)
            == (&new.trust.local_id, &new.trust.remote_id, new.socket, new.local_port);
        let moved = link.address != new.address;
        if !same_ends || (moved && runs_over_old_address(link)) {
            // The number may be used at once: what the old link's SAs still say is drained in `remove_link`, and
            // their numbers do not come again.
            self.remove_link(id, now);
            return self.add_link(planned, now);
        }
        link.peer.clone_from(&new.peer);
        link.accept.clone_from(&new.accept);
        if link.trust == new.trust && !moved {
            return;
        }
        link.trust.clone_from(&new.trust);
        link.address.clone_from(&new.address);
        if let RemoteAddress::Name(name, port) = &link.address {
            // Until the name is resolved, the address that is known is better than none.
            planned.connection.remote_address = link.path.map(|path| path.remote);
            self.resolve.push_back((id, name.clone(), *port));
        }
        self.ike.set_connection(ConnectionId(id.0), planned.connection, now);
    }

    /// Counters go with the name of a policy, and so does what is known of its path.
    fn change_policies(&mut self) {
        self.probes.forget_paths();
        let mut old: Vec<_> = std::mem::take(&mut self.policies);
        self.policies = policy_paths::compile(&self.settings);
        for policy in &mut self.policies {
            if let Some(index) = old.iter().position(|before| before.name == policy.name) {
                policy.take_over(old.swap_remove(index));
            }
        }
        self.steering = SteeringTable::compile(&publish::rules(&self.settings, &self.classes));
    }
}

/// The classes that policies ask for; those that are known keep their numbers.
pub(super) fn classes(settings: &Settings, known: &ClassTable) -> ClassTable {
    known.updated(settings.policies.iter().map(|policy| &policy.membership))
}

/// Whether a link's traffic goes to the address that was configured before, not to one that the peer came from.
fn runs_over_old_address(link: &Link) -> bool {
    match (&link.address, link.path) {
        (RemoteAddress::Fixed(address), Some(path)) => path.remote == *address,
        _ => false,
    }
}
