//! One exchange per file, each with up to three verbs: `start` sends the request, `respond` answers the
//! peer's, `finish` takes the response to ours.

pub(crate) mod address_update;
mod child_negotiation;
mod contents;
mod create_child_sa;
mod delete;
pub(crate) mod ike_auth;
pub(crate) mod ike_followup_ke;
pub(crate) mod ike_intermediate;
pub(crate) mod ike_sa_init;
mod informational;
pub(crate) mod proof;
mod rekey_child_sa;
mod rekey_ike_sa;

use std::time::Instant;

use crate::error::{Malformed, Violation};
use crate::event::{ChildDownReason, IkeDownReason};
use crate::fragmentation::OpenedMessage;
use crate::ike_sa::{IkeSa, Phase, Want};
use crate::shared::Shared;
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Header, Notify, Payload};

pub(crate) use contents::Contents;
pub(crate) use ike_followup_ke::Following;

/// What the outstanding request is about.
pub(crate) enum Pending {
    IkeSaInit(Box<ike_sa_init::Initiation>),
    IkeIntermediate(Box<ike_intermediate::Initiation>),
    IkeAuth(Box<ike_auth::Initiation>),
    CreateChild(Box<child_negotiation::Creation>),
    RekeyChild(Box<rekey_child_sa::Rekey>),
    RekeyIke(Box<rekey_ike_sa::Rekey>),
    DeleteChild { spi_in: u32, reason: ChildDownReason },
    DeleteIke(IkeDownReason),
    Liveness,
    UpdateAddresses(address_update::Update),
    RoutabilityCheck(address_update::Update),
}

/// Why a request is refused, and what the response says.
pub(crate) struct Refusal {
    pub(crate) notify: Notify,
    /// Whether the IKE SA ends with it.
    pub(crate) fatal: bool,
}

impl Refusal {
    /// An error notification; the IKE SA stays.
    pub(crate) fn with(kind: u16) -> Self {
        Self { notify: Notify::new(kind, Vec::new()), fatal: false }
    }

    /// INVALID_KE_PAYLOAD naming the method that is wanted.
    pub(crate) fn wrong_method(method: u16) -> Self {
        Self { notify: Notify::new(notify::INVALID_KE_PAYLOAD, method.to_be_bytes().to_vec()), fatal: false }
    }
}

//= RFC 7296 §2.21.3: an authenticated message that makes no sense is answered with INVALID_SYNTAX, and the
//= IKE SA is deleted.
impl From<Violation> for Refusal {
    fn from(_: Violation) -> Self {
        Self { notify: Notify::new(notify::INVALID_SYNTAX, Vec::new()), fatal: true }
    }
}

//= RFC 7296 §2.5: UNSUPPORTED_CRITICAL_PAYLOAD carries the payload type.
impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::UnsupportedCritical(kind) => {
                Self { notify: Notify::new(notify::UNSUPPORTED_CRITICAL_PAYLOAD, vec![kind]), fatal: false }
            }
            _ => Self { notify: Notify::new(notify::INVALID_SYNTAX, Vec::new()), fatal: true },
        }
    }
}

/// Starts a wanted exchange, if it still makes sense.
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, want: Want, now: Instant) {
    match want {
        Want::OnlyChild => create_child_sa::start(sa, shared, true, None, now),
        Want::FurtherChild => create_child_sa::start(sa, shared, false, None, now),
        Want::RekeyChild { spi_in } => rekey_child_sa::start(sa, shared, spi_in, None, now),
        Want::DeleteChild { spi_in, reason } => delete::start_child(sa, shared, spi_in, reason, now),
        Want::RekeyIke => rekey_ike_sa::start(sa, shared, None, now),
        Want::DeleteIke(reason) => delete::start_ike(sa, shared, reason, now),
        Want::Liveness => informational::start(sa, shared, now),
        Want::UpdateAddresses => address_update::start(sa, shared, now),
        Want::RoutabilityCheck => address_update::start_check(sa, shared, now),
    }
}

