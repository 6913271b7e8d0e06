//! IKE_FOLLOWUP_KE: an additional key exchange after CREATE_CHILD_SA, as responder (RFC 9370 §2.2.4).
//!
//! The initiator's side is the second step of the exchange that it belongs to.

use std::time::{Duration, Instant};

use crate::child_sa::ChildPhase;
use crate::error::Violation;
use crate::exchange::{Contents, Refusal, child_negotiation, rekey_ike_sa};
use crate::ike_sa::IkeSa;
use crate::key_exchange::KeyExchange;
use crate::shared::Shared;
use crate::wire::registry::notify;
use crate::wire::{Notify, Payload};

/// How long we wait for the initiator's next step.
//= RFC 9370 §2.2.4: "a reasonable time", of the order of seconds
const PATIENCE: Duration = Duration::from_secs(20);

/// A CREATE_CHILD_SA exchange of the peer's that is complete but for its additional key exchange.
pub(crate) struct Following {
    link: Vec<u8>,
    pub(crate) until: Instant,
    pub(crate) what: HalfMade,
}

/// What the exchange will make.
pub(crate) enum HalfMade {
    Child(Box<child_negotiation::HalfMade>),
    Ike(Box<rekey_ike_sa::HalfMade>),
}

/// Remembers a half-made SA and returns the notification that links the next exchange to it.
pub(crate) fn expect(sa: &mut IkeSa, shared: &mut Shared, what: HalfMade, now: Instant) -> Payload {
    let link = shared.nonce();
    sa.following = Some(Following { link: link.clone(), until: now + PATIENCE, what });
    Payload::Notify(Notify::new(notify::ADDITIONAL_KEY_EXCHANGE, link))
}

/// The initiator's next step did not come, or the IKE SA ends.
pub(crate) fn expire(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    let child = match sa.following.take() {
        Some(Following { what: HalfMade::Child(child), .. }) => child,
        Some(Following { what: HalfMade::Ike(_), .. }) => return rekey_ike_sa::forget_passive(sa),
        None => return,
    };
    shared.release_inbound_spi(child.created.spi_in);
    let replaced = child.replaces.and_then(|old| sa.child_by_inbound(old));
    if let Some(old) = replaced.filter(|old| old.phase == ChildPhase::Replaced) {
        // Nothing came of the peer's rekey: the old SA is ours to rekey again.
        old.phase = ChildPhase::Installed;
        old.delete_at = None;
        old.rekey_at = Some(now);
    }
}

/// Answers the request and completes the SA.
///
/// # Errors
/// [`Refusal`] with STATE_NOT_FOUND if nothing waits for this link.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    now: Instant,
) -> Result<Vec<Payload>, Refusal> {
    let link = contents.notify(notify::ADDITIONAL_KEY_EXCHANGE).map(|notify| notify.data.as_slice());
    let expected = sa.following.as_ref().is_some_and(|following| Some(following.link.as_slice()) == link);
    let Some(following) = sa.following.take_if(|_| expected) else {
        //= RFC 9370 §2.2.4
        return Err(Refusal::with(notify::STATE_NOT_FOUND));
    };
    let (sent, public) = contents.key_exchange()?.ok_or(Violation::Missing("KE"))?;
    let wanted = match &following.what {
        HalfMade::Child(child) => child.suite.additional,
        HalfMade::Ike(ike) => ike.suite.additional,
    };
    let method = wanted.filter(|method| method.code() == sent);
    let method = method.ok_or(Violation::NotOffered("a key exchange method"))?;
    let exchange = KeyExchange::respond(method, public, &mut shared.rng)?;
    let secret = exchange.complete(public)?;
    match following.what {
        HalfMade::Child(child) => child_negotiation::complete(sa, shared, *child, secret, now),
        HalfMade::Ike(ike) => rekey_ike_sa::complete(sa, shared, *ike, secret, now),
    }
    Ok(vec![child_negotiation::key_exchange_payload(&exchange)])
}
