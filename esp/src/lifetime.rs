//! How much one SA may carry: soft limits ask for a rekey, hard limits end its use (RFC 4301 §4.4.2.1).
//! Limits in time are the key exchange's.

use crate::aead::Algorithm;

/// An amount of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Packets, that is sequence numbers.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

/// What the traffic so far means for an SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Below all limits.
    Fresh,
    /// A soft limit was reached: replace the SA, and go on using it until then.
    Rekey,
    /// A hard limit was reached: the SA must carry nothing more.
    Expired,
}

/// The soft and the hard limit of one SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// From here on the SA should be replaced.
    pub soft: Limits,
    /// From here on the SA must not be used.
    pub hard: Limits,
}

impl Lifetime {
    /// The limits that safety alone demands.
    ///
    /// Packets: the sequence number must not cycle (RFC 4303 §3.3.3), so without extended numbers an SA is
    /// replaced at 2^31. Bytes: AES has 16-byte blocks, so GCM ends after 2^48 of them (2^52 bytes), where
    /// the chance to tell ciphertext from noise is still below 2^-32; ChaCha20 has no such limit.
    #[must_use]
    pub const fn for_sa(algorithm: Algorithm, esn: bool) -> Self {
        let (soft_bytes, hard_bytes) = match algorithm {
            Algorithm::Aes256Gcm16 | Algorithm::Aes128Gcm16 => (1 << 51, 1 << 52),
            Algorithm::ChaCha20Poly1305 => (1 << 62, 1 << 63),
        };
        let (soft_packets, hard_packets) = if esn { (1 << 62, 1 << 63) } else { (1 << 31, (1 << 32) - 2) };
        Self {
            soft: Limits { packets: soft_packets, bytes: soft_bytes },
            hard: Limits { packets: hard_packets, bytes: hard_bytes },
        }
    }

    /// The same with smaller soft limits where these are smaller; the hard limits stay.
    #[must_use]
    pub fn with_soft(self, soft: Limits) -> Self {
        let soft =
            Limits { packets: self.soft.packets.min(soft.packets), bytes: self.soft.bytes.min(soft.bytes) };
        Self { soft, ..self }
    }

    /// Compares an SA's counters, for example [`OutboundSa::packets`](crate::OutboundSa::packets) and
    /// [`OutboundSa::bytes`](crate::OutboundSa::bytes), with the limits.
    #[must_use]
    pub const fn verdict(&self, packets: u64, bytes: u64) -> Verdict {
        if packets >= self.hard.packets || bytes >= self.hard.bytes {
            Verdict::Expired
        } else if packets >= self.soft.packets || bytes >= self.soft.bytes {
            Verdict::Rekey
        } else {
            Verdict::Fresh
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_extended_numbers_rekeys_at_half_and_ends_before_the_wrap() {
        let lifetime = Lifetime::for_sa(Algorithm::Aes256Gcm16, false);
        assert_eq!(lifetime.verdict((1 << 31) - 1, 0), Verdict::Fresh);
        assert_eq!(lifetime.verdict(1 << 31, 0), Verdict::Rekey);
        assert_eq!(lifetime.verdict((1 << 32) - 3, 0), Verdict::Rekey);
        assert_eq!(lifetime.verdict((1 << 32) - 2, 0), Verdict::Expired);
    }

    #[test]
    fn bytes_count_as_well() {
        let lifetime = Lifetime::for_sa(Algorithm::Aes128Gcm16, true);
        assert_eq!(lifetime.verdict(1 << 40, (1 << 51) - 1), Verdict::Fresh);
        assert_eq!(lifetime.verdict(1, 1 << 51), Verdict::Rekey);
        assert_eq!(lifetime.verdict(1, 1 << 52), Verdict::Expired);
        assert_eq!(lifetime.verdict(1, u64::MAX), Verdict::Expired);
    }

    #[test]
    fn configuration_can_only_tighten() {
        let safe = Lifetime::for_sa(Algorithm::Aes256Gcm16, false);
        let tight = safe.with_soft(Limits { packets: 1000, bytes: u64::MAX });
        assert_eq!(tight.soft, Limits { packets: 1000, bytes: 1 << 51 });
        assert_eq!(tight.hard, safe.hard);
        assert_eq!(safe.with_soft(Limits { packets: u64::MAX, bytes: u64::MAX }), safe);
    }
}
