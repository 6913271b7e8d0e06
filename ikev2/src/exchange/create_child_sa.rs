//! CREATE_CHILD_SA for a new CHILD SA, and the parts that rekeying shares with it (RFC 7296 §1.3.1).

use std::time::{Duration, Instant};

use rand_core::Rng;

use crate::child_sa::{Agreement, install};
use crate::error::Violation;
use crate::exchange::{Contents, Pending, Refusal};
use crate::ike_sa::{IkeSa, Want};
use crate::key_exchange::{KeyExchange, Method};
use crate::proposal::ChildPolicy;
use crate::secret::SecretBytes;
use crate::shared::Shared;
use crate::traffic_selectors::{EVERYTHING, covers, narrow};
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Notify, Payload, TrafficSelector};

/// Longest back-off after refusals.
const MAX_RETRY: Duration = Duration::from_secs(300);

/// What the initiator keeps until the response.
pub(crate) struct Creation {
    pub(crate) spi_in: u32,
    pub(crate) nonce: Vec<u8>,
    pub(crate) exchange: Option<KeyExchange>,
    /// What was proposed; the answer must lie within.
    pub(crate) ts_local: Vec<TrafficSelector>,
    pub(crate) ts_remote: Vec<TrafficSelector>,
}

/// Everything that a successful exchange agreed on, on either side.
pub(crate) struct Created {
    pub(crate) spi_in: u32,
    pub(crate) nonce_i: Vec<u8>,
    pub(crate) nonce_r: Vec<u8>,
}

impl Created {
    /// The lower nonce: the SA with the lowest of the four loses a collision.
    //= RFC 7296 §2.8.1
    pub(crate) fn lowest_nonce(&self) -> &[u8] {
        (&self.nonce_i).min(&self.nonce_r)
    }
}

/// Asks for a new CHILD SA with everything in it. `method` overrides the preferred key exchange method.
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, method: Option<Method>, now: Instant) {
    if sa.children.len() >= shared.config.limits.children {
        return;
    }
    let Some((creation, payloads)) = propose(sa, shared, method, EVERYTHING.to_vec(), EVERYTHING.to_vec())
    else {
        return;
    };
    sa.send_request(
        shared,
        ExchangeType::CreateChildSa,
        &payloads,
        Pending::CreateChild(Box::new(creation)),
        now,
    );
}

/// SA, Ni, [KEi], TSi, TSr of a request.
pub(crate) fn propose(
    sa: &IkeSa,
    shared: &mut Shared,
    method: Option<Method>,
    ts_local: Vec<TrafficSelector>,
    ts_remote: Vec<TrafficSelector>,
) -> Option<(Creation, Vec<Payload>)> {
    let policy = policy(sa, shared)?;
    let worker = shared.connections.get(&sa.connection?)?.config.worker;
    let spi_in = shared.allocate_inbound_spi(worker);
    let method = method.or_else(|| policy.methods.first().copied());
    let exchange = method.map(|method| KeyExchange::initiate(method, &mut shared.rng));
    let nonce = shared.nonce();
    let mut payloads =
        vec![Payload::SecurityAssociation(policy.offer(spi_in)), Payload::Nonce(nonce.clone())];
    payloads.extend(exchange.as_ref().map(key_exchange_payload));
    payloads.push(Payload::TrafficSelectorInitiator(ts_local.clone()));
    payloads.push(Payload::TrafficSelectorResponder(ts_remote.clone()));
    Some((Creation { spi_in, nonce, exchange, ts_local, ts_remote }, payloads))
}

/// Algorithms for CHILD SAs on this IKE SA; the IKE SA's own key exchange method comes first.
pub(crate) fn policy(sa: &IkeSa, shared: &Shared) -> Option<ChildPolicy> {
    let config = &shared.connections.get(&sa.connection?)?.config;
    let algorithms = config.esp_algorithms.clone();
    let mut methods = Vec::new();
    if config.perfect_forward_secrecy {
        methods = super::ike_sa_init::policy(&shared.config).methods;
        let negotiated = sa.secured.as_ref()?.suite.method;
        methods.sort_by_key(|method| *method != negotiated);
    }
    Some(ChildPolicy { algorithms, methods, additional: vec![] })
}

