//! Peers that restarted and do not know our SAs any more, and what they say about it in the clear.
//!
//! Anybody can say so in their name. Such a hint leads to a liveness check at most, and makes us patient for
//! seconds instead of most of a minute while nothing authenticated answers (RFC 7296 §2.4, §2.21.4).

use std::time::{Duration, Instant};

use crate::admission::stateless_response;
use crate::config::Path;
use crate::endpoint::Endpoint;
use crate::ike_sa::Want;
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Header, Message, Notify, Payload};

/// Answers to unknown SPIs per second.
const ANSWERS_PER_SECOND: u32 = 5;
/// Searches for the SA of a hint per second.
const SEARCHES_PER_SECOND: u32 = 5;
/// Between two liveness checks of one SA that hints lead to.
const CHECK_INTERVAL: Duration = Duration::from_secs(20);

/// How much of something a second has seen.
#[derive(Default)]
pub(crate) struct PerSecond {
    began: Option<Instant>,
    count: u32,
}

impl PerSecond {
    fn allows(&mut self, limit: u32, now: Instant) -> bool {
        if self.began.is_none_or(|began| now >= began + Duration::from_secs(1)) {
            *self = Self { began: Some(now), count: 0 };
        }
        self.count += 1;
        self.count <= limit
    }
}

/// Budgets for what strangers may cause here.
#[derive(Default)]
pub(crate) struct Budgets {
    answers: PerSecond,
    searches: PerSecond,
}

/// Whether a response in the clear says that its sender does not know the IKE SA.
pub(crate) fn is_hint(datagram: &[u8]) -> bool {
    let message = Message::decode(datagram);
    message.is_ok_and(|message| {
        matches!(message.payloads.as_slice(), [Payload::Notify(notify)] if notify.kind == notify::INVALID_IKE_SPI)
    })
}

impl Endpoint {
    /// A message for no SA of ours: its sender may have lost its state, or we ours.
    pub(crate) fn handle_stray(&mut self, path: Path, header: &Header, datagram: &[u8], now: Instant) {
        if !header.response && header.exchange() != Ok(ExchangeType::Informational) {
            self.say_unknown(path, header, now);
        } else if !header.response {
            match Message::decode(datagram).map(|message| message.payloads) {
                Ok(payloads)
                    if !matches!(
                        payloads.last(),
                        Some(Payload::Encrypted(_) | Payload::EncryptedFragment(_))
                    ) =>
                {
                    self.heed(&payloads, now);
                }
                _ => self.say_unknown(path, header, now),
            }
        }
    }

    //= RFC 7296 §2.21: INVALID_IKE_SPI in a response with the SPIs and the number of the request
    fn say_unknown(&mut self, path: Path, header: &Header, now: Instant) {
        if self.budgets.answers.allows(ANSWERS_PER_SECOND, now) {
            let response = stateless_response(header, Notify::new(notify::INVALID_IKE_SPI, vec![]));
            self.shared.transmit(path, &[response]);
        }
    }

    /// INVALID_SPI outside of any IKE SA: somebody does not know the ESP SA that we send on.
    //= RFC 7296 §1.5
    fn heed(&mut self, payloads: &[Payload], now: Instant) {
        let [Payload::Notify(hint)] = payloads else { return };
        let Ok(spi) = <[u8; 4]>::try_from(hint.data.as_slice()).map(u32::from_be_bytes) else { return };
        if hint.kind != notify::INVALID_SPI || !self.budgets.searches.allows(SEARCHES_PER_SECOND, now) {
            return;
        }
        let sa = self
            .sas
            .values_mut()
            .find(|sa| sa.is_established() && sa.children.iter().any(|child| child.spi_out == spi));
        let Some(sa) = sa else { return };
        if sa.hinted.is_some_and(|last| now < last + CHECK_INTERVAL) {
            return;
        }
        sa.hinted = Some(now);
        sa.want(Want::Liveness, None);
        let spi = sa.local_spi;
        self.touch(spi);
    }

    /// A packet came on an ESP SPI that we do not know: its sender is told, at a limited rate.
    pub fn unknown_esp_spi(&mut self, path: Path, spi: u32, now: Instant) {
        if self.budgets.answers.allows(ANSWERS_PER_SECOND, now) {
            let header = Header::new((self.shared.ike_spi(), 0), ExchangeType::Informational, true, false, 0);
            let hint = Payload::Notify(Notify::new(notify::INVALID_SPI, spi.to_be_bytes().to_vec()));
            self.shared.transmit(path, &[Message { header, payloads: vec![hint] }.encode()]);
        }
    }
}
