//! IKE_AUTH: identities, proof of the keys, and the first CHILD SA (RFC 7296 §1.2, §2.15).

use std::time::Instant;

use crate::child_sa::{Agreement, install};
use crate::config::ConnectionId;
use crate::error::{Malformed, Violation};
use crate::event::{DialFailure, Event, IkeDownReason, Rejection};
use crate::exchange::ike_sa_init::{Responded, Transcript};
use crate::exchange::proof::{self, Proven, prove, verify};
use crate::exchange::{Contents, Pending, Refusal, child_negotiation};
use crate::identity::Identity;
use crate::ike_sa::{IkeSa, Phase, Want};
use crate::shared::{Action, Shared};
use crate::traffic_selectors::{EVERYTHING, covers, narrow};
use crate::wire::registry::{notify, protocol};
use crate::wire::{ExchangeType, Identification, Notify, Payload};

/// What the initiator keeps until the response.
pub(crate) struct Initiation {
    transcript: Transcript,
    /// Our inbound SPI of the first CHILD SA, unless the exchange is childless.
    spi_in: Option<u32>,
}

impl Initiation {
    /// The attempt is over: gives the SPI back.
    pub(crate) fn release(&self, shared: &mut Shared) {
        if let Some(spi_in) = self.spi_in {
            shared.release_inbound_spi(spi_in);
        }
    }
}

/// Sends the request of a freshly keyed IKE SA.
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, transcript: Transcript, now: Instant) {
    match request(sa, shared, &transcript) {
        Ok((payloads, spi_in)) => {
            let pending = Pending::IkeAuth(Box::new(Initiation { transcript, spi_in }));
            sa.send_request(shared, ExchangeType::IkeAuth, &payloads, pending, now);
        }
        Err(failure) => abandon(sa, shared, failure, now),
    }
}

/// Ends a dial attempt and says why.
pub(crate) fn abandon(sa: &mut IkeSa, shared: &mut Shared, what: DialFailure, now: Instant) {
    if let Some(connection) = sa.connection {
        let tries = shared.connections.get_mut(&connection).map_or(0, |entry| {
            entry.tries = entry.tries.saturating_add(1);
            entry.tries
        });
        shared.events.push_back(Event::DialFailed { connection, what, tries });
    }
    sa.close(shared, IkeDownReason::ProtocolError, now);
}

fn request(
    sa: &IkeSa,
    shared: &mut Shared,
    transcript: &Transcript,
) -> Result<(Vec<Payload>, Option<u32>), DialFailure> {
    let gone = DialFailure::Violation(Violation::Missing("connection"));
    let (connection, secured) = (sa.connection.ok_or(gone)?, sa.secured.as_ref().ok_or(gone)?);
    let (worker, childless, restarted) = {
        let entry = shared.connections.get(&connection).ok_or(gone)?;
        (entry.config.worker, entry.config.childless && sa.peer.childless, entry.established.is_empty())
    };
    let entry = shared.connections.get(&connection).ok_or(gone)?;
    let id = Identification::from(&entry.config.local_id);
    let auth = prove(sa, shared, secured, &entry.config, transcript, &id)?;
    let spi_in = (!childless).then(|| shared.allocate_inbound_spi(worker));
    let entry = shared.connections.get(&connection).ok_or(gone)?;
    let config = &entry.config;
    let mut payloads = vec![Payload::IdentificationInitiator(id)];
    payloads.extend(proof::own_certificates(shared, config));
    payloads.extend(proof::request(std::iter::once(config)));
    //= RFC 7296 §2.4: INITIAL_CONTACT only if this is the only SA between the two identities.
    if restarted && has_unique_identities(shared, connection) {
        payloads.push(Payload::Notify(Notify::new(notify::INITIAL_CONTACT, vec![])));
    }
    payloads.push(Payload::IdentificationResponder(Identification::from(&config.remote_id)));
    payloads.push(auth);
    if let Some(spi_in) = spi_in {
        payloads.push(Payload::SecurityAssociation(entry.first_child_policy().offer(spi_in)));
        payloads.push(Payload::TrafficSelectorInitiator(EVERYTHING.to_vec()));
        payloads.push(Payload::TrafficSelectorResponder(EVERYTHING.to_vec()));
    }
    payloads.extend(shared.config.mobike.then(mobike_supported));
    payloads.push(Payload::VendorId(shared.config.vendor_id.clone()));
    Ok((payloads, spi_in))
}

