//! Rekeying a CHILD SA, and both sides doing so at once (RFC 7296 §1.3.3, §2.8.1, §2.25.1).

use std::time::{Duration, Instant};

use crate::child_sa::ChildPhase;
use crate::collision::{Outcome, compare};
use crate::error::Violation;
use crate::event::ChildDownReason;
use crate::exchange::child_negotiation::{self, Accepted, Created, Creation};
use crate::exchange::{Contents, Pending, Refusal};
use crate::ike_sa::{IkeSa, Want};
use crate::key_exchange::Method;
use crate::shared::Shared;
use crate::wire::registry::{notify, protocol};
use crate::wire::{ExchangeType, Notify, Payload};

/// How long we wait for the peer to delete a CHILD SA that it replaced.
const DELETE_GRACE: Duration = Duration::from_secs(30);

/// What the initiator keeps until the response.
pub(crate) struct Rekey {
    /// Inbound SPI of the CHILD SA that is replaced.
    old: u32,
    creation: Creation,
    /// The lower nonce of the peer's own rekey of the same CHILD SA, if we answered one meanwhile.
    passive: Option<Vec<u8>>,
}

impl Rekey {
    /// Whether the outstanding request is an IKE_FOLLOWUP_KE.
    pub(crate) fn is_following(&self) -> bool {
        self.creation.is_following()
    }

    /// Gives back what was reserved for an exchange that will not finish.
    pub(crate) fn release(&self, shared: &mut Shared) {
        shared.release_inbound_spi(self.creation.spi_in);
    }
}

/// Asks to replace the CHILD SA, if it is still worth it.
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, old: u32, method: Option<Method>, now: Instant) {
    let Some(child) = sa.child_by_inbound(old).filter(|child| child.phase == ChildPhase::Installed) else {
        return;
    };
    //= RFC 7296 §2.9.2: at least what is in use now
    let (ts_local, ts_remote) = (child.ts_local.clone(), child.ts_remote.clone());
    let Some((creation, mut payloads)) = child_negotiation::propose(sa, shared, method, ts_local, ts_remote)
    else {
        return;
    };
    if let Some(child) = sa.child_by_inbound(old) {
        child.phase = ChildPhase::Rekeying;
    }
    //= RFC 7296 §2.25: REKEY_SA names the SA by the SPI that its sender receives on.
    payloads.insert(0, Payload::Notify(Notify::about_esp(notify::REKEY_SA, old)));
    let pending = Pending::RekeyChild(Box::new(Rekey { old, creation, passive: None }));
    sa.send_request(shared, ExchangeType::CreateChildSa, &payloads, pending, now);
}

/// Takes the response.
///
/// # Errors
/// [`Violation`] if the response breaks the protocol.
pub(crate) fn finish(
    sa: &mut IkeSa,
    shared: &mut Shared,
    rekey: Rekey,
    contents: Contents<'_>,
    now: Instant,
) -> Result<(), Violation> {
    if let Some(error) = contents.error() {
        rekey.release(shared);
        refused(sa, shared, &rekey, error, now);
        return Ok(());
    }
    let Rekey { old, creation, passive } = rekey;
    let spi_in = creation.spi_in;
    let mut outcome = Outcome::Ours;
    let judge = |created: &Created| {
        // Only exchanges that created an SA take part in the comparison.
        outcome = passive.as_deref().map_or(Outcome::Ours, |theirs| compare(created.lowest_nonce(), theirs));
        outcome == Outcome::Ours
    };
    let accepted = child_negotiation::accept(sa, shared, creation, contents, Some(old), judge, now);
    if let Accepted::Continue(creation, payloads) =
        accepted.inspect_err(|_| shared.release_inbound_spi(spi_in))?
    {
        let pending = Pending::RekeyChild(Box::new(Rekey { old, creation: *creation, passive }));
        sa.send_request(shared, ExchangeType::IkeFollowupKe, &payloads, pending, now);
        return Ok(());
    }
    sa.refusals = 0;
    match outcome {
        Outcome::Ours => sa.delete_child(shared, old, ChildDownReason::Rekeyed),
        //= RFC 7296 §2.8.1: the SA with the lowest nonce is closed by the endpoint that created it; the
        //= other side deletes the old one.
        Outcome::Theirs => {
            mark_replaced(sa, old, now);
            sa.delete_child(shared, spi_in, ChildDownReason::Redundant);
        }
    }
    Ok(())
}

fn refused(sa: &mut IkeSa, shared: &mut Shared, rekey: &Rekey, error: &Notify, now: Instant) {
    if rekey.passive.is_some() {
        // The peer's replacement stands; ours was superfluous.
        mark_replaced(sa, rekey.old, now);
        return;
    }
    let other = child_negotiation::other_method(sa, shared, error, rekey.creation.exchange.as_ref());
    let Some(child) = sa.child_by_inbound(rekey.old) else { return };
    if child.phase == ChildPhase::Rekeying {
        child.phase = ChildPhase::Installed;
    }
    if let Some(method) = other {
        start(sa, shared, rekey.old, Some(method), now);
    } else if error.kind == notify::CHILD_SA_NOT_FOUND {
        //= RFC 7296 §2.25: the SA is gone at the peer: drop it and make a new one.
        sa.drop_child(shared, rekey.old, ChildDownReason::DeletedByPeer, now);
        sa.want(Want::OnlyChild, None);
    } else {
        // The timer stays silent until the retry decides.
        child.rekey_at = None;
        child_negotiation::retry(sa, shared, Want::RekeyChild { spi_in: rekey.old }, now);
    }
}

fn mark_replaced(sa: &mut IkeSa, old: u32, now: Instant) {
    if let Some(child) = sa.child_by_inbound(old) {
        child.phase = ChildPhase::Replaced;
        child.rekey_at = None;
        child.delete_at = Some(now + DELETE_GRACE);
    }
}

/// Answers the peer's request to replace a CHILD SA.
///
/// # Errors
/// [`Refusal`] with the notification of the RFC.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    rekeyed: &Notify,
    now: Instant,
) -> Result<Vec<Payload>, Refusal> {
    //= RFC 7296 §2.25: CHILD_SA_NOT_FOUND echoes protocol and SPI of the request.
    let not_found = || {
        let notify = Notify { kind: notify::CHILD_SA_NOT_FOUND, data: vec![], ..rekeyed.clone() };
        Refusal { notify, fatal: false }
    };
    let spi = <[u8; 4]>::try_from(rekeyed.spi.as_slice()).map(u32::from_be_bytes);
    let (protocol::ESP, Ok(spi)) = (rekeyed.protocol, spi) else { return Err(not_found()) };
    let rekeying_ike = matches!(sa.pending, Some(Pending::RekeyIke(_)));
    let Some(child) = sa.child_by_outbound(spi) else { return Err(not_found()) };
    //= RFC 7296 §2.25.1 and §2.25.2
    if rekeying_ike || matches!(child.phase, ChildPhase::Deleting | ChildPhase::Replaced) {
        return Err(Refusal::with(notify::TEMPORARY_FAILURE));
    }
    let (old, local, remote) = (child.spi_in, child.ts_local.clone(), child.ts_remote.clone());
    let (payloads, lowest_nonce) =
        child_negotiation::create(sa, shared, contents, (&local, &remote), Some(old), now)?;
    match &mut sa.pending {
        Some(Pending::RekeyChild(rekey)) if rekey.old == old => {
            rekey.passive = Some(lowest_nonce);
        }
        _ => mark_replaced(sa, old, now),
    }
    Ok(payloads)
}
