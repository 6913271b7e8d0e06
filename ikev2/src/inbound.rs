//! A datagram that belongs to an existing IKE SA: decrypt, order, dispatch, answer.

use std::time::Instant;

use crate::child_sa::sure_at;
use crate::config::Path;
use crate::error::{Malformed, Violation};
use crate::event::{DialFailure, IkeDownReason, Rejection};
use crate::exchange::{self, Contents, Refusal, ike_auth, ike_intermediate, ike_sa_init};
use crate::fragmentation::{OpenedMessage, open_message};
use crate::ike_sa::{IkeSa, Phase};
use crate::lost_state;
use crate::request_window::Arrival;
use crate::retransmission::Due;
use crate::shared::Shared;
use crate::wire::{ExchangeType, Header, Message, Payload, decode_chain};

/// Datagrams of one half-open SA that wait for its key exchange: the fragments of a message.
const MAX_WAITING: usize = 8;

/// Takes a datagram whose SPIs name `sa`.
pub(crate) fn handle(
    sa: &mut IkeSa,
    shared: &mut Shared,
    path: Path,
    header: &Header,
    datagram: &[u8],
    now: Instant,
) {
    let Ok(exchange) = header.exchange() else {
        // An unknown exchange type cannot be answered before it is authenticated, and is not worth it then.
        return shared.reject(path, Rejection::Violation(Violation::Unexpected("exchange type")), now);
    };
    //= RFC 7296 §2.2: the flag tells who is the original initiator, and must fit.
    if header.initiator == sa.initiator {
        return shared.reject(path, Rejection::Violation(Violation::Forbidden("initiator flag")), now);
    }
    match (exchange, header.response) {
        (ExchangeType::IkeSaInit, true) => {
            let expected = sa.window.outstanding() == Some(0) && header.message_id == 0;
            if expected && matches!(sa.pending, Some(exchange::Pending::IkeSaInit(_))) {
                ike_sa_init::finish(sa, shared, path, datagram, now);
            }
        }
        (ExchangeType::IkeSaInit, false) => {}
        (_, false) => handle_request(sa, shared, path, header, exchange, datagram, now),
        (_, true) => handle_response(sa, shared, path, header, exchange, datagram, now),
    }
}

fn handle_request(
    sa: &mut IkeSa,
    shared: &mut Shared,
    path: Path,
    header: &Header,
    exchange: ExchangeType,
    datagram: &[u8],
    now: Instant,
) {
    match sa.window.arrival(header.message_id, datagram) {
        // Before our own handshake is through, the peer's requests wait; it will repeat them.
        Arrival::New if sa.is_closed() || matches!(sa.phase, Phase::Initiating) => return,
        Arrival::New => {}
        //= RFC 7296 §2.11: the answer goes to where the request came from.
        Arrival::Repeat(datagrams) => {
            postpone_switch(sa, shared, now);
            return shared.transmit(path, &datagrams);
        }
        Arrival::OutOfWindow => return shared.reject(path, Rejection::MessageId, now),
    }
    if sa.secured.is_none() && !compute_keys(sa, shared, path, datagram) {
        return;
    }
    let opened = match open(sa, header, datagram) {
        Ok(Some(opened)) => opened,
        Ok(None) => return,
        Err(malformed) => return shared.reject(path, Rejection::Malformed(malformed), now),
    };
    // From here on the sender is who shares the keys.
    sa.last_inbound = now;
    sa.proved = true;
    sa.arrived_on = path;
    follow(sa, shared, path);
    let response = decode_chain(opened.first_inner, &opened.plaintext)
        .map_err(Refusal::from)
        .and_then(|payloads| process(sa, shared, path, (header, exchange, &opened), &payloads, now));
    let fatal = matches!(&response, Err(refusal) if refusal.fatal);
    let payloads = response.unwrap_or_else(|refusal| vec![Payload::Notify(refusal.notify)]);
    //= RFC 7383 §2.6.1: a repeated request is known by its first fragment
    sa.send_response(shared, header, opened.first_fragment.as_deref().unwrap_or(datagram), path, &payloads);
    if let Some(secured) = sa.next_secured.take() {
        sa.secured = Some(secured);
        sa.log_keys(shared);
    }
    if let Some(reason) = sa.ending.take() {
        sa.close(shared, reason, now);
    } else if fatal {
        sa.close(shared, IkeDownReason::ProtocolError, now);
    }
}

/// The peer repeats a request, so it lacks our response: it does not have a new CHILD SA yet.
fn postpone_switch(sa: &mut IkeSa, shared: &Shared, now: Instant) {
    for child in &mut sa.children {
        if child.sure_at.is_some() {
            child.sure_at = Some(sure_at(&shared.config.timers, child.from_ike_auth, now));
        }
    }
}

fn process(
    sa: &mut IkeSa,
    shared: &mut Shared,
    path: Path,
    (header, exchange, opened): (&Header, ExchangeType, &OpenedMessage),
    payloads: &[Payload],
    now: Instant,
) -> Result<Vec<Payload>, Refusal> {
    if !sa.is_half_open() {
        // What was unsure before this request is sure after it: the peer sends it only once it has our
        // last response.
        let known: Vec<u32> =
            sa.children.iter().filter(|child| child.sure_at.is_some()).map(|child| child.spi_in).collect();
        let response = exchange::respond(sa, shared, exchange, payloads, now);
        sa.confirm_by_request(shared, &known);
        return response;
    }
    let Phase::HalfOpen(mut responded) = std::mem::replace(&mut sa.phase, Phase::Initiating) else {
        return Err(Violation::Unexpected("handshake").into());
    };
    let response = match (exchange, responded.awaited_method()) {
        (ExchangeType::IkeIntermediate, Some(method)) => {
            let response = ike_intermediate::respond(
                sa,
                shared,
                &mut responded,
                method,
                (header, opened),
                Contents(payloads),
            );
            sa.phase = Phase::HalfOpen(responded);
            return response;
        }
        (ExchangeType::IkeAuth, None) => ike_auth::respond(sa, shared, &responded, Contents(payloads), now),
        _ => {
            let violation = Violation::Unexpected("exchange before authentication");
            Err((violation.into(), Rejection::Violation(violation)))
        }
    };
    response.map_err(|(refusal, reason)| {
        sa.phase = Phase::HalfOpen(responded);
        shared.reject(path, reason, now);
        refusal
    })
}

