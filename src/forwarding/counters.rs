//! Counters that workers write and the control plane reads: relaxed atomics, one writer each.

use super::DropReason;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Packets and octets of one direction.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Packets: segments of a super-packet count singly.
    pub packets: Counter,
    /// Octets of these packets, without the tunnel's own headers.
    pub bytes: Counter,
}

impl Traffic {
    /// Counts `packets` packets of `bytes` octets in all.
    #[inline]
    pub fn add(&self, packets: u64, bytes: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
    }
}

/// What a worker has discarded, by reason.
#[derive(Debug)]
pub struct Drops([AtomicU64; DropReason::COUNT]);

impl Default for Drops {
    fn default() -> Self {
        Drops([const { AtomicU64::new(0) }; DropReason::COUNT])
    }
}

impl Drops {
    /// Counts `packets` packets discarded for `reason`.
    #[inline]
    pub fn add(&self, reason: DropReason, packets: u64) {
        if let Some(counter) = self.0.get(reason as usize) {
            counter.fetch_add(packets, Relaxed);
        }
    }

    /// How many packets were discarded for `reason`.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0.get(reason as usize).map_or(0, |counter| counter.load(Relaxed))
    }

    /// Every reason that has been met, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|reason| (*reason, self.get(*reason))).filter(|(_, count)| *count > 0)
    }

    /// All drops together.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

/// What one worker has done.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    /// Packets discarded, by reason.
    pub drops: Drops,
    /// Packets read from the TUN.
    pub tun_read: Traffic,
    /// Packets written to the TUN.
    pub tun_written: Traffic,
    /// Writes to the TUN: less than the packets where packets were joined.
    pub tun_writes: Counter,
    /// Super-packets that the kernel refused on the TUN: then packets are no longer joined.
    pub tun_offload_refused: Counter,
    /// Datagrams received.
    pub received: Traffic,
    /// Receive calls that returned data.
    pub receives: Counter,
    /// Datagrams sent.
    pub sent: Traffic,
    /// Send calls that took data.
    pub sends: Counter,
    /// Packets forwarded from link to link.
    pub relayed: Traffic,
    /// ICMP errors originated.
    pub icmp_errors: Counter,
    /// ICMP errors suppressed by the rate limit.
    pub icmp_suppressed: Counter,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub receive_overflow: Counter,
    /// Receive calls and TUN reads that failed: an ICMP error of some peer's, a device that is down.
    pub receive_errors: Counter,
    /// NAT keepalives received.
    pub keepalives: Counter,
}

/// What went over one link; lives as long as the link, across snapshots.
#[derive(Debug, Default)]
pub struct LinkCounters {
    /// Inner packets sent.
    pub sent: Traffic,
    /// Inner packets received and authenticated.
    pub received: Traffic,
    /// Packets that belonged to this link and were discarded.
    pub dropped: Counter,
    /// Milliseconds since [`Forwarding::epoch`](super::Forwarding::epoch) until which trains are
    /// sent as single datagrams; 0 while segmentation offload works.
    pub single_until_millis: AtomicU64,
}

/// What one policy has steered; lives as long as the policy, across snapshots.
#[derive(Debug, Default)]
pub struct PolicyCounters {
    /// Packets sent along the policy's path.
    pub steered: Traffic,
    /// Packets that matched while a stop was unreachable.
    pub unreachable: Counter,
}