fn mobike_supported() -> Payload {
    Payload::Notify(Notify::new(notify::MOBIKE_SUPPORTED, vec![]))
}

/// Several links between the same two identities must not declare each other dead.
fn has_unique_identities(shared: &Shared, connection: ConnectionId) -> bool {
    let Some(entry) = shared.connections.get(&connection) else { return false };
    let key = (entry.config.remote_id.clone(), entry.config.local_id.clone());
    shared.by_identities.get(&key).is_some_and(|connections| connections.len() == 1)
}

/// Takes the response, which is the responder's proof.
pub(crate) fn finish(
    sa: &mut IkeSa,
    shared: &mut Shared,
    initiation: Initiation,
    contents: Contents<'_>,
    now: Instant,
) {
    match check_response(sa, shared, &initiation, contents, now) {
        Ok(proven) => sa.proven = Some(proven),
        Err(failure) => {
            initiation.release(shared);
            if matches!(failure, DialFailure::NotAuthentic(_)) {
                // The peer believes that the SA is up: tell it otherwise.
                //= RFC 7296 §2.21.2
                say_farewell(sa, shared, now);
            }
            abandon(sa, shared, failure, now);
            return;
        }
    }
    let (Some(connection), Some(spi_in)) = (sa.connection, initiation.spi_in) else {
        establish(sa, shared, contents, false, now);
        sa.want(Want::OnlyChild, None);
        return;
    };
    establish(sa, shared, contents, false, now);
    let child = accept_child(shared, connection, spi_in, contents);
    match child {
        Ok((suite, spi_out, ts_local, ts_remote)) => {
            let (nonce_i, nonce_r) = (&initiation.transcript.nonce_i, &initiation.transcript.nonce_r);
            let agreement = Agreement {
                spi_in,
                spi_out,
                suite,
                ts_local,
                ts_remote,
                nonce_i,
                nonce_r,
                secrets: &[],
                initiator: true,
                replaces: None,
                eligible: true,
                from_ike_auth: true,
                only: false,
            };
            install(sa, shared, agreement, now);
        }
        //= RFC 7296 §1.2: without CHILD SA the IKE SA is created nevertheless.
        Err(()) => {
            shared.release_inbound_spi(spi_in);
            child_negotiation::retry(sa, shared, Want::OnlyChild, now);
        }
    }
}

fn say_farewell(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    let failed = Payload::Notify(Notify::new(notify::AUTHENTICATION_FAILED, vec![]));
    let pending = Pending::DeleteIke(IkeDownReason::ProtocolError);
    sa.send_request(shared, ExchangeType::Informational, &[failed], pending, now);
}

fn check_response(
    sa: &IkeSa,
    shared: &Shared,
    initiation: &Initiation,
    contents: Contents<'_>,
    now: Instant,
) -> Result<Proven, DialFailure> {
    let missing = DialFailure::Violation(Violation::Missing("IDr"));
    let config = sa.connection.and_then(|id| shared.connections.get(&id)).map(|entry| &entry.config);
    let Some(config) = config else { return Err(missing) };
    let Some(id) = contents.id_responder().map_err(DialFailure::Violation)? else {
        return Err(contents.error().map_or(missing, |error| DialFailure::Refused(error.kind)));
    };
    if !id.identity().is_ok_and(|identity| identity.is_same(&config.remote_id)) {
        return Err(DialFailure::NotAuthentic(Violation::Authentication("the peer has another identity")));
    }
    verify(sa, shared, config, &initiation.transcript, contents, id, now).map_err(DialFailure::NotAuthentic)
}

