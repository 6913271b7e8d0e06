//! What an IKE SA does as time passes: retransmit, rekey, check liveness, switch, give up.

use std::time::{Duration, Instant};

use crate::child_sa::{Child, ChildPhase};
use crate::event::{ChildDownReason, IkeDownReason};
use crate::exchange::ike_followup_ke;
use crate::ike_sa::{IkeSa, Phase, Want};
use crate::inbound;
use crate::shared::Shared;

impl IkeSa {
    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, shared: &mut Shared, now: Instant) {
        inbound::retransmit(self, shared, now);
        if self.hold_until.is_some_and(|until| until <= now) {
            self.hold_until = None;
        }
        match self.phase {
            Phase::Replaced { until, .. } if until <= now => self.close(shared, IkeDownReason::Rekeyed, now),
            Phase::Established => {
                if self.following.as_ref().is_some_and(|following| following.until <= now) {
                    ike_followup_ke::expire(self, shared, now);
                }
                self.check_children(shared, now);
                if self.expire_at.is_some_and(|at| at <= now) {
                    self.expire(shared, now);
                }
                if self.rekey_at.is_some_and(|at| at <= now) {
                    self.rekey_at = None;
                    self.want(Want::RekeyIke, None);
                }
                if self.window.is_free() && self.last_inbound + shared.config.timers.liveness <= now {
                    self.want(Want::Liveness, None);
                }
            }
            _ => {}
        }
    }

    fn check_children(&mut self, shared: &mut Shared, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let spis: Vec<u32> = self.children.iter().map(|child| child.spi_in).collect();
        for spi_in in spis {
            let Some(child) = self.child_by_inbound(spi_in) else { continue };
            let (rekey, sure, delete) = (due(child.rekey_at), due(child.sure_at), due(child.delete_at));
            let expired = child.expire_at <= now && child.phase != ChildPhase::Deleting;
            if rekey && child.is_surely_known() {
                child.rekey_at = None;
                self.want(Want::RekeyChild { spi_in }, None);
            }
            if sure {
                self.confirm_child(shared, spi_in);
            }
            if delete {
                self.delete_child(shared, spi_in, ChildDownReason::Rekeyed);
            } else if expired {
                self.delete_child(shared, spi_in, ChildDownReason::Expired);
            }
        }
    }

    /// No rekey succeeded in time: nothing is sent with these keys any more but the DELETE.
    fn expire(&mut self, shared: &mut Shared, now: Instant) {
        self.expire_at = None;
        self.close_children(shared, IkeDownReason::Expired, now);
        self.force_delete(shared, IkeDownReason::Expired, now);
    }

    /// The next moment at which something is due, and what.
    pub(crate) fn deadline(
        &self,
        liveness: Duration,
        half_open: Duration,
    ) -> Option<(Instant, &'static str)> {
        let mut deadlines: Vec<(Instant, &'static str)> = Vec::with_capacity(8);
        match self.phase {
            Phase::HalfOpen(_) => deadlines.push((self.began + half_open, "half-open expiry")),
            Phase::Closed { until } => return Some((until, "closed SA expiry")),
            Phase::Replaced { until, .. } => deadlines.push((until, "replaced SA expiry")),
            Phase::Established => {
                deadlines.extend(self.rekey_at.map(|at| (at, "IKE rekey")));
                deadlines.extend(self.expire_at.map(|at| (at, "IKE expiry")));
                deadlines
                    .extend(self.following.as_ref().map(|following| (following.until, "follow-up expiry")));
                if self.window.is_free() && !self.is_held() {
                    deadlines.push((self.last_inbound + liveness, "liveness"));
                }
                deadlines.extend(self.children.iter().filter_map(Child::deadline));
            }
            Phase::Initiating | Phase::Closing => {}
        }
        deadlines.extend(self.window.due().map(|at| (at, "retransmission")));
        deadlines.extend(self.hold_until.map(|at| (at, "switch to rekeyed SA")));
        if self.window.is_free() && !self.is_held() {
            let waiting = self.tasks.iter().filter_map(|task| task.not_before);
            deadlines.extend(waiting.map(|at| (at, "retry")));
        }
        deadlines.into_iter().min()
    }
}
