//! What a stranger's IKE_SA_INIT request must pass before it becomes a message (RFC 7296 §2.6).
//!
//! [`Admitted`] can only be made here, and only it leads to a half-open IKE SA: cookie and limits cannot
//! be forgotten.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use crate::config::{Limits, Path};
use crate::cookie::CookieJar;
use crate::error::{Malformed, Violation};
use crate::event::Rejection;
use crate::shared::Shared;
use crate::wire::registry::notify;
use crate::wire::{Header, Message, Notify, Payload};

/// A request for a new IKE SA that may be answered.
pub(crate) struct Admitted<'a> {
    pub(crate) path: Path,
    pub(crate) message: Message,
    pub(crate) datagram: &'a [u8],
}

/// One half-open IKE SA in the count; handed back when it is no longer half-open.
pub(crate) struct Ticket {
    source: IpAddr,
}

/// Counts half-open IKE SAs and bakes cookies.
pub(crate) struct Admission {
    jar: CookieJar,
    total: usize,
    per_source: BTreeMap<IpAddr, usize>,
}

/// What becomes of a request.
pub(crate) enum Verdict<'a> {
    /// It may be processed.
    Admit(Box<Admitted<'a>>),
    /// Its sender must come back with this cookie.
    Challenge(Vec<u8>),
    /// Nothing is answered.
    Drop(Rejection),
    /// Refused with a notification.
    Refuse(Notify, Rejection),
}

impl Admission {
    pub(crate) fn new(shared: &mut Shared) -> Self {
        let jar = CookieJar::new(shared.config.limits.cookie_rotation, &mut shared.rng);
        Self { jar, total: 0, per_source: BTreeMap::new() }
    }

    /// Looks at an IKE_SA_INIT request.
    pub(crate) fn check<'a>(
        &mut self,
        shared: &mut Shared,
        path: Path,
        header: Header,
        datagram: &'a [u8],
        now: Instant,
    ) -> Verdict<'a> {
        //= RFC 7296 §2.2, §3.1: the first message has the initiator flag, no responder SPI, and ID 0.
        if !header.initiator || header.spi_r != 0 || header.spi_i == 0 || header.message_id != 0 {
            return Verdict::Drop(Rejection::Violation(Violation::Forbidden("header of IKE_SA_INIT")));
        }
        let limits = shared.config.limits;
        let from_source = self.per_source.get(&path.remote.ip()).copied().unwrap_or(0);
        if self.total >= limits.half_open || from_source >= limits.half_open_per_source {
            return Verdict::Drop(Rejection::HalfOpenLimit);
        }
        let message = match Message::decode(datagram) {
            Ok(message) => message,
            Err(malformed) => return refuse_malformed(malformed),
        };
        if self.is_loaded(&limits, from_source)
            && let Some(challenge) = self.challenge(shared, path, &message, now)
        {
            return challenge;
        }
        Verdict::Admit(Box::new(Admitted { path, message, datagram }))
    }

    fn is_loaded(&self, limits: &Limits, from_source: usize) -> bool {
        self.total >= limits.cookie_threshold || from_source >= limits.cookie_threshold_per_source
    }

    /// `None` if the request carries a good cookie. An unknown one counts as none.
    fn challenge<'a>(
        &mut self,
        shared: &mut Shared,
        path: Path,
        message: &Message,
        now: Instant,
    ) -> Option<Verdict<'a>> {
        let nonce = message.payloads.iter().find_map(|payload| match payload {
            Payload::Nonce(nonce) => Some(nonce.as_slice()),
            _ => None,
        });
        let Some(nonce) = nonce else {
            return Some(Verdict::Drop(Rejection::Violation(Violation::Missing("nonce"))));
        };
        let (spi_i, rng) = (message.header.spi_i, &mut shared.rng);
        let cookie = match message.payloads.first() {
            Some(Payload::Notify(notify)) if notify.kind == notify::COOKIE => Some(notify.data.as_slice()),
            _ => None,
        };
        let good = cookie.is_some_and(|cookie| self.jar.accepts(cookie, nonce, path.remote, spi_i, rng, now));
        (!good).then(|| Verdict::Challenge(self.jar.bake(nonce, path.remote, spi_i, rng, now)))
    }

    /// Counts a new half-open IKE SA.
    pub(crate) fn enter(&mut self, source: IpAddr) -> Ticket {
        self.total += 1;
        *self.per_source.entry(source).or_insert(0) += 1;
        Ticket { source }
    }

    /// It is half-open no more.
    pub(crate) fn leave(&mut self, ticket: &Ticket) {
        self.total = self.total.saturating_sub(1);
        if let Some(count) = self.per_source.get_mut(&ticket.source) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.per_source.remove(&ticket.source);
            }
        }
    }
}

/// Only what the RFC wants answered is answered.
fn refuse_malformed<'a>(malformed: Malformed) -> Verdict<'a> {
    let reason = Rejection::Malformed(malformed);
    match malformed {
        //= RFC 7296 §2.5
        Malformed::UnsupportedCritical(kind) => {
            Verdict::Refuse(Notify::new(notify::UNSUPPORTED_CRITICAL_PAYLOAD, vec![kind]), reason)
        }
        _ => Verdict::Drop(reason),
    }
}

/// A response in the clear to a request that no SA answers.
pub(crate) fn stateless_response(request: &Header, notify: Notify) -> Vec<u8> {
    let header = Header { response: true, initiator: !request.initiator, ..*request };
    Message { header, payloads: vec![Payload::Notify(notify)] }.encode()
}
