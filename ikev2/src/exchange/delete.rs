//! Deleting CHILD SAs and the IKE SA (RFC 7296 §1.4.1, §2.25).

use std::time::Instant;

use crate::child_sa::ChildPhase;
use crate::event::{ChildDownReason, IkeDownReason};
use crate::exchange::{Contents, Pending, child_negotiation};
use crate::ike_sa::{IkeSa, Phase, Want};
use crate::shared::Shared;
use crate::wire::{Delete, ExchangeType, Payload};

/// Asks the peer to delete a CHILD SA.
pub(crate) fn start_child(
    sa: &mut IkeSa,
    shared: &mut Shared,
    spi_in: u32,
    reason: ChildDownReason,
    now: Instant,
) {
    let Some(child) = sa.child_by_inbound(spi_in) else { return };
    child.phase = ChildPhase::Deleting;
    let payloads = [Payload::Delete(Delete::Esp(vec![spi_in]))];
    let pending = Pending::DeleteChild { spi_in, reason };
    sa.send_request(shared, ExchangeType::Informational, &payloads, pending, now);
}

/// Asks the peer to delete the IKE SA with all its CHILD SAs.
pub(crate) fn start_ike(sa: &mut IkeSa, shared: &mut Shared, reason: IkeDownReason, now: Instant) {
    sa.phase = Phase::Closing;
    let payloads = [Payload::Delete(Delete::IkeSa)];
    sa.send_request(shared, ExchangeType::Informational, &payloads, Pending::DeleteIke(reason), now);
}

/// What a peer's DELETE payloads lead to.
pub(crate) struct Deleted {
    /// Delete payloads of the response.
    pub(crate) answer: Vec<Payload>,
    /// Whether the IKE SA itself is to be closed after the response.
    pub(crate) ike_sa: bool,
}

/// Deletes what the peer names. SPIs that we do not know, or are deleting ourselves, are not repeated.
//= RFC 7296 §1.4.1, §2.25.1
pub(crate) fn respond(sa: &mut IkeSa, shared: &mut Shared, contents: Contents<'_>, now: Instant) -> Deleted {
    let mut answered = Vec::new();
    let mut ike_sa = false;
    let mut any_child = false;
    for payload in contents.0 {
        match payload {
            Payload::Delete(Delete::IkeSa) => ike_sa = true,
            Payload::Delete(Delete::Esp(spis)) => {
                any_child = true;
                for spi_out in spis {
                    answered.extend(delete_by_outbound(sa, shared, *spi_out, now));
                }
            }
            _ => {}
        }
    }
    if any_child && !ike_sa {
        ensure_child(sa, shared, now);
    }
    let answer =
        if answered.is_empty() || ike_sa { vec![] } else { vec![Payload::Delete(Delete::Esp(answered))] };
    Deleted { answer, ike_sa }
}

fn delete_by_outbound(sa: &mut IkeSa, shared: &mut Shared, spi_out: u32, now: Instant) -> Option<u32> {
    let child = sa.child_by_outbound(spi_out)?;
    let (spi_in, phase) = (child.spi_in, child.phase);
    let reason = match phase {
        ChildPhase::Replaced => ChildDownReason::Rekeyed,
        ChildPhase::Installed | ChildPhase::Rekeying | ChildPhase::Deleting => ChildDownReason::DeletedByPeer,
    };
    sa.drop_child(shared, spi_in, reason, now);
    (phase != ChildPhase::Deleting).then_some(spi_in)
}

/// A link that we dial gets a new CHILD SA when its last one is gone, but not at once: the peer had a
/// reason to delete it.
pub(crate) fn ensure_child(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    let dials =
        sa.connection.and_then(|id| shared.connections.get(&id)).is_some_and(|entry| entry.config.dial);
    // A rekey under way makes a CHILD SA by itself.
    let rekeying =
        matches!(sa.pending, Some(Pending::RekeyChild(_) | Pending::CreateChild(_) | Pending::RekeyIke(_)));
    if dials && sa.is_established() && sa.children.is_empty() && !rekeying {
        child_negotiation::retry(sa, shared, Want::OnlyChild, now);
    }
}
