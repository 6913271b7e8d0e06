//! IKE_SA_INIT: algorithms, nonces and a key exchange, all in the clear (RFC 7296 §1.2).

use std::time::Instant;

use crate::admission::Admitted;
use crate::config::{Config, ConnectionId, Path};
use crate::error::{Unsupported, Violation};
use crate::event::{DialFailure, Rejection};
use crate::exchange::child_negotiation::{key_exchange_payload, requested_method};
use crate::exchange::{Contents, Pending, ike_auth, ike_intermediate, proof};
use crate::ike_sa::{IkeSa, PeerFacts, Phase, Secured};
use crate::key_exchange::{KeyExchange, Method};
use crate::key_schedule::{Freshness, IkeKeys, Prf};
use crate::nat_detection;
use crate::pending_key_exchange::PendingKeyExchange;
use crate::proposal::{IkePolicy, IkeSuite};
use crate::secret::SecretBytes;
use crate::shared::Shared;
use crate::signature::{HashSet, SignatureHash};
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Header, Message, Notify, Payload};

/// Answers that make us start over (COOKIE, INVALID_KE_PAYLOAD) before we take the peer for hostile.
const MAX_RESTARTS: u32 = 6;

/// What the initiator keeps until the response.
pub(crate) struct Initiation {
    nonce: Vec<u8>,
    exchange: KeyExchange,
    cookie: Option<Vec<u8>>,
    restarts: u32,
    /// An unauthenticated error that the peer, or somebody in its name, sent.
    noted: Option<u16>,
    request: Vec<u8>,
}

impl Initiation {
    /// Why the attempt failed when no usable answer came.
    pub(crate) fn failure(&self) -> DialFailure {
        self.noted.map_or(DialFailure::NoAnswer, DialFailure::Refused)
    }
}

/// What both sides keep for AUTH.
pub(crate) struct Transcript {
    /// IKE_SA_INIT request as it was on the wire.
    pub(crate) request: Vec<u8>,
    /// IKE_SA_INIT response as it was on the wire.
    pub(crate) response: Vec<u8>,
    pub(crate) nonce_i: Vec<u8>,
    pub(crate) nonce_r: Vec<u8>,
    /// IntAuth of RFC 9242; empty without IKE_INTERMEDIATE.
    pub(crate) intermediate: Vec<u8>,
}

/// What the responder keeps until an encrypted message shows that the initiator is serious.
pub(crate) struct Responded {
    pub(crate) transcript: Transcript,
    suite: IkeSuite,
    /// Our half, until it is used.
    exchange: Option<KeyExchange>,
    peer_public: Vec<u8>,
}

impl Responded {
    /// The method of the IKE_INTERMEDIATE exchange that must come before IKE_AUTH, if one is still missing.
    pub(crate) fn awaited_method(&self) -> Option<Method> {
        self.suite.additional.filter(|_| self.transcript.intermediate.is_empty())
    }
}

/// What we accept for IKE SAs.
pub(crate) fn policy(config: &Config) -> IkePolicy {
    IkePolicy {
        ciphers: config.ike_ciphers.clone(),
        prfs: vec![Prf::HmacSha256, Prf::HmacSha384, Prf::HmacSha512],
        methods: config.key_exchange_methods.clone(),
        additional: config.additional_methods.clone(),
    }
}

/// What we offer when we dial.
fn offered(config: &Config) -> IkePolicy {
    let mut policy = policy(config);
    if !config.offer_hybrid {
        policy.additional.clear();
    }
    policy
}

/// Starts a new IKE SA towards the connection's remote address.
pub(crate) fn initiate(shared: &mut Shared, id: ConnectionId, now: Instant) -> Option<IkeSa> {
    let path = shared.connections.get(&id)?.dial_path()?;
    let mut sa = IkeSa::new(shared.ike_spi(), true, path, now);
    sa.connection = Some(id);
    let nonce = shared.nonce();
    let method = policy(&shared.config).methods.first().copied()?;
    let exchange = KeyExchange::initiate(method, &mut shared.rng);
    let initiation =
        Initiation { nonce, exchange, cookie: None, restarts: 0, noted: None, request: Vec::new() };
    send(&mut sa, shared, initiation, now);
    Some(sa)
}