fn handle_response(
    sa: &mut IkeSa,
    shared: &mut Shared,
    path: Path,
    header: &Header,
    exchange: ExchangeType,
    datagram: &[u8],
    now: Instant,
) {
    let expected = sa.pending.as_ref().map(exchange::exchange_of);
    if sa.window.outstanding() != Some(header.message_id) || expected != Some(exchange) {
        return shared.reject(path, Rejection::MessageId, now);
    }
    if lost_state::is_hint(datagram) {
        // A peer that never got our response to its rekey does not know the new SA yet: that is no restart.
        if sa.proved {
            sa.window.hinted();
        }
        return shared.reject(path, Rejection::UnknownSpi, now);
    }
    let opened = match open(sa, header, datagram) {
        Ok(Some(opened)) => opened,
        Ok(None) => return,
        Err(malformed) => return shared.reject(path, Rejection::Malformed(malformed), now),
    };
    sa.last_inbound = now;
    sa.proved = true;
    follow(sa, shared, path);
    if let Some(round_trip) = sa.window.completed(now) {
        sa.round_trip = Some(round_trip);
    }
    let Some(pending) = sa.pending.take() else { return };
    let attempt = matches!(pending, exchange::Pending::IkeAuth(_) | exchange::Pending::IkeIntermediate(_));
    let result = match decode_chain(opened.first_inner, &opened.plaintext) {
        Ok(payloads) => {
            let result = exchange::finish(sa, shared, pending, (header, &opened), &payloads, now);
            result.map_err(|violation| (Rejection::Violation(violation), DialFailure::Violation(violation)))
        }
        Err(malformed) => Err((Rejection::Malformed(malformed), DialFailure::Malformed(malformed))),
    };
    match result {
        Ok(()) if sa.is_established() => sa.confirm_by_response(shared),
        Ok(()) => {}
        Err((reason, failure)) => {
            shared.reject(path, reason, now);
            if attempt {
                ike_auth::abandon(sa, shared, failure, now);
            } else {
                //= RFC 7296 §2.21.3
                sa.close(shared, IkeDownReason::ProtocolError, now);
            }
        }
    }
}

/// Derives the keys of a half-open SA, now or when the driver is done with its part: then the datagram waits.
/// False if there is nothing to open it with.
fn compute_keys(sa: &mut IkeSa, shared: &mut Shared, path: Path, datagram: &[u8]) -> bool {
    let (spi, spis) = (sa.local_spi, sa.spis());
    let Phase::HalfOpen(responded) = &mut sa.phase else { return false };
    let pending = responded.take_pending(spi);
    if shared.config.defer_key_exchange {
        if sa.waiting.len() < MAX_WAITING {
            sa.waiting.push((path, datagram.to_vec()));
        }
        shared.work.extend(pending);
        return false;
    }
    let Some(Ok(secret)) = pending.map(|pending| pending.run().secret) else { return false };
    sa.secured = Some(responded.secure(&secret, (spis.initiator, spis.responder)));
    true
}

fn open(sa: &mut IkeSa, header: &Header, datagram: &[u8]) -> Result<Option<OpenedMessage>, Malformed> {
    let Some(secured) = &sa.secured else { return Err(Malformed::Value("message before key exchange")) };
    let message = Message::decode(datagram)?;
    let reassembly = if header.response { &mut sa.fragments.1 } else { &mut sa.fragments.0 };
    open_message(&secured.inbound, reassembly, header.message_id, datagram, &message.payloads)
}

/// An authenticated message that is the newest of its kind came from here: so is the peer.
//= RFC 7296 §2.23: dynamic update of the peer's address.
fn follow(sa: &mut IkeSa, shared: &mut Shared, path: Path) {
    if sa.path == path {
        return;
    }
    //= RFC 4555 §3.8: with MOBIKE and without NAT, only UPDATE_SA_ADDRESSES moves anybody.
    if sa.peer.mobike && !sa.peer.nat.remote {
        return;
    }
    let moved = sa.path.remote != path.remote;
    sa.path = path;
    if moved && sa.is_established() {
        sa.tell_path(shared);
    }
}

/// Repeats the outstanding request if it is time, or gives the peer up.
pub(crate) fn retransmit(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    let (due, datagrams) = sa.window.poll(&shared.config.timers, &mut shared.rng, now);
    match due {
        Due::Wait => {}
        Due::Resend => {
            let datagrams = datagrams.to_vec();
            shared.transmit(sa.path, &datagrams);
        }
        Due::GiveUp => give_up(sa, shared, now),
    }
}

fn give_up(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    match &sa.pending {
        Some(exchange::Pending::IkeSaInit(initiation)) => {
            let failure = initiation.failure();
            ike_auth::abandon(sa, shared, failure, now);
        }
        Some(exchange::Pending::IkeAuth(_)) => {
            ike_auth::abandon(sa, shared, DialFailure::NoAnswerToAuth, now)
        }
        Some(exchange::Pending::DeleteIke(reason)) => {
            let reason = *reason;
            sa.close(shared, reason, now);
        }
        _ => sa.close(shared, IkeDownReason::PeerSilent, now),
    }
}