pub(crate) fn key_exchange_payload(exchange: &KeyExchange) -> Payload {
    Payload::KeyExchange { method: exchange.method().code(), data: exchange.public().to_vec() }
}

/// An ESP SPI as it stands in a proposal.
pub(crate) fn spi_of(octets: &[u8]) -> Option<u32> {
    let spi = u32::from_be_bytes(octets.try_into().ok()?);
    (spi > 255).then_some(spi)
}

/// Reads a successful response and installs the CHILD SA. `judge` says, knowing the nonces, whether it may
/// carry traffic.
///
/// # Errors
/// [`Violation`] if the peer agreed to what was not proposed.
pub(crate) fn accept(
    sa: &mut IkeSa,
    shared: &mut Shared,
    creation: Creation,
    contents: Contents<'_>,
    replaces: Option<u32>,
    judge: impl FnOnce(&Created) -> bool,
    now: Instant,
) -> Result<Created, Violation> {
    let policy = policy(sa, shared).ok_or(Violation::Missing("connection"))?;
    let sent = creation.exchange.as_ref().map(|exchange| exchange.method().code());
    let choice = policy.confirm(contents.sa()?, sent)?;
    let spi_out = spi_of(&choice.spi).ok_or(Violation::Forbidden("ESP SPI"))?;
    let nonce_r = contents.nonce()?.to_vec();
    let secrets = match (choice.suite.method, &creation.exchange) {
        (None, _) => vec![],
        (Some(_), Some(exchange)) => {
            let (method, public) = contents.key_exchange()?.ok_or(Violation::Missing("KE"))?;
            if Some(method) != sent {
                return Err(Violation::NotOffered("a key exchange method"));
            }
            vec![exchange.complete(public)?]
        }
        (Some(_), None) => return Err(Violation::NotOffered("a key exchange")),
    };
    let (ts_local, ts_remote) = (contents.ts_initiator()?, contents.ts_responder()?);
    let empty = ts_local.is_empty() || ts_remote.is_empty();
    if empty || !covers(&creation.ts_local, ts_local) || !covers(&creation.ts_remote, ts_remote) {
        return Err(Violation::NotOffered("traffic selectors"));
    }
    let created = Created { spi_in: creation.spi_in, nonce_i: creation.nonce, nonce_r };
    let agreement = Agreement {
        spi_in: created.spi_in,
        spi_out,
        suite: choice.suite,
        ts_local: ts_local.to_vec(),
        ts_remote: ts_remote.to_vec(),
        nonce_i: &created.nonce_i,
        nonce_r: &created.nonce_r,
        secrets: &secrets,
        initiator: true,
        replaces,
        eligible: judge(&created),
        from_ike_auth: false,
    };
    install(sa, shared, agreement, now);
    Ok(created)
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
            Some(method) => start(sa, shared, Some(method), now),
            None => retry(sa, shared, Want::CreateChild, now),
        }
        return Ok(());
    }
    let accepted = accept(sa, shared, creation, contents, None, |_| true, now);
    accepted.inspect_err(|_| shared.release_inbound_spi(spi_in))?;
    sa.refusals = 0;
    Ok(())
}

/// The method that INVALID_KE_PAYLOAD asks for, if it is one of ours and not the one that was refused.
//= RFC 7296 §1.3: the initiator retries with the group named there.
pub(crate) fn other_method(
    sa: &IkeSa,
    shared: &Shared,
    error: &Notify,
    refused: Option<&KeyExchange>,
) -> Option<Method> {
    if error.kind != notify::INVALID_KE_PAYLOAD {
        return None;
    }
    let wanted = u16::from_be_bytes(error.data.as_slice().try_into().ok()?);
    let method = policy(sa, shared)?.methods.into_iter().find(|method| method.code() == wanted)?;
    (Some(method) != refused.map(KeyExchange::method)).then_some(method)
}

