//! What is going to happen, in order.

use super::stream::StreamId;
use super::underlay::Flight;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Something with an appointed time.
#[derive(Debug)]
pub(super) enum Happening {
    /// A datagram reaches its destination.
    Delivery(Flight),
    /// A stream sends its next packet.
    Tick(StreamId),
}

/// A queue by time; what was entered first happens first at the same time.
#[derive(Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Entry>,
    entered: u64,
}

struct Entry {
    at: Instant,
    number: u64,
    happening: Happening,
}

impl Agenda {
    pub(super) fn enter(&mut self, at: Instant, happening: Happening) {
        self.entered += 1;
        self.entries.push(Entry { at, number: self.entered, happening });
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.entries.peek().map(|entry| entry.at)
    }

    pub(super) fn pop(&mut self) -> Option<Happening> {
        self.entries.pop().map(|entry| entry.happening)
    }
}

impl Ord for Entry {
    /// The earliest is the greatest: that is what a heap gives first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn early_before_late_and_first_come_first_served() {
        let start = Instant::now();
        let mut agenda = Agenda::default();
        for (delay, stream) in [(5, 0), (1, 1), (5, 2), (1, 3)] {
            agenda.enter(start + Duration::from_millis(delay), Happening::Tick(StreamId(stream)));
        }
        assert_eq!(agenda.next_at(), Some(start + Duration::from_millis(1)));
        let order: Vec<usize> = std::iter::from_fn(|| agenda.pop())
            .map(|happening| match happening {
                Happening::Tick(StreamId(stream)) => stream,
                Happening::Delivery(_) => usize::MAX,
            })
            .collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }
}
