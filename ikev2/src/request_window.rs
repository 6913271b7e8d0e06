//! Message IDs: one request outstanding each way, responses kept for repetition (RFC 7296 §2.1-2.3).

use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

use crate::config::Timers;
use crate::retransmission::{Due, Retransmission};

/// Copies of a request that were answered with nothing but hints before the peer counts as restarted.
const HINTS_BELIEVED: u32 = 3;

/// Both directions of one IKE SA.
pub(crate) struct RequestWindow {
    next_request: u32,
    outstanding: Option<Outstanding>,
    next_expected: u32,
    answered: Option<Answered>,
}

struct Outstanding {
    id: u32,
    datagrams: Vec<Vec<u8>>,
    retransmission: Retransmission,
    sent_at: Instant,
    /// Copies that somebody answered in the clear with not knowing the SA.
    hints: u32,
}

struct Answered {
    id: u32,
    request: [u8; 32],
    datagrams: Vec<Vec<u8>>,
}

/// What a request's message ID means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// To be processed.
    New,
    /// Answered before; here is the answer again.
    Repeat(Vec<Vec<u8>>),
    /// Older, or too new for a window of one, or different from what was answered under that ID.
    OutOfWindow,
}

impl RequestWindow {
    /// `next_request` and `next_expected` are 0 for a fresh SA; IKE_SA_INIT uses number 0.
    pub(crate) fn new() -> Self {
        Self { next_request: 0, outstanding: None, next_expected: 0, answered: None }
    }

    /// Whether a request may be sent.
    pub(crate) fn is_free(&self) -> bool {
        self.outstanding.is_none()
    }

    /// ID of the next request.
    pub(crate) fn next_request(&self) -> u32 {
        self.next_request
    }

    /// ID of the outstanding request.
    pub(crate) fn outstanding(&self) -> Option<u32> {
        self.outstanding.as_ref().map(|outstanding| outstanding.id)
    }

    /// A request left with the number of [`Self::next_request`]. Replaces an outstanding one, which only
    /// IKE_SA_INIT with a cookie (same number) and a last DELETE may do.
    pub(crate) fn sent(
        &mut self,
        id: u32,
        datagrams: Vec<Vec<u8>>,
        timers: &Timers,
        rng: &mut ChaCha20Rng,
        now: Instant,
    ) {
        let retransmission = Retransmission::start(timers, rng, now);
        self.outstanding = Some(Outstanding { id, datagrams, retransmission, sent_at: now, hints: 0 });
        self.next_request = id + 1;
    }

    /// The response to the outstanding request was accepted. Returns the round-trip time, unless the
    /// request was repeated (then it is unknown which copy was answered).
    pub(crate) fn completed(&mut self, now: Instant) -> Option<Duration> {
        let outstanding = self.outstanding.take()?;
        (outstanding.retransmission.repeats() == 0).then(|| now - outstanding.sent_at)
    }

    /// Somebody says that the peer does not know the SA. Counts once for each copy that was sent.
    pub(crate) fn hinted(&mut self) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.hints = (outstanding.hints + 1).min(outstanding.retransmission.repeats() + 1);
        }
    }

    /// Stops waiting for a response.
    pub(crate) fn abandon(&mut self) {
        self.outstanding = None;
    }

    /// When the outstanding request must be looked at again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.outstanding.as_ref().map(|outstanding| outstanding.retransmission.due())
    }

    /// What is to be done about the outstanding request; with its datagrams if they are to be sent again.
    pub(crate) fn poll(&mut self, timers: &Timers, rng: &mut ChaCha20Rng, now: Instant) -> (Due, &[Vec<u8>]) {
        match &mut self.outstanding {
            Some(outstanding) => {
                let due = outstanding.retransmission.poll(timers, rng, now);
                //= RFC 7296 §2.4: dead is who left repeated attempts unanswered; hints only shorten the wait.
                let lost = outstanding.hints >= HINTS_BELIEVED && due == Due::Resend;
                (if lost { Due::GiveUp } else { due }, &outstanding.datagrams)
            }
            None => (Due::Wait, &[]),
        }
    }

    /// Looks at the ID of a request before it is decrypted.
    //= RFC 7296 §2.1: a repeated request is answered with the same response, and not processed again.
    pub(crate) fn arrival(&self, id: u32, datagram: &[u8]) -> Arrival {
        if id == self.next_expected {
            return Arrival::New;
        }
        match &self.answered {
            Some(answered) if answered.id == id && answered.request == fingerprint(datagram) => {
                Arrival::Repeat(answered.datagrams.clone())
            }
            _ => Arrival::OutOfWindow,
        }
    }

    /// A new request was answered.
    pub(crate) fn answered(&mut self, id: u32, request: &[u8], datagrams: Vec<Vec<u8>>) {
        self.answered = Some(Answered { id, request: fingerprint(request), datagrams });
        self.next_expected = id + 1;
    }
}

fn fingerprint(datagram: &[u8]) -> [u8; 32] {
    Sha256::digest(datagram).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_recognised_by_number_and_octets() {
        let mut window = RequestWindow::new();
        assert_eq!(window.arrival(0, b"request"), Arrival::New);
        assert_eq!(window.arrival(1, b"request"), Arrival::OutOfWindow);
        window.answered(0, b"request", vec![b"response".to_vec()]);
        assert_eq!(window.arrival(0, b"request"), Arrival::Repeat(vec![b"response".to_vec()]));
        assert_eq!(window.arrival(0, b"forgery"), Arrival::OutOfWindow);
        assert_eq!(window.arrival(1, b"next"), Arrival::New);
        window.answered(1, b"next", vec![]);
        assert_eq!(window.arrival(0, b"request"), Arrival::OutOfWindow);
    }
}
