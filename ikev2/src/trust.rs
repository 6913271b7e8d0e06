//! What becomes of IKE SAs when a connection trusts less than before.

use std::time::Instant;

use crate::config::{ConnectionConfig, ConnectionId};
use crate::endpoint::Endpoint;
use crate::event::IkeDownReason;
use crate::exchange::proof::Proven;

impl Proven {
    /// Whether the peer could authenticate itself with the same thing today.
    fn is_still_trusted(&self, config: &ConnectionConfig) -> bool {
        match self {
            Self::SharedKey => config.pre_shared_key.is_some(),
            Self::Key(key) => config.pre_shared_key.is_none() && config.remote_keys.contains(key),
            Self::Certificate(authorities) => {
                config.pre_shared_key.is_none()
                    && authorities.iter().all(|authority| config.remote_authorities.contains(authority))
            }
        }
    }
}

impl Endpoint {
    /// Deletes the IKE SAs of a connection whose peer authenticated itself with what is no longer trusted.
    pub(crate) fn cut_untrusted(&mut self, id: ConnectionId, now: Instant) {
        let Some(entry) = self.shared.connections.get(&id) else { return };
        let config = &entry.config;
        let untrusted = |proven: &Proven| !proven.is_still_trusted(config);
        let of_connection = self.sas.values().filter(|sa| sa.connection == Some(id));
        let cut = of_connection.filter(|sa| sa.proven.as_ref().is_some_and(untrusted));
        let spis: Vec<u64> = cut.map(|sa| sa.local_spi).collect();
        for spi in spis {
            self.close_now(spi, IkeDownReason::KeyRemoved, now);
        }
    }
}