type FirstChild =
    (crate::proposal::ChildSuite, u32, Vec<crate::wire::TrafficSelector>, Vec<crate::wire::TrafficSelector>);

fn accept_child(
    shared: &Shared,
    connection: ConnectionId,
    _spi_in: u32,
    contents: Contents<'_>,
) -> Result<FirstChild, ()> {
    let entry = shared.connections.get(&connection).ok_or(())?;
    let chosen = contents.sa().map_err(drop)?;
    let choice = entry.first_child_policy().confirm(chosen, None).map_err(drop)?;
    let spi_out = child_negotiation::spi_of(&choice.spi).ok_or(())?;
    let (local, remote) = (contents.ts_initiator().map_err(drop)?, contents.ts_responder().map_err(drop)?);
    if local.is_empty() || remote.is_empty() || !covers(&EVERYTHING, local) || !covers(&EVERYTHING, remote) {
        return Err(());
    }
    Ok((choice.suite, spi_out, local.to_vec(), remote.to_vec()))
}

/// The peer is authentic: the SA is usable from now on.
fn establish(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    initial_contact: bool,
    now: Instant,
) {
    let (Some(connection), Some(secured)) = (sa.connection, &sa.secured) else { return };
    let key_exchange = secured.suite.key_exchange_name();
    sa.phase = Phase::Established;
    sa.established = Some(now);
    sa.announced = true;
    sa.rekey_at = Some(now + crate::child_sa::jittered(shared.config.timers.ike_rekey, shared));
    sa.expire_at = Some(now + shared.config.timers.ike_rekey + shared.config.timers.expiry_grace);
    sa.peer.ours = contents.has_vendor_id(&shared.config.vendor_id);
    //= RFC 4555 §3.1
    sa.peer.mobike = shared.config.mobike && contents.has_notify(notify::MOBIKE_SUPPORTED);
    sa.peer.we_began = sa.initiator;
    shared.events.push_back(Event::IkeUp {
        connection,
        spis: sa.spis(),
        initiator: sa.initiator,
        ours: sa.peer.ours,
        key_exchange,
        path: sa.path,
    });
    shared.actions.push_back(Action::Established { spi: sa.local_spi, connection, initial_contact });
}

/// Answers the request of a half-open IKE SA: authenticates the initiator and creates the CHILD SA.
///
/// # Errors
/// A fatal [`Refusal`], and the reason for our own records.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    responded: &Responded,
    contents: Contents<'_>,
    now: Instant,
) -> Result<Vec<Payload>, (Refusal, Rejection)> {
    let transcript = &responded.transcript;
    let failed = |reason| {
        let notify = Notify::new(notify::AUTHENTICATION_FAILED, vec![]);
        (Refusal { notify, fatal: true }, reason)
    };
    let broken = |violation: Violation| (Refusal::from(violation), Rejection::Violation(violation));
    let id_i = contents.id_initiator().map_err(broken)?;
    let connection = find_connection(sa, shared, contents).map_err(broken)?;
    let connection = connection.ok_or_else(|| failed(Rejection::UnknownPeer))?;
    let (Some(entry), Some(secured)) = (shared.connections.get(&connection), &sa.secured) else {
        return Err(failed(Rejection::UnknownPeer));
    };
    let proven = verify(sa, shared, &entry.config, transcript, contents, id_i, now);
    let proven = proven.map_err(|_| failed(Rejection::NotAuthentic))?;
    let id_r = Identification::from(&entry.config.local_id);
    //= CVE-2024-2357's lesson: without a signature of our own there is no SA either.
    let auth = prove(sa, shared, secured, &entry.config, transcript, &id_r);
    let auth = auth.map_err(|_| failed(Rejection::NotAuthentic))?;
    let certificates = proof::own_certificates(shared, &entry.config);
    sa.connection = Some(connection);
    sa.proven = Some(proven);
    let mut payloads = vec![Payload::IdentificationResponder(id_r)];
    payloads.extend(certificates);
    payloads.push(auth);
    let initial_contact = contents.has_notify(notify::INITIAL_CONTACT);
    establish(sa, shared, contents, initial_contact, now);
    payloads.extend(respond_child(sa, shared, connection, transcript, contents, now));
    payloads.extend(sa.peer.mobike.then(mobike_supported));
    payloads.push(Payload::VendorId(shared.config.vendor_id.clone()));
    Ok(payloads)
}

