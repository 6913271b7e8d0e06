//! An interface (RFC 8966 §3.2.3).

use std::{collections::BTreeMap, time::Instant};

use crate::{InterfaceConfig, MacKey, Prefix, Seqno, outbox::Outbox, packet_counter::PacketCounter};

/// UDP and IPv6 headers, octets.
const HEADERS: usize = 48;
/// Our packet counter TLV, octets.
const COUNTER_TLV: usize = 14;

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
    pub(crate) counter: PacketCounter,
    /// What was said here about each prefix.
    pub(crate) said: BTreeMap<Prefix, Said>,
}

impl Interface {
    pub(crate) fn new(config: InterfaceConfig, hello_seqno: Seqno, index: [u8; 8], now: Instant) -> Self {
        Self {
            next_hello: now,
            next_update: now + config.update_interval,
            config,
            hello_seqno,
            last_hello: None,
            hellos: 0,
            last_update: None,
            outbox: Outbox::default(),
            counter: PacketCounter::new(index),
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

    /// The longest packet to build, before authentication is added.
    pub(crate) fn packet_limit(&self) -> usize {
        //= RFC 8966 §4
        self.limit_within(self.config.mtu.max(512))
    }

    /// The same for an IPv6 packet of `mtu` octets.
    pub(crate) fn limit_within(&self, mtu: u16) -> usize {
        let keys = &self.config.mac_keys;
        let counter = if keys.is_empty() { 0 } else { COUNTER_TLV };
        let macs = keys.iter().map(MacKey::overhead).sum::<usize>();
        usize::from(mtu).saturating_sub(HEADERS + counter + macs)
    }
}