/// Tries a refused exchange again later; each refusal in a row doubles the wait.
//= RFC 7296 §2.25: TEMPORARY_FAILURE means try again after a delay.
pub(crate) fn retry(sa: &mut IkeSa, shared: &mut Shared, want: Want, now: Instant) {
    let wait = shared.config.timers.refusal_retry.saturating_mul(1 << sa.refusals.min(16)).min(MAX_RETRY);
    sa.refusals = sa.refusals.saturating_add(1);
    // Both ends may have refused each other: without a random part they would do so for ever.
    let part = wait * (shared.rng.next_u32() % 500) / 1000;
    sa.want(want, Some(now + wait - part));
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
    create(sa, shared, contents, &EVERYTHING, &EVERYTHING, None, now).map(|(payloads, _)| payloads)
}

/// Creates a CHILD SA at the peer's request, within the given selectors.
///
/// # Errors
/// [`Refusal`] with the notification of the RFC.
pub(crate) fn create(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    local_limit: &[TrafficSelector],
    remote_limit: &[TrafficSelector],
    replaces: Option<u32>,
    now: Instant,
) -> Result<(Vec<Payload>, Created), Refusal> {
    if sa.children.len() >= shared.config.limits.children {
        return Err(Refusal::with(notify::NO_ADDITIONAL_SAS));
    }
    let (offered, nonce_i) = (contents.sa()?, contents.nonce()?.to_vec());
    let (theirs, ours) = (contents.ts_initiator()?, contents.ts_responder()?);
    let sent = contents.key_exchange()?;
    let policy = policy(sa, shared).ok_or(Refusal::with(notify::TEMPORARY_FAILURE))?;
    let choice = policy.select(offered, sent.map(|(method, _)| method));
    let choice = choice.ok_or(Refusal::with(notify::NO_PROPOSAL_CHOSEN))?;
    let (exchange, secrets) = agree(shared, choice.suite.method, sent)?;
    let (ts_remote, ts_local) = (narrow(theirs, remote_limit), narrow(ours, local_limit));
    if ts_remote.is_empty() || ts_local.is_empty() {
        return Err(Refusal::with(notify::TS_UNACCEPTABLE));
    }
    let spi_out = spi_of(&choice.spi).ok_or(Violation::Forbidden("ESP SPI"))?;
    let worker =
        sa.connection.and_then(|id| shared.connections.get(&id)).map_or(0, |entry| entry.config.worker);
    let spi_in = shared.allocate_inbound_spi(worker);
    let created = Created { spi_in, nonce_i, nonce_r: shared.nonce() };
    let mut proposal = choice.proposal;
    proposal.spi = spi_in.to_be_bytes().to_vec();
    let mut payloads =
        vec![Payload::SecurityAssociation(vec![proposal]), Payload::Nonce(created.nonce_r.clone())];
    payloads.extend(exchange.as_ref().map(key_exchange_payload));
    payloads.push(Payload::TrafficSelectorInitiator(ts_remote.clone()));
    payloads.push(Payload::TrafficSelectorResponder(ts_local.clone()));
    let agreement = Agreement {
        spi_in,
        spi_out,
        suite: choice.suite,
        ts_local,
        ts_remote,
        nonce_i: &created.nonce_i,
        nonce_r: &created.nonce_r,
        secrets: &secrets,
        initiator: false,
        replaces,
        eligible: true,
        from_ike_auth: false,
    };
    install(sa, shared, agreement, now);
    Ok((payloads, created))
}

/// Our half of the key exchange that was chosen, and its secret.
pub(crate) fn agree(
    shared: &mut Shared,
    chosen: Option<Method>,
    sent: Option<(u16, &[u8])>,
) -> Result<(Option<KeyExchange>, Vec<SecretBytes>), Refusal> {
    let Some(method) = chosen else { return Ok((None, vec![])) };
    match sent {
        Some((code, public)) if code == method.code() => {
            let exchange = KeyExchange::respond(method, public, &mut shared.rng)?;
            let secret = exchange.complete(public)?;
            Ok((Some(exchange), vec![secret]))
        }
        _ => Err(Refusal::wrong_method(method.code())),
    }
}