/// The connection between the two identities; among several, the one of this local port or remote address.
fn find_connection(
    sa: &IkeSa,
    shared: &Shared,
    contents: Contents<'_>,
) -> Result<Option<ConnectionId>, Violation> {
    let Ok(remote) = contents.id_initiator()?.identity() else { return Ok(None) };
    let local = contents.id_responder()?.map(Identification::identity);
    let candidates = shared.by_identities.iter().filter(|((theirs, ours), _)| {
        let is_ours =
            |local: &Result<Identity, Malformed>| local.as_ref().is_ok_and(|local| local.is_same(ours));
        theirs.is_same(&remote) && local.as_ref().is_none_or(is_ours)
    });
    let candidates = candidates.flat_map(|(_, ids)| ids.iter().copied());
    let rank = |id: &ConnectionId| {
        let config = shared.connections.get(id).map(|entry| &entry.config);
        let local_port = config.is_some_and(|config| config.local_port == sa.path.local.port());
        let local_address = config
            .is_some_and(|config| config.local_address.is_none_or(|address| address == sa.path.local.ip()));
        let remote_address = config
            .is_some_and(|config| config.remote_address.is_some_and(|at| at.ip() == sa.path.remote.ip()));
        (local_address, local_port, remote_address)
    };
    // `max_by_key` takes the last of equals: the order of numbers decides, which is stable.
    Ok(candidates.max_by_key(rank))
}

/// SA, TSi and TSr of the response, or the reason why there is no CHILD SA.
fn respond_child(
    sa: &mut IkeSa,
    shared: &mut Shared,
    connection: ConnectionId,
    transcript: &Transcript,
    contents: Contents<'_>,
    now: Instant,
) -> Vec<Payload> {
    let refuse = |kind| vec![Payload::Notify(Notify::new(kind, vec![]))];
    let Ok(Some(offered)) = contents.optional_sa() else {
        // A childless exchange (RFC 6023), or one that asks for nothing that we could make.
        return Vec::new();
    };
    let (Ok(theirs), Ok(ours)) = (contents.ts_initiator(), contents.ts_responder()) else {
        return refuse(notify::INVALID_SYNTAX);
    };
    let Some(entry) = shared.connections.get(&connection) else { return Vec::new() };
    let worker = entry.config.worker;
    let Some(choice) = entry.first_child_policy().select(offered, None) else {
        return refuse(notify::NO_PROPOSAL_CHOSEN);
    };
    let (ts_remote, ts_local) = (narrow(theirs, &EVERYTHING), narrow(ours, &EVERYTHING));
    if ts_remote.is_empty() || ts_local.is_empty() {
        return refuse(notify::TS_UNACCEPTABLE);
    }
    let Some(spi_out) = child_negotiation::spi_of(&choice.spi) else { return refuse(notify::INVALID_SYNTAX) };
    let spi_in = shared.allocate_inbound_spi(worker);
    let mut proposal = choice.proposal;
    debug_assert_eq!(proposal.protocol, protocol::ESP);
    proposal.spi = spi_in.to_be_bytes().to_vec();
    let payloads = vec![
        Payload::SecurityAssociation(vec![proposal]),
        Payload::TrafficSelectorInitiator(ts_remote.clone()),
        Payload::TrafficSelectorResponder(ts_local.clone()),
    ];
    let agreement = Agreement {
        spi_in,
        spi_out,
        suite: choice.suite,
        ts_local,
        ts_remote,
        nonce_i: &transcript.nonce_i,
        nonce_r: &transcript.nonce_r,
        secrets: &[],
        initiator: false,
        replaces: None,
        eligible: true,
        from_ike_auth: true,
        only: false,
    };
    install(sa, shared, agreement, now);
    payloads
}