fn send(sa: &mut IkeSa, shared: &mut Shared, mut initiation: Initiation, now: Instant) {
    let mut payloads = Vec::new();
    //= RFC 7296 §2.6: the COOKIE notification MUST be the first payload.
    payloads
        .extend(initiation.cookie.clone().map(|cookie| Payload::Notify(Notify::new(notify::COOKIE, cookie))));
    payloads.push(Payload::SecurityAssociation(offered(&shared.config).offer(&[])));
    payloads.push(key_exchange_payload(&initiation.exchange));
    payloads.push(Payload::Nonce(initiation.nonce.clone()));
    payloads.extend(nat_detection::notifications((sa.local_spi, 0), &sa.path, &mut shared.rng));
    payloads.extend(capabilities(true, !offered(&shared.config).additional.is_empty()));
    let header = sa.header(ExchangeType::IkeSaInit, false, 0);
    let datagram = Message { header, payloads }.encode();
    initiation.request.clone_from(&datagram);
    let datagrams = vec![datagram];
    shared.transmit(sa.path, &datagrams);
    sa.window.sent(0, datagrams, &shared.config.timers, &mut shared.rng, now);
    sa.pending = Some(Pending::IkeSaInit(Box::new(initiation)));
}

/// What both sides announce.
fn capabilities(fragmentation: bool, intermediate: bool) -> Vec<Payload> {
    let hashes = SignatureHash::ALL.iter().flat_map(|hash| hash.code().to_be_bytes()).collect();
    let mut notifies = Vec::new();
    if fragmentation {
        notifies.push(Notify::new(notify::FRAGMENTATION_SUPPORTED, vec![]));
    }
    notifies.push(Notify::new(notify::SIGNATURE_HASH_ALGORITHMS, hashes));
    if intermediate {
        notifies.push(Notify::new(notify::INTERMEDIATE_EXCHANGE_SUPPORTED, vec![]));
    }
    notifies.into_iter().map(Payload::Notify).collect()
}

fn peer_facts(contents: Contents<'_>, spis: (u64, u64), path: &Path) -> PeerFacts {
    let hashes = contents.notify(notify::SIGNATURE_HASH_ALGORITHMS).map_or(&[][..], |notify| &notify.data);
    PeerFacts {
        ours: false,
        nat: nat_detection::evaluate(contents.notifies(), spis, path),
        fragmentation: contents.has_notify(notify::FRAGMENTATION_SUPPORTED),
        signature_hashes: HashSet::parse(hashes),
        childless: contents.has_notify(notify::CHILDLESS_IKEV2_SUPPORTED),
        mobike: false,
        we_began: false,
    }
}

/// Answers an admitted request. Refusals are stateless.
pub(crate) fn respond(admitted: Admitted<'_>, shared: &mut Shared, now: Instant) -> Option<IkeSa> {
    let Admitted { path, message, datagram } = admitted;
    match accept(path, &message, datagram, shared, now) {
        Ok(sa) => Some(sa),
        Err((notify, reason)) => {
            let header = Header { response: true, initiator: false, ..message.header };
            let refusal = Message { header, payloads: vec![Payload::Notify(notify)] };
            shared.transmit(path, &[refusal.encode()]);
            shared.reject(path, reason, now);
            None
        }
    }
}

type Refused = (Notify, Rejection);

