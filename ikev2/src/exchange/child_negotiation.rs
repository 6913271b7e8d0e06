//! What creating and rekeying a CHILD SA have in common, on both sides (RFC 7296 §1.3, RFC 9370 §2.2.4).

use std::time::{Duration, Instant};

use rand_core::Rng;

use crate::child_sa::{Agreement, install};
use crate::error::Violation;
use crate::exchange::ike_followup_ke::{self, HalfMade as Following};
use crate::exchange::{Contents, Refusal};
use crate::ike_sa::{IkeSa, Want};
use crate::key_exchange::{KeyExchange, Method};
use crate::proposal::{ChildPolicy, ChildSuite};
use crate::secret::SecretBytes;
use crate::shared::Shared;
use crate::traffic_selectors::{covers, narrow};
use crate::wire::registry::notify;
use crate::wire::{Notify, Payload, TrafficSelector};

/// Longest back-off after refusals.
const MAX_RETRY: Duration = Duration::from_secs(300);

/// What the initiator keeps until the response.
pub(crate) struct Creation {
    pub(crate) spi_in: u32,
    pub(crate) nonce: Vec<u8>,
    pub(crate) exchange: Option<KeyExchange>,
    /// Whether it is to be the only one of the IKE SA.
    pub(crate) only: bool,
    /// What was proposed; the answer must lie within.
    ts_local: Vec<TrafficSelector>,
    ts_remote: Vec<TrafficSelector>,
    /// What CREATE_CHILD_SA agreed on while IKE_FOLLOWUP_KE is outstanding.
    agreed: Option<Agreed>,
}

impl Creation {
    /// Whether the outstanding request is an IKE_FOLLOWUP_KE.
    pub(crate) fn is_following(&self) -> bool {
        self.agreed.is_some()
    }
}

struct Agreed {
    suite: ChildSuite,
    spi_out: u32,
    nonce_r: Vec<u8>,
    secrets: Vec<SecretBytes>,
    ts_local: Vec<TrafficSelector>,
    ts_remote: Vec<TrafficSelector>,
    /// Our half of the additional key exchange.
    additional: Option<KeyExchange>,
}

/// Everything about a new CHILD SA that decides collisions.
pub(crate) struct Created {
    pub(crate) spi_in: u32,
    nonce_i: Vec<u8>,
    nonce_r: Vec<u8>,
}

impl Created {
    /// The lower nonce: the SA with the lowest of the four loses a collision.
    //= RFC 7296 §2.8.1
    pub(crate) fn lowest_nonce(&self) -> &[u8] {
        (&self.nonce_i).min(&self.nonce_r)
    }
}

/// Where the initiator stands after a response.
pub(crate) enum Accepted {
    /// The CHILD SA is installed.
    Done,
    /// These payloads must be sent in IKE_FOLLOWUP_KE first.
    Continue(Box<Creation>, Vec<Payload>),
}

/// A CHILD SA that the responder completes in IKE_FOLLOWUP_KE.
pub(crate) struct HalfMade {
    pub(crate) created: Created,
    pub(crate) suite: ChildSuite,
    pub(crate) replaces: Option<u32>,
    only: bool,
    spi_out: u32,
    secrets: Vec<SecretBytes>,
    ts_local: Vec<TrafficSelector>,
    ts_remote: Vec<TrafficSelector>,
}

/// SA, Ni, \[KEi\], TSi, TSr of a request.
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
    Some((Creation { spi_in, nonce, exchange, only: false, ts_local, ts_remote, agreed: None }, payloads))
}

/// Algorithms for CHILD SAs on this IKE SA. The IKE SA's own key exchange method comes first, and its
/// additional one is used again, so that rekeying loses nothing.
fn policy(sa: &IkeSa, shared: &Shared) -> Option<ChildPolicy> {
    let config = &shared.connections.get(&sa.connection?)?.config;
    let suite = sa.secured.as_ref()?.suite;
    let algorithms = config.esp_algorithms.clone();
    if !config.perfect_forward_secrecy {
        return Some(ChildPolicy { algorithms, methods: vec![], additional: vec![] });
    }
    let mut methods = super::ike_sa_init::policy(&shared.config).methods;
    methods.sort_by_key(|method| *method != suite.method);
    Some(ChildPolicy { algorithms, methods, additional: suite.additional.into_iter().collect() })
}

