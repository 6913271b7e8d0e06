//! An interface (RFC 8966 §3.2.3).

use std::{collections::BTreeSet, time::Instant};

use crate::{InterfaceConfig, Prefix, Seqno, outbox::Outbox};

/// UDP and IPv6 headers, octets.
const HEADERS: usize = 48;

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
    /// Prefixes that neighbours here may believe to have from us.
    pub(crate) announced: BTreeSet<Prefix>,
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
            announced: BTreeSet::new(),
        }
    }

    /// The longest UDP payload to send.
    pub(crate) fn payload_limit(&self) -> usize {
        //= RFC 8966 §4
        usize::from(self.config.mtu.max(512)).saturating_sub(HEADERS)
    }
}
