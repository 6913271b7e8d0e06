//! INFORMATIONAL: liveness, deletes, notifications (RFC 7296 §1.4).

use std::time::Instant;

use crate::event::IkeDownReason;
use crate::exchange::{Contents, Pending, Refusal, address_update, delete, rekey_ike_sa};
use crate::ike_sa::IkeSa;
use crate::shared::Shared;
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Payload};

/// Asks whether the peer is alive.
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    sa.send_request(shared, ExchangeType::Informational, &[], Pending::Liveness, now);
}

/// Answers the peer's request. What ends the IKE SA is noted in `ending` and done once the response is on
/// its way.
///
/// # Errors
/// None today; the signature is that of all responders.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    now: Instant,
) -> Result<Vec<Payload>, Refusal> {
    let deleted = delete::respond(sa, shared, contents, now);
    //= RFC 7296 §2.21.2: the initiator did not accept our proof.
    let rejected =
        contents.has_notify(notify::AUTHENTICATION_FAILED) || contents.has_notify(notify::INVALID_SYNTAX);
    if deleted.ike_sa || rejected {
        // A rekey by the peer that we answered survives the SA that it replaces.
        rekey_ike_sa::conclude(sa, shared, now);
        let reason = if deleted.ike_sa { IkeDownReason::DeletedByPeer } else { IkeDownReason::ProtocolError };
        sa.ending = Some(reason);
    }
    let mut answer = deleted.answer;
    answer.extend(address_update::respond(sa, shared, contents));
    Ok(answer)
}
