//! Several IKE SAs for one link: after a restart, or because both ends dialled at once (RFC 7296 §2.4).
//!
//! Between nodes of our kind exactly one survives, and only one of the two decides which: the one with the
//! lower identity. It keeps the SA that was established last, and deletes the others once that one is known
//! to work at both ends. The other node tolerates all of them, so the two can never cross their decisions.
//! With foreign peers every SA is accepted, the newest carries our traffic, and only the peer deletes.

use std::time::Instant;

use crate::child_sa::Child;
use crate::config::ConnectionId;
use crate::connection::Dial;
use crate::endpoint::Endpoint;
use crate::event::{ChildDownReason, Event, IkeDownReason, IkeSpis};
use crate::exchange::Pending;
use crate::ike_sa::{Phase, Want};
use crate::shared::Shared;

impl Endpoint {
    /// An IKE SA was authenticated.
    pub(crate) fn established(&mut self, spi: u64, id: ConnectionId, initial_contact: bool, now: Instant) {
        self.drop_early_attempt(spi, id);
        let Some(entry) = self.shared.connections.get_mut(&id) else { return };
        let others = entry.established.clone();
        entry.established.push(spi);
        entry.tries = 0;
        let decides = entry.config.local_id < entry.config.remote_id;
        let limit = self.shared.config.limits.ike_sas_per_connection;
        let Some(sa) = self.sas.get_mut(&spi) else { return };
        let (ours, began, as_initiator) = (sa.peer.ours, sa.began, sa.initiator);
        if ours && decides && !others.is_empty() {
            sa.supersedes.clone_from(&others);
            if as_initiator {
                // The response proved that the peer has it.
                sa.confirm(&mut self.shared);
            } else {
                sa.want(Want::Liveness, None);
            }
        }
        self.touch(spi);
        if initial_contact {
            others.iter().for_each(|other| self.contacted_anew(*other, ours, began, now));
        }
        if others.len() >= limit.max(1) {
            self.close_redundant(others[0]);
        }
    }

    /// The peer reached us: an attempt of ours that did not come to IKE_AUTH yet is superfluous. One that
    /// did may be established at the peer already and goes on.
    fn drop_early_attempt(&mut self, spi: u64, id: ConnectionId) {
        let Some(entry) = self.shared.connections.get_mut(&id) else { return };
        match entry.dial {
            Dial::Attempt(attempt) if attempt != spi => {
                let early =
                    self.sas.get(&attempt).is_none_or(|sa| matches!(sa.pending, Some(Pending::IkeSaInit(_))));
                if early {
                    entry.dial = Dial::Idle;
                    self.drop_silently(attempt);
                }
            }
            Dial::Attempt(_) | Dial::Waiting(_) | Dial::Idle => entry.dial = Dial::Idle,
        }
    }

    /// The peer says that it knows no other SA than the new one, whose handshake `began` then.
    fn contacted_anew(&mut self, other: u64, ours: bool, began: Instant, now: Instant) {
        let Some(sa) = self.sas.get_mut(&other) else { return };
        let concurrent = sa.established.is_some_and(|established| established >= began);
        if ours || concurrent {
            // The statement may have crossed our own handshake: ask before anything is lost.
            sa.want(Want::Liveness, None);
        } else {
            sa.close(&mut self.shared, IkeDownReason::PeerRestarted, now);
        }
        self.touch(other);
    }

    /// Another SA serves in place of this one: stop sending on it and delete it.
    pub(crate) fn close_redundant(&mut self, spi: u64) {
        let Some(sa) = self.sas.get_mut(&spi).filter(|sa| matches!(sa.phase, Phase::Established)) else {
            return;
        };
        let spis: Vec<u32> = sa.children.iter().map(|child| child.spi_in).collect();
        if let Some(id) = sa.connection {
            if let Some(entry) = self.shared.connections.get_mut(&id) {
                spis.iter().for_each(|spi_in| entry.outbound.exclude(*spi_in));
            }
            self.shared.choose_outbound(id);
        }
        sa.tasks.clear();
        sa.want(Want::DeleteIke(IkeDownReason::Redundant), None);
        self.touch(spi);
    }

    /// An IKE SA that was to take over ended before: what it would have had goes with it.
    pub(crate) fn bury(
        &mut self,
        id: ConnectionId,
        (spi, spis): (u64, IkeSpis),
        children: Vec<Child>,
        now: Instant,
    ) {
        let reason = IkeDownReason::PeerSilent;
        for child in children {
            self.shared.retire_child(id, &child, ChildDownReason::IkeSaDown, now);
        }
        self.shared.events.push_back(Event::IkeDown { connection: id, spis, reason });
        self.gone(id, spi, reason, now);
    }

    /// An IKE SA ended: dial again if it was the last.
    pub(crate) fn gone(&mut self, id: ConnectionId, spi: u64, _reason: IkeDownReason, now: Instant) {
        let Shared { connections, config, rng, .. } = &mut self.shared;
        let Some(entry) = connections.get_mut(&id) else { return };
        entry.established.retain(|established| *established != spi);
        if entry.established.is_empty() && entry.dial == Dial::Idle {
            entry.schedule_dial(&config.timers, rng, now);
        }
    }
}