fn accept(
    path: Path,
    message: &Message,
    datagram: &[u8],
    shared: &mut Shared,
    now: Instant,
) -> Result<IkeSa, Refused> {
    let syntax = |violation| (Notify::new(notify::INVALID_SYNTAX, vec![]), Rejection::Violation(violation));
    let contents = Contents(&message.payloads);
    let (method, peer_public) =
        contents.key_exchange().and_then(|ke| ke.ok_or(Violation::Missing("KE"))).map_err(syntax)?;
    let nonce_i = contents.nonce().map_err(syntax)?;
    let mut policy = policy(&shared.config);
    if !contents.has_notify(notify::INTERMEDIATE_EXCHANGE_SUPPORTED) {
        //= RFC 9370 §2.2.1: additional key exchanges need IKE_INTERMEDIATE
        policy.additional.clear();
    }
    let choice = policy.select(contents.sa().map_err(syntax)?, Some(method)).ok_or((
        Notify::new(notify::NO_PROPOSAL_CHOSEN, vec![]),
        Rejection::Unsupported(Unsupported::Proposal),
    ))?;
    let wanted = choice.suite.method.code();
    if wanted != method {
        //= RFC 7296 §1.2: INVALID_KE_PAYLOAD with the group that the responder wants.
        let notify = Notify::new(notify::INVALID_KE_PAYLOAD, wanted.to_be_bytes().to_vec());
        return Err((notify, Rejection::Unsupported(Unsupported::KeyExchange(method))));
    }
    let exchange = KeyExchange::respond(choice.suite.method, peer_public, &mut shared.rng).map_err(syntax)?;
    let mut sa = IkeSa::new(shared.ike_spi(), false, path, now);
    sa.remote_spi = message.header.spi_i;
    sa.peer = peer_facts(contents, (sa.remote_spi, 0), &path);
    let nonce_r = shared.nonce();
    let mut payloads = vec![
        Payload::SecurityAssociation(vec![choice.proposal]),
        key_exchange_payload(&exchange),
        Payload::Nonce(nonce_r.clone()),
    ];
    payloads.extend(nat_detection::notifications((sa.remote_spi, sa.local_spi), &path, &mut shared.rng));
    payloads.extend(capabilities(sa.peer.fragmentation, choice.suite.additional.is_some()));
    payloads.push(Payload::Notify(Notify::new(notify::CHILDLESS_IKEV2_SUPPORTED, vec![])));
    payloads.extend(proof::request(shared.connections.values().map(|entry| &entry.config)));
    let response = Message { header: sa.header(ExchangeType::IkeSaInit, true, 0), payloads }.encode();
    shared.transmit(path, std::slice::from_ref(&response));
    sa.window.answered(0, datagram, vec![response.clone()]);
    let transcript = Transcript {
        request: datagram.to_vec(),
        response,
        nonce_i: nonce_i.to_vec(),
        nonce_r,
        intermediate: Vec::new(),
    };
    let responded = Responded {
        transcript,
        suite: choice.suite,
        exchange: Some(exchange),
        peer_public: peer_public.to_vec(),
    };
    sa.phase = Phase::HalfOpen(Box::new(responded));
    Ok(sa)
}

impl Responded {
    /// The expensive part of the key exchange, once; only an encrypted message leads here.
    //= RFC 7296 §2.6: no state, and no computation, before it is earned.
    pub(crate) fn take_pending(&mut self, spi: u64) -> Option<PendingKeyExchange> {
        let exchange = self.exchange.take()?;
        Some(PendingKeyExchange { spi, exchange, peer_public: std::mem::take(&mut self.peer_public) })
    }

    /// Keys from what came of it.
    pub(crate) fn secure(&self, secret: &SecretBytes, sa_spis: (u64, u64)) -> Secured {
        let fresh = self.transcript.freshness(sa_spis);
        Secured::new(self.suite, IkeKeys::initial(self.suite.prf, self.suite.cipher, secret, fresh), false)
    }
}

impl Transcript {
    pub(crate) fn freshness(&self, (spi_i, spi_r): (u64, u64)) -> Freshness<'_> {
        Freshness { nonce_i: &self.nonce_i, nonce_r: &self.nonce_r, spi_i, spi_r }
    }
}