pub(crate) fn key_exchange_payload(exchange: &KeyExchange) -> Payload {
    Payload::KeyExchange { method: exchange.method().code(), data: exchange.public().to_vec() }
}

/// An ESP SPI as it stands in a proposal.
pub(crate) fn spi_of(octets: &[u8]) -> Option<u32> {
    let spi = u32::from_be_bytes(octets.try_into().ok()?);
    (spi > 255).then_some(spi)
}

/// Reads a successful response; if it completes the exchange, installs the CHILD SA. `judge` says, knowing
/// the nonces, whether it may carry traffic.
///
/// # Errors
/// [`Violation`] if the peer agreed to what was not proposed.
pub(crate) fn accept(
    sa: &mut IkeSa,
    shared: &mut Shared,
    mut creation: Creation,
    contents: Contents<'_>,
    replaces: Option<u32>,
    judge: impl FnOnce(&Created) -> bool,
    now: Instant,
) -> Result<Accepted, Violation> {
    let agreed = match creation.agreed.take() {
        Some(agreed) => agree_further(agreed, contents)?,
        None => {
            let mut agreed = read_agreement(sa, shared, &creation, contents)?;
            if let Some(method) = agreed.suite.additional {
                let link = contents.notify(notify::ADDITIONAL_KEY_EXCHANGE);
                let link = link.ok_or(Violation::Missing("ADDITIONAL_KEY_EXCHANGE"))?.data.clone();
                let exchange = KeyExchange::initiate(method, &mut shared.rng);
                let payloads = further_payloads(&exchange, link);
                agreed.additional = Some(exchange);
                creation.agreed = Some(agreed);
                return Ok(Accepted::Continue(Box::new(creation), payloads));
            }
            agreed
        }
    };
    let Agreed { suite, spi_out, nonce_r, secrets, ts_local, ts_remote, .. } = agreed;
    let created = Created { spi_in: creation.spi_in, nonce_i: creation.nonce, nonce_r };
    let agreement = Agreement {
        spi_in: created.spi_in,
        spi_out,
        suite,
        ts_local,
        ts_remote,
        nonce_i: &created.nonce_i,
        nonce_r: &created.nonce_r,
        secrets: &secrets,
        initiator: true,
        replaces,
        eligible: judge(&created),
        from_ike_auth: false,
        only: creation.only,
    };
    install(sa, shared, agreement, now);
    Ok(Accepted::Done)
}

/// KE and the responder's link, as it was received, of an IKE_FOLLOWUP_KE request.
pub(crate) fn further_payloads(exchange: &KeyExchange, link: Vec<u8>) -> Vec<Payload> {
    let link = Payload::Notify(Notify::new(notify::ADDITIONAL_KEY_EXCHANGE, link));
    vec![key_exchange_payload(exchange), link]
}

fn agree_further(mut agreed: Agreed, contents: Contents<'_>) -> Result<Agreed, Violation> {
    let exchange = agreed.additional.take().ok_or(Violation::Unexpected("IKE_FOLLOWUP_KE"))?;
    agreed.secrets.push(complete_exchange(&exchange, contents)?);
    Ok(agreed)
}

/// The secret of our half and the responder's KE payload.
///
/// # Errors
/// [`Violation`] if there is no KE payload, or one of another method.
pub(crate) fn complete_exchange(
    exchange: &KeyExchange,
    contents: Contents<'_>,
) -> Result<SecretBytes, Violation> {
    let (method, public) = contents.key_exchange()?.ok_or(Violation::Missing("KE"))?;
    if method != exchange.method().code() {
        return Err(Violation::NotOffered("a key exchange method"));
    }
    exchange.complete(public)
}

