//! The expensive part of a stranger's handshake, so that it can run on another core than the rest (RFC 7296 §2.6).
//!
//! With [`Config::defer_key_exchange`](crate::Config) the endpoint only hands it out; messages of that SA wait.

use std::time::Instant;

use crate::endpoint::Endpoint;
use crate::error::Violation;
use crate::ike_sa::Phase;
use crate::key_exchange::KeyExchange;
use crate::secret::SecretBytes;

/// Computes the shared secret of one half-open IKE SA. `Send`: any thread may do it.
pub struct PendingKeyExchange {
    pub(crate) spi: u64,
    pub(crate) exchange: KeyExchange,
    pub(crate) peer_public: Vec<u8>,
}

/// What came of it.
pub struct FinishedKeyExchange {
    spi: u64,
    pub(crate) secret: Result<SecretBytes, Violation>,
}

impl PendingKeyExchange {
    /// Does the work.
    pub fn run(self) -> FinishedKeyExchange {
        FinishedKeyExchange { spi: self.spi, secret: self.exchange.complete(&self.peer_public) }
    }
}

impl Endpoint {
    /// The next key exchange to compute; give what comes of it to [`Self::finish_key_exchange`], in any order.
    pub fn poll_work(&mut self) -> Option<PendingKeyExchange> {
        self.shared.work.pop_front()
    }

    /// Goes on with the handshake that waited for this.
    pub fn finish_key_exchange(&mut self, finished: FinishedKeyExchange, now: Instant) {
        let Some(sa) = self.sas.get_mut(&finished.spi) else { return };
        let spis = sa.spis();
        if let (Phase::HalfOpen(responded), Ok(secret)) = (&sa.phase, &finished.secret) {
            sa.secured = Some(responded.secure(secret, (spis.initiator, spis.responder)));
        }
        for (path, datagram) in std::mem::take(&mut sa.waiting) {
            self.handle_datagram(path, &datagram, now);
        }
    }
}
