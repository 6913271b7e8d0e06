//! IKE_INTERMEDIATE: an additional key exchange before IKE_AUTH (RFC 9242, RFC 9370 §2.2.2).

use std::time::Instant;

use crate::error::Violation;
use crate::event::DialFailure;
use crate::exchange::child_negotiation::key_exchange_payload;
use crate::exchange::ike_sa_init::{Responded, Transcript};
use crate::exchange::{Contents, Pending, Refusal, ike_auth};
use crate::fragmentation::OpenedMessage;
use crate::ike_sa::{IkeSa, Secured};
use crate::key_exchange::{KeyExchange, Method};
use crate::key_schedule::IkeKeys;
use crate::secret::SecretBytes;
use crate::shared::Shared;
use crate::wire::registry::payload as kind;
use crate::wire::{ExchangeType, HEADER_LEN, Header, Payload, encode_chain};

/// What the initiator keeps until the response.
pub(crate) struct Initiation {
    transcript: Transcript,
    exchange: KeyExchange,
    /// What our IntAuth covers.
    authenticated: Vec<u8>,
}

/// Sends the request of a freshly keyed IKE SA.
pub(crate) fn start(
    sa: &mut IkeSa,
    shared: &mut Shared,
    transcript: Transcript,
    method: Method,
    now: Instant,
) {
    let exchange = KeyExchange::initiate(method, &mut shared.rng);
    let payloads = [key_exchange_payload(&exchange)];
    let header = sa.header(ExchangeType::IkeIntermediate, false, sa.window.next_request());
    let authenticated = authenticated_octets(&header, &payloads);
    let pending = Pending::IkeIntermediate(Box::new(Initiation { transcript, exchange, authenticated }));
    sa.send_request(shared, ExchangeType::IkeIntermediate, &payloads, pending, now);
}

/// IntAuth_A | IntAuth_P: header, generic header of SK, and the payloads inside, with the lengths that they
/// would have without IV, padding and ICV, and without fragmentation.
//= RFC 9242 §3.3.2
fn authenticated_octets(header: &Header, payloads: &[Payload]) -> Vec<u8> {
    let mut plaintext = Vec::new();
    encode_chain(payloads, &mut plaintext);
    sealed_form(header, payloads.first().map_or(kind::NONE, Payload::kind), &plaintext)
}

fn sealed_form(header: &Header, first_inner: u8, plaintext: &[u8]) -> Vec<u8> {
    let payload_len = 4 + plaintext.len();
    let length = u32::try_from(HEADER_LEN + payload_len).unwrap_or(u32::MAX);
    let mut octets = Vec::with_capacity(HEADER_LEN + payload_len);
    Header { first_payload: kind::ENCRYPTED, length, ..*header }.encode(&mut octets);
    let payload_len = u16::try_from(payload_len).unwrap_or(u16::MAX).to_be_bytes();
    octets.extend_from_slice(&[first_inner, 0, payload_len[0], payload_len[1]]);
    octets.extend_from_slice(plaintext);
    octets
}

/// IntAuth of RFC 9242 for AUTH: both directions, then the message ID of IKE_AUTH.
fn int_auth(keys: &IkeKeys, from_initiator: &[u8], from_responder: &[u8], auth_id: u32) -> Vec<u8> {
    let of_initiator = keys.prf.compute(keys.sk_pi.expose(), &[from_initiator]);
    let of_responder = keys.prf.compute(keys.sk_pr.expose(), &[from_responder]);
    [of_initiator.expose(), of_responder.expose(), &auth_id.to_be_bytes()].concat()
}

/// Keys after the exchange.
fn mix(
    secured: &Secured,
    transcript: &Transcript,
    secret: &SecretBytes,
    spis: (u64, u64),
    initiator: bool,
) -> Secured {
    let keys = secured.keys.mixed(secret, transcript.freshness(spis));
    Secured::new(secured.suite, keys, initiator)
}

/// Takes the response and goes on to IKE_AUTH with the new keys.
///
/// # Errors
/// [`Violation`] if the response breaks the protocol.
pub(crate) fn finish(
    sa: &mut IkeSa,
    shared: &mut Shared,
    initiation: Initiation,
    (header, opened): (&Header, &OpenedMessage),
    contents: Contents<'_>,
    now: Instant,
) -> Result<(), Violation> {
    if let Some(error) = contents.error() {
        ike_auth::abandon(sa, shared, DialFailure::Refused(error.kind), now);
        return Ok(());
    }
    let Initiation { mut transcript, exchange, authenticated } = initiation;
    let (method, public) = contents.key_exchange()?.ok_or(Violation::Missing("KE"))?;
    if method != exchange.method().code() {
        return Err(Violation::NotOffered("a key exchange method"));
    }
    let secret = exchange.complete(public)?;
    let Some(secured) = &sa.secured else { return Err(Violation::Unexpected("IKE_INTERMEDIATE")) };
    let theirs = sealed_form(header, opened.first_inner, &opened.plaintext);
    transcript.intermediate = int_auth(&secured.keys, &authenticated, &theirs, sa.window.next_request());
    let spis = sa.spis();
    sa.secured = Some(mix(secured, &transcript, &secret, (spis.initiator, spis.responder), true));
    sa.log_keys(shared);
    ike_auth::start(sa, shared, transcript, now);
    Ok(())
}

/// Answers the request. The new keys count from the next message on.
///
/// # Errors
/// [`Refusal`] if the request breaks the protocol.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    responded: &mut Responded,
    method: Method,
    (header, opened): (&Header, &OpenedMessage),
    contents: Contents<'_>,
) -> Result<Vec<Payload>, Refusal> {
    let (sent, public) = contents.key_exchange()?.ok_or(Violation::Missing("KE"))?;
    if sent != method.code() {
        return Err(Violation::NotOffered("a key exchange method").into());
    }
    let exchange = KeyExchange::respond(method, public, &mut shared.rng)?;
    let secret = exchange.complete(public)?;
    let Some(secured) = &sa.secured else { return Err(Violation::Unexpected("IKE_INTERMEDIATE").into()) };
    let payloads = vec![key_exchange_payload(&exchange)];
    let theirs = sealed_form(header, opened.first_inner, &opened.plaintext);
    let response = sa.header(ExchangeType::IkeIntermediate, true, header.message_id);
    let ours = authenticated_octets(&response, &payloads);
    let auth_id = header.message_id.wrapping_add(1);
    responded.transcript.intermediate = int_auth(&secured.keys, &theirs, &ours, auth_id);
    let spis = sa.spis();
    let next = mix(secured, &responded.transcript, &secret, (spis.initiator, spis.responder), false);
    sa.next_secured = Some(next);
    Ok(payloads)
}