fn read_agreement(
    sa: &IkeSa,
    shared: &Shared,
    creation: &Creation,
    contents: Contents<'_>,
) -> Result<Agreed, Violation> {
    let policy = policy(sa, shared).ok_or(Violation::Missing("connection"))?;
    let sent = creation.exchange.as_ref().map(|exchange| exchange.method().code());
    let choice = policy.confirm(contents.sa()?, sent)?;
    let spi_out = spi_of(&choice.spi).ok_or(Violation::Forbidden("ESP SPI"))?;
    let nonce_r = contents.nonce()?.to_vec();
    let secrets = match (choice.suite.method, &creation.exchange) {
        (None, _) => vec![],
        (Some(_), Some(exchange)) => vec![complete_exchange(exchange, contents)?],
        (Some(_), None) => return Err(Violation::NotOffered("a key exchange")),
    };
    let (ts_local, ts_remote) = (contents.ts_initiator()?, contents.ts_responder()?);
    let empty = ts_local.is_empty() || ts_remote.is_empty();
    if empty || !covers(&creation.ts_local, ts_local) || !covers(&creation.ts_remote, ts_remote) {
        return Err(Violation::NotOffered("traffic selectors"));
    }
    let (ts_local, ts_remote) = (ts_local.to_vec(), ts_remote.to_vec());
    Ok(Agreed { suite: choice.suite, spi_out, nonce_r, secrets, ts_local, ts_remote, additional: None })
}

/// The method that INVALID_KE_PAYLOAD asks for, if it is one of these and not the one that was refused.
//= RFC 7296 §1.2, §1.3: the initiator retries with the group named there.
pub(crate) fn requested_method(
    error: &Notify,
    methods: &[Method],
    refused: Option<&KeyExchange>,
) -> Option<Method> {
    if error.kind != notify::INVALID_KE_PAYLOAD {
        return None;
    }
    let wanted = u16::from_be_bytes(error.data.as_slice().try_into().ok()?);
    let method = methods.iter().copied().find(|method| method.code() == wanted)?;
    (Some(method) != refused.map(KeyExchange::method)).then_some(method)
}

/// The same for a refused CHILD SA.
pub(crate) fn other_method(
    sa: &IkeSa,
    shared: &Shared,
    error: &Notify,
    refused: Option<&KeyExchange>,
) -> Option<Method> {
    requested_method(error, &policy(sa, shared)?.methods, refused)
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

/// Creates a CHILD SA at the peer's request, within the given selectors (local, remote), or half of it if
/// an additional key exchange follows.
///
/// # Errors
/// [`Refusal`] with the notification of the RFC.
pub(crate) fn create(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    (local_limit, remote_limit): (&[TrafficSelector], &[TrafficSelector]),
    replaces: Option<u32>,
    now: Instant,
) -> Result<(Vec<Payload>, Vec<u8>), Refusal> {
    if sa.children.len() >= shared.config.limits.children {
        return Err(Refusal::with(notify::NO_ADDITIONAL_SAS));
    }
    if sa.following.is_some() {
        return Err(Refusal::with(notify::TEMPORARY_FAILURE));
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
    let lowest_nonce = created.lowest_nonce().to_vec();
    let only = replaces.is_none() && !contents.has_notify(notify::SA_RESOURCE_INFO);
    let suite = choice.suite;
    let half = HalfMade { created, suite, replaces, only, spi_out, secrets, ts_local, ts_remote };
    if choice.suite.additional.is_some() {
        payloads.push(ike_followup_ke::expect(sa, shared, Following::Child(Box::new(half)), now));
    } else {
        install_half(sa, shared, half, now);
    }
    Ok((payloads, lowest_nonce))
}

/// Completes a CHILD SA with the secret of its additional key exchange.
pub(crate) fn complete(
    sa: &mut IkeSa,
    shared: &mut Shared,
    mut half: HalfMade,
    secret: SecretBytes,
    now: Instant,
) {
    half.secrets.push(secret);
    install_half(sa, shared, half, now);
}

fn install_half(sa: &mut IkeSa, shared: &mut Shared, half: HalfMade, now: Instant) {
    let agreement = Agreement {
        spi_in: half.created.spi_in,
        spi_out: half.spi_out,
        suite: half.suite,
        ts_local: half.ts_local,
        ts_remote: half.ts_remote,
        nonce_i: &half.created.nonce_i,
        nonce_r: &half.created.nonce_r,
        secrets: &half.secrets,
        initiator: false,
        replaces: half.replaces,
        eligible: true,
        from_ike_auth: false,
        only: half.only,
    };
    install(sa, shared, agreement, now);
}

/// Our half of the key exchange that was chosen, and its secret.
///
/// # Errors
/// INVALID_KE_PAYLOAD if the peer sent a value for another method, or none.
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
