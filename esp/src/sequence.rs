//! Sequence numbers of an outbound SA: reserved once, never twice, and never beyond the end.
//!
//! The 64-bit number is the IV too (RFC 4106 §3.1 allows a counter), so a repeat would be a repeated nonce,
//! which gives the keys of GCM away. Hence a number is a value without `Clone` that only a reservation makes.

use crate::error::SequenceExhausted;
use std::iter::FusedIterator;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counter of one outbound SA.
#[derive(Debug)]
pub(crate) struct SequenceCounter {
    /// The last number that was given away; 0 at first, so that the first packet has number 1.
    last: AtomicU64,
    limit: u64,
}

impl SequenceCounter {
    //= RFC 4303 §3.3.3 (the first packet carries 1; the counter must not cycle)
    pub(crate) fn new(esn: bool) -> Self {
        // One number is kept back at either end, so that "last + 1" cannot wrap anywhere.
        let limit = if esn { u64::MAX - 1 } else { u64::from(u32::MAX) - 1 };
        Self { last: AtomicU64::new(0), limit }
    }

    /// Takes `count` consecutive numbers, or none.
    pub(crate) fn reserve(&self, spi: u32, count: u32) -> Result<Reservation, SequenceExhausted> {
        let count = u64::from(count);
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let remaining = self.limit.saturating_sub(last);
            if count > remaining {
                return Err(SequenceExhausted { remaining });
            }
            // Relaxed is enough: the numbers order nothing but themselves.
            match self.last.compare_exchange_weak(last, last + count, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(Reservation { spi, next: last + 1, remaining: count }),
                Err(seen) => last = seen,
            }
        }
    }

    /// How many numbers were given away.
    pub(crate) fn reserved(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }
}

/// One sequence number of one SA, to be sealed with at most once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a number that is not used leaves a gap in the sequence"]
pub struct SequenceNumber {
    spi: u32,
    value: u64,
}

impl SequenceNumber {
    /// The full 64-bit number; without extended sequence numbers below 2^32.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// The SPI of the SA that it was reserved from.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }
}

/// Consecutive sequence numbers, given out in order by iteration. What is not taken is lost: a gap in the
/// sequence is harmless, a repeat is not.
#[derive(Debug)]
#[must_use = "reserved numbers that are not used leave a gap in the sequence"]
pub struct Reservation {
    spi: u32,
    next: u64,
    remaining: u64,
}

impl Reservation {
    /// The number that [`Iterator::next`] gives next.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.next
    }

    /// How many numbers are left.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.remaining
    }
}

impl Iterator for Reservation {
    type Item = SequenceNumber;

    #[inline]
    fn next(&mut self) -> Option<SequenceNumber> {
        self.remaining = self.remaining.checked_sub(1)?;
        let value = self.next;
        // Cannot wrap: the limit of the counter is below the maximum.
        self.next += 1;
        Some(SequenceNumber { spi: self.spi, value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let remaining = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        (remaining, Some(remaining))
    }
}

impl FusedIterator for Reservation {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn counter(last: u64, esn: bool) -> SequenceCounter {
        let counter = SequenceCounter::new(esn);
        counter.last.store(last, Ordering::Relaxed);
        counter
    }

    fn values(reservation: Reservation) -> Vec<u64> {
        reservation.map(|number| number.value()).collect()
    }

    #[test]
    fn starts_at_one_and_counts_without_gaps() {
        let counter = SequenceCounter::new(true);
        assert_eq!(values(counter.reserve(256, 3).unwrap()), [1, 2, 3]);
        assert_eq!(values(counter.reserve(256, 0).unwrap()), []);
        assert_eq!(values(counter.reserve(256, 2).unwrap()), [4, 5]);
        assert_eq!(counter.reserved(), 5);
    }

    #[test]
    fn stops_before_the_32_bit_counter_would_wrap() {
        let counter = counter(u64::from(u32::MAX) - 4, false);
        assert_eq!(counter.reserve(256, 4).unwrap_err(), SequenceExhausted { remaining: 3 });
        assert_eq!(values(counter.reserve(256, 3).unwrap()), [0xffff_fffc, 0xffff_fffd, 0xffff_fffe]);
        for count in [1, 2, u32::MAX] {
            assert_eq!(counter.reserve(256, count).unwrap_err(), SequenceExhausted { remaining: 0 });
        }
    }

    #[test]
    fn passes_the_32_bit_boundary_with_extended_numbers() {
        let counter = counter(u64::from(u32::MAX) - 1, true);
        assert_eq!(values(counter.reserve(256, 3).unwrap()), [0xffff_ffff, 0x1_0000_0000, 0x1_0000_0001]);
    }

    #[test]
    fn stops_before_the_64_bit_counter_would_wrap() {
        let counter = counter(u64::MAX - 3, true);
        assert_eq!(counter.reserve(256, u32::MAX).unwrap_err(), SequenceExhausted { remaining: 2 });
        assert_eq!(values(counter.reserve(256, 2).unwrap()), [u64::MAX - 2, u64::MAX - 1]);
        assert_eq!(counter.reserve(256, 1).unwrap_err(), SequenceExhausted { remaining: 0 });
    }

    #[test]
    fn threads_never_get_the_same_number() {
        let counter = SequenceCounter::new(true);
        let numbers: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..5)
                .map(|size| {
                    let counter = &counter;
                    scope.spawn(move || {
                        (0..500).flat_map(|_| values(counter.reserve(256, size).unwrap())).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        assert_eq!(numbers.len(), 500 * (1 + 2 + 3 + 4));
        assert_eq!(distinct, (1..=5000).collect());
    }
}
