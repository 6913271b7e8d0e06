//! CREATE_CHILD_SA for a new CHILD SA (RFC 7296 §1.3.1).

use std::time::Instant;

use crate::child_sa::Child;
use crate::error::Violation;
use crate::exchange::child_negotiation::{Accepted, Creation, accept, create, other_method, propose, retry};
use crate::exchange::{Contents, Pending, Refusal};
use crate::ike_sa::{IkeSa, Want};
use crate::key_exchange::Method;
use crate::shared::Shared;
use crate::traffic_selectors::EVERYTHING;
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Notify, Payload};

/// Asks for a new CHILD SA with everything in it: the only one, unless another is in use by now, or a further one.
/// `method` overrides the preferred key exchange method.
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, only: bool, method: Option<Method>, now: Instant) {
    let superfluous = only && sa.children.iter().any(Child::is_in_use);
    if superfluous || sa.children.len() >= shared.config.limits.children {
        return;
    }
    let Some((mut creation, mut payloads)) =
        propose(sa, shared, method, EVERYTHING.to_vec(), EVERYTHING.to_vec())
    else {
        return;
    };
    creation.only = only;
    if !only {
        //= RFC 9611 §3: what is not meant to be the only one says so.
        payloads.insert(0, Payload::Notify(Notify::new(notify::SA_RESOURCE_INFO, vec![])));
    }
    let pending = Pending::CreateChild(Box::new(creation));
    sa.send_request(shared, ExchangeType::CreateChildSa, &payloads, pending, now);
}

/// Takes the response to a request for a new CHILD SA.
///
/// # Errors
/// [`Violation`] if the response breaks the protocol.
pub(crate) fn finish(
    sa: &mut IkeSa,
    shared: &mut Shared,
    creation: Creation,
    contents: Contents<'_>,
    now: Instant,
) -> Result<(), Violation> {
    let spi_in = creation.spi_in;
    if let Some(error) = contents.error() {
        shared.release_inbound_spi(spi_in);
        match other_method(sa, shared, error, creation.exchange.as_ref()) {
            Some(method) => start(sa, shared, creation.only, Some(method), now),
            None => {
                let want = if creation.only { Want::OnlyChild } else { Want::FurtherChild };
                retry(sa, shared, want, now);
            }
        }
        return Ok(());
    }
    let accepted = accept(sa, shared, creation, contents, None, |_| true, now);
    match accepted.inspect_err(|_| shared.release_inbound_spi(spi_in))? {
        Accepted::Done => sa.refusals = 0,
        Accepted::Continue(creation, payloads) => {
            let pending = Pending::CreateChild(creation);
            sa.send_request(shared, ExchangeType::IkeFollowupKe, &payloads, pending, now);
        }
    }
    Ok(())
}

/// Answers a request for a new CHILD SA.
///
/// # Errors
/// [`Refusal`] with the notification of the RFC.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    now: Instant,
) -> Result<Vec<Payload>, Refusal> {
    if matches!(sa.pending, Some(Pending::RekeyIke(_))) {
        //= RFC 7296 §2.25.2
        return Err(Refusal::with(notify::TEMPORARY_FAILURE));
    }
    create(sa, shared, contents, (&EVERYTHING, &EVERYTHING), None, now).map(|(payloads, _)| payloads)
}
