//! A configured link: when to dial, which IKE SAs serve it, which CHILD SA to send on.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use crate::config::{ConnectionConfig, Path, Timers};
use crate::proposal::ChildPolicy;

pub(crate) struct Connection {
    pub(crate) config: ConnectionConfig,
    pub(crate) dial: Dial,
    /// Attempts since the last success.
    pub(crate) tries: u32,
    /// Local SPIs of the usable IKE SAs, oldest first by establishment.
    pub(crate) established: Vec<u64>,
    pub(crate) outbound: OutboundChoice,
}

/// Where dialling stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dial {
    /// Nothing to do.
    Idle,
    /// The next attempt starts then.
    Waiting(Instant),
    /// The IKE SA with this local SPI is being set up.
    Attempt(u64),
}

impl Connection {
    pub(crate) fn new(config: ConnectionConfig) -> Self {
        Self {
            config,
            dial: Dial::Idle,
            tries: 0,
            established: Vec::new(),
            outbound: OutboundChoice::default(),
        }
    }

    /// Where a dial attempt goes.
    pub(crate) fn dial_path(&self) -> Option<Path> {
        let remote = self.config.remote_address?;
        let unspecified = match remote {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let address = self.config.local_address.unwrap_or(unspecified);
        Some(Path { local: SocketAddr::new(address, self.config.local_port), remote })
    }

    /// Schedules the next attempt after a failure or a loss, if this link is dialled at all.
    pub(crate) fn schedule_dial(&mut self, timers: &Timers, rng: &mut ChaCha20Rng, now: Instant) {
        if !self.config.dial || self.config.remote_address.is_none() || !self.established.is_empty() {
            self.dial = Dial::Idle;
            return;
        }
        self.dial = Dial::Waiting(now + dial_wait(timers, self.tries, rng));
    }

    /// Algorithms of CHILD SAs made in IKE_AUTH, where no key exchange is possible.
    pub(crate) fn first_child_policy(&self) -> ChildPolicy {
        ChildPolicy { algorithms: self.config.esp_algorithms.clone(), methods: vec![], additional: vec![] }
    }
}

/// Doubles from `dial_retry_first` to `dial_retry_max`, plus up to a quarter of jitter.
fn dial_wait(timers: &Timers, tries: u32, rng: &mut ChaCha20Rng) -> Duration {
    let doubled = timers.dial_retry_first.saturating_mul(1 << tries.saturating_sub(1).min(16));
    let wait = doubled.min(timers.dial_retry_max);
    wait + wait * (rng.next_u32() % 250) / 1000
}

/// Which CHILD SA to send on: the newest one that the peer surely has.
#[derive(Default)]
pub(crate) struct OutboundChoice {
    /// Oldest first.
    candidates: Vec<Candidate>,
    used: Option<u32>,
    /// SPIs that must not be chosen although they still exist.
    excluded: BTreeSet<u32>,
}

struct Candidate {
    spi_in: u32,
    spi_out: u32,
    sure: bool,
}

impl OutboundChoice {
    pub(crate) fn add(&mut self, spi_in: u32, spi_out: u32, sure: bool) {
        self.candidates.push(Candidate { spi_in, spi_out, sure });
    }

    /// The peer has the SA.
    pub(crate) fn confirm(&mut self, spi_in: u32) {
        for candidate in &mut self.candidates {
            candidate.sure |= candidate.spi_in == spi_in;
        }
    }

    /// The SA is about to be deleted: prefer any other.
    pub(crate) fn exclude(&mut self, spi_in: u32) {
        self.excluded.insert(spi_in);
    }

    pub(crate) fn remove(&mut self, spi_in: u32) {
        self.candidates.retain(|candidate| candidate.spi_in != spi_in);
        self.excluded.remove(&spi_in);
    }

    /// Whether an SA is left that is not about to be deleted.
    pub(crate) fn has_usable(&self) -> bool {
        self.candidates.iter().any(|candidate| !self.excluded.contains(&candidate.spi_in))
    }

    /// The outbound SPI to switch to, if it is another than before. Where no SA is sure, the newest is
    /// better than none; where all are excluded, the one in use stays.
    pub(crate) fn choose(&mut self) -> Option<u32> {
        let allowed =
            || self.candidates.iter().rev().filter(|candidate| !self.excluded.contains(&candidate.spi_in));
        let chosen = allowed().find(|candidate| candidate.sure).or_else(|| {
            let in_use = self.candidates.iter().find(|candidate| Some(candidate.spi_in) == self.used);
            in_use.or_else(|| allowed().next())
        })?;
        let (spi_in, spi_out) = (chosen.spi_in, chosen.spi_out);
        (self.used.replace(spi_in) != Some(spi_in)).then_some(spi_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sure_association_is_used() {
        let mut choice = OutboundChoice::default();
        choice.add(1, 101, false);
        assert_eq!(choice.choose(), Some(101), "the only one is used although unsure");
        assert_eq!(choice.choose(), None);
        choice.confirm(1);
        choice.add(2, 102, false);
        assert_eq!(choice.choose(), None, "an unsure one does not replace a sure one");
        choice.confirm(2);
        assert_eq!(choice.choose(), Some(102));
        choice.exclude(2);
        assert_eq!(choice.choose(), Some(101));
        choice.remove(1);
        assert_eq!(choice.choose(), None, "an SA about to be deleted is not switched to");
    }
}
