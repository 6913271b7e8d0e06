//! An interface (RFC 8966 §3.2.3).

use std::{collections::BTreeMap, time::Instant};

use crate::{InterfaceConfig, Prefix, Seqno, outbox::Outbox};

/// UDP and IPv6 headers, octets.
const HEADERS: usize = 48;

/// Retractions are repeated in so many periodic updates.
const REPEATED_RETRACTIONS: u8 = 3;

/// What was last said on an interface about a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Announced,
    /// The retraction may have been lost: so many periodic updates will still repeat it.
    Retracted(u8),
}

/// The state of one interface.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) config: InterfaceConfig,
    pub(crate) hello_seqno: Seqno,
    pub(crate) next_hello: Instant,
    pub(crate) last_hello: Option<Instant>,
    /// Hellos sent since the interface came up; the first ones come faster.
    pub(crate) hellos: u32,
    pub(crate) next_update: Instant,
    pub(crate) last_update: Option<Instant>,
    pub(crate) outbox: Outbox,
    /// What was said here about each prefix.
    pub(crate) said: BTreeMap<Prefix, Said>,
}

impl Interface {
    pub(crate) fn new(config: InterfaceConfig, hello_seqno: Seqno, now: Instant) -> Self {
        Self {
            next_hello: now,
            next_update: now + config.update_interval,
            config,
            hello_seqno,
            last_hello: None,
            hellos: 0,
            last_update: None,
            outbox: Outbox::default(),
            said: BTreeMap::new(),
        }
    }

    /// Whether a neighbour here may believe to have a route from us.
    pub(crate) fn is_announced(&self, prefix: &Prefix) -> bool {
        self.said.get(prefix) == Some(&Said::Announced)
    }

    /// Notes that a retraction is sent.
    pub(crate) fn note_retraction(&mut self, prefix: Prefix) {
        if self.is_announced(&prefix) {
            self.said.insert(prefix, Said::Retracted(REPEATED_RETRACTIONS));
        }
    }

    /// The prefixes whose retraction a periodic update repeats.
    pub(crate) fn take_retractions(&mut self) -> Vec<Prefix> {
        let mut repeated = Vec::new();
        self.said.retain(|prefix, said| match said {
            Said::Announced => true,
            Said::Retracted(left) => {
                repeated.push(*prefix);
                *left = left.saturating_sub(1);
                *left > 0
            }
        });
        repeated
    }

    /// The longest UDP payload to send.
    pub(crate) fn payload_limit(&self) -> usize {
        //= RFC 8966 §4
        usize::from(self.config.mtu.max(512)).saturating_sub(HEADERS)
    }
}
