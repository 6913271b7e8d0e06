//! Inbound security associations by SPI.

use super::snapshot::LinkId;
use esp::InboundSa;
use std::sync::Arc;

/// An inbound security association and the link it belongs to.
#[derive(Debug, Clone)]
pub struct InboundEntry {
    /// The association.
    pub sa: Arc<InboundSa>,
    /// Its link.
    pub link: LinkId,
}

/// An immutable map from SPI to [`InboundEntry`].
///
/// Open addressing at a load of at most one half. SPIs are our own random numbers, so nobody
/// else can aim at a slot.
#[derive(Debug, Clone, Default)]
pub struct SpiTable {
    slots: Vec<Option<(u32, InboundEntry)>>,
    count: usize,
}

impl SpiTable {
    /// A table of `entries`; of two entries with one SPI the later counts.
    pub fn new(entries: impl IntoIterator<Item = InboundEntry>) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let mut slots = Vec::new();
        slots.resize_with((entries.len() * 2).next_power_of_two().max(2), || None);
        let mut table = SpiTable { slots, count: 0 };
        for entry in entries {
            table.insert(entry);
        }
        table
    }

    fn insert(&mut self, entry: InboundEntry) {
        let spi = entry.sa.spi();
        let mut index = self.home(spi);
        while let Some(slot) = self.slots.get_mut(index) {
            match slot {
                Some((taken, _)) if *taken != spi => index = (index + 1) & (self.slots.len() - 1),
                Some((_, old)) => return *old = entry,
                None => {
                    *slot = Some((spi, entry));
                    self.count += 1;
                    return;
                }
            }
        }
    }

    /// The association with this SPI.
    #[inline]
    pub fn lookup(&self, spi: u32) -> Option<&InboundEntry> {
        let mut index = self.home(spi);
        loop {
            match self.slots.get(index)? {
                Some((found, entry)) if *found == spi => return Some(entry),
                Some(_) => index = (index + 1) & (self.slots.len() - 1),
                None => return None,
            }
        }
    }

    /// All associations, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &InboundEntry> {
        self.slots.iter().flatten().map(|(_, entry)| entry)
    }

    /// How many associations there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    fn home(&self, spi: u32) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the SPI.
        let product = u64::from(spi).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(product).unwrap_or(0) & self.slots.len().saturating_sub(1)
    }
}

impl FromIterator<InboundEntry> for SpiTable {
    fn from_iter<I: IntoIterator<Item = InboundEntry>>(entries: I) -> Self {
        SpiTable::new(entries)
    }
}