/// Takes a response in the clear. What is not usable is noted at most: the request is still repeated, and
/// the real answer may come (RFC 7296 §2.21.1).
pub(crate) fn finish(sa: &mut IkeSa, shared: &mut Shared, path: Path, datagram: &[u8], now: Instant) {
    let message = match Message::decode(datagram) {
        Ok(message) => message,
        Err(malformed) => return shared.reject(path, Rejection::Malformed(malformed), now),
    };
    let Some(Pending::IkeSaInit(initiation)) = sa.pending.take() else { return };
    let contents = Contents(&message.payloads);
    if let Some(refusal) = contents.notify(notify::COOKIE).or_else(|| contents.error()) {
        restart(sa, shared, *initiation, refusal, now);
        return;
    }
    match accept_response(sa, shared, &initiation, &message, datagram, path) {
        Ok(transcript) => {
            sa.round_trip = sa.window.completed(now);
            sa.last_inbound = now;
            sa.log_keys(shared);
            match sa.secured.as_ref().and_then(|secured| secured.suite.additional) {
                Some(method) => ike_intermediate::start(sa, shared, transcript, method, now),
                None => ike_auth::start(sa, shared, transcript, now),
            }
        }
        Err(violation) => {
            sa.pending = Some(Pending::IkeSaInit(initiation));
            shared.reject(path, Rejection::Violation(violation), now);
        }
    }
}

/// COOKIE and INVALID_KE_PAYLOAD lead to another request with the same SPI, nonce and number.
fn restart(sa: &mut IkeSa, shared: &mut Shared, mut initiation: Initiation, refusal: &Notify, now: Instant) {
    let methods = policy(&shared.config).methods;
    let other = requested_method(refusal, &methods, Some(&initiation.exchange));
    let repeatable = initiation.restarts < MAX_RESTARTS;
    match refusal.kind {
        //= RFC 7296 §2.6: 1 to 64 octets
        notify::COOKIE if repeatable && (1..=64).contains(&refusal.data.len()) => {
            initiation.cookie = Some(refusal.data.clone());
        }
        _ => match other.filter(|_| repeatable) {
            Some(method) => initiation.exchange = KeyExchange::initiate(method, &mut shared.rng),
            None => {
                initiation.noted = Some(refusal.kind);
                sa.pending = Some(Pending::IkeSaInit(Box::new(initiation)));
                return;
            }
        },
    }
    initiation.restarts += 1;
    send(sa, shared, initiation, now);
}

fn accept_response(
    sa: &mut IkeSa,
    shared: &mut Shared,
    initiation: &Initiation,
    message: &Message,
    datagram: &[u8],
    path: Path,
) -> Result<Transcript, Violation> {
    let contents = Contents(&message.payloads);
    let spi_r = message.header.spi_r;
    if spi_r == 0 {
        return Err(Violation::Forbidden("responder SPI"));
    }
    let suite = offered(&shared.config).confirm(contents.sa()?)?.suite;
    let (method, public) = contents.key_exchange()?.ok_or(Violation::Missing("KE"))?;
    if method != initiation.exchange.method().code() || suite.method != initiation.exchange.method() {
        return Err(Violation::NotOffered("a key exchange method"));
    }
    if suite.additional.is_some() && !contents.has_notify(notify::INTERMEDIATE_EXCHANGE_SUPPORTED) {
        return Err(Violation::Missing("INTERMEDIATE_EXCHANGE_SUPPORTED"));
    }
    let nonce_r = contents.nonce()?.to_vec();
    let secret = initiation.exchange.complete(public)?;
    let transcript = Transcript {
        request: initiation.request.clone(),
        response: datagram.to_vec(),
        nonce_i: initiation.nonce.clone(),
        nonce_r,
        intermediate: Vec::new(),
    };
    sa.remote_spi = spi_r;
    sa.peer = peer_facts(contents, (sa.local_spi, spi_r), &path);
    let keys =
        IkeKeys::initial(suite.prf, suite.cipher, &secret, transcript.freshness((sa.local_spi, spi_r)));
    sa.secured = Some(Secured::new(suite, keys, true));
    float_ports(sa, path);
    Ok(transcript)
}

/// We always look as if behind a NAT, so a dialogue on port 500 moves to 4500 with IKE_AUTH.
//= RFC 7296 §2.23
fn float_ports(sa: &mut IkeSa, path: Path) {
    sa.path = path;
    if path.remote.port() == 500 {
        sa.path.remote.set_port(4500);
        if path.local.port() == 500 {
            sa.path.local.set_port(4500);
        }
    }
}
