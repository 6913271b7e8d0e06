//! When each IKE SA wants to be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The next deadline of each IKE SA, sorted.
#[derive(Default)]
pub(crate) struct Deadlines {
    by_spi: BTreeMap<u64, (Instant, &'static str)>,
    sorted: BTreeSet<(Instant, u64)>,
    touched: BTreeSet<u64>,
}

impl Deadlines {
    /// The SA changed: its deadline must be asked for again.
    pub(crate) fn touch(&mut self, spi: u64) {
        self.touched.insert(spi);
    }

    pub(crate) fn take_touched(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.touched)
    }

    pub(crate) fn set(&mut self, spi: u64, deadline: Option<(Instant, &'static str)>) {
        self.forget(spi);
        if let Some((at, reason)) = deadline {
            self.by_spi.insert(spi, (at, reason));
            self.sorted.insert((at, spi));
        }
    }

    pub(crate) fn forget(&mut self, spi: u64) {
        if let Some((at, _)) = self.by_spi.remove(&spi) {
            self.sorted.remove(&(at, spi));
        }
    }

    pub(crate) fn next(&self) -> Option<(Instant, &'static str)> {
        let (_, spi) = self.sorted.first()?;
        self.by_spi.get(spi).copied()
    }

    pub(crate) fn due(&self, now: Instant) -> Vec<u64> {
        self.sorted.iter().take_while(|(at, _)| *at <= now).map(|(_, spi)| *spi).collect()
    }
}