/// Answers a decrypted request of an established SA: the payloads of the response, or why not.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    exchange: ExchangeType,
    payloads: &[Payload],
    now: Instant,
) -> Result<Vec<Payload>, Refusal> {
    let contents = Contents(payloads);
    match exchange {
        ExchangeType::Informational => informational::respond(sa, shared, contents, now),
        ExchangeType::CreateChildSa => {
            if !matches!(sa.phase, Phase::Established) {
                //= RFC 7296 §2.25.2: a request on an SA that is being closed or was rekeyed
                return Err(Refusal::with(notify::TEMPORARY_FAILURE));
            }
            if contents.offers_ike_sa() {
                rekey_ike_sa::respond(sa, shared, contents, now)
            } else if let Some(rekeyed) = contents.notify(notify::REKEY_SA) {
                rekey_child_sa::respond(sa, shared, contents, rekeyed, now)
            } else {
                create_child_sa::respond(sa, shared, contents, now)
            }
        }
        ExchangeType::IkeFollowupKe => ike_followup_ke::respond(sa, shared, contents, now),
        ExchangeType::IkeSaInit | ExchangeType::IkeAuth | ExchangeType::IkeIntermediate => {
            Err(Violation::Unexpected("exchange").into())
        }
    }
}

/// Takes the decrypted response to the outstanding request of a secured SA.
///
/// # Errors
/// Whatever the peer did wrong; the caller ends the SA.
pub(crate) fn finish(
    sa: &mut IkeSa,
    shared: &mut Shared,
    pending: Pending,
    received: (&Header, &OpenedMessage),
    payloads: &[Payload],
    now: Instant,
) -> Result<(), Violation> {
    let contents = Contents(payloads);
    match pending {
        // Responses to IKE_SA_INIT are in the clear and take another way.
        Pending::IkeSaInit(_) => Err(Violation::Unexpected("encrypted IKE_SA_INIT")),
        Pending::IkeIntermediate(initiation) => {
            ike_intermediate::finish(sa, shared, *initiation, received, contents, now)
        }
        Pending::IkeAuth(initiation) => {
            ike_auth::finish(sa, shared, *initiation, contents, now);
            Ok(())
        }
        Pending::CreateChild(creation) => create_child_sa::finish(sa, shared, *creation, contents, now),
        Pending::RekeyChild(rekey) => rekey_child_sa::finish(sa, shared, *rekey, contents, now),
        Pending::RekeyIke(rekey) => rekey_ike_sa::finish(sa, shared, *rekey, contents, now),
        Pending::DeleteChild { spi_in, reason } => {
            sa.drop_child(shared, spi_in, reason, now);
            delete::ensure_child(sa, shared, now);
            Ok(())
        }
        Pending::DeleteIke(reason) => {
            sa.close(shared, reason, now);
            Ok(())
        }
        Pending::Liveness => Ok(()),
        Pending::UpdateAddresses(update) => address_update::finish(sa, &update, contents, false),
        Pending::RoutabilityCheck(update) => address_update::finish(sa, &update, contents, true),
    }
}

/// Exchange type that a response to `pending` must have.
pub(crate) fn exchange_of(pending: &Pending) -> ExchangeType {
    let create =
        |following| if following { ExchangeType::IkeFollowupKe } else { ExchangeType::CreateChildSa };
    match pending {
        Pending::IkeSaInit(_) => ExchangeType::IkeSaInit,
        Pending::IkeIntermediate(_) => ExchangeType::IkeIntermediate,
        Pending::IkeAuth(_) => ExchangeType::IkeAuth,
        Pending::CreateChild(creation) => create(creation.is_following()),
        Pending::RekeyChild(rekey) => create(rekey.is_following()),
        Pending::RekeyIke(rekey) => create(rekey.is_following()),
        Pending::DeleteChild { .. }
        | Pending::DeleteIke(_)
        | Pending::Liveness
        | Pending::UpdateAddresses(_)
        | Pending::RoutabilityCheck(_) => ExchangeType::Informational,
    }
}
