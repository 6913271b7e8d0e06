//! A small seeded random number generator: the same seed replays the same losses.

/// SplitMix64: 64 bits of state, good enough for losses and jitter, never for keys.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[0, 1)`.
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with the given probability (0 never, 1 always).
    ///
    /// Draws nothing when the probability is 0, so that switching a feature off leaves the rest of the sequence
    /// as it was.
    pub fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.fraction() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn fractions_are_even_and_repeatable() {
        let mut random = Random::new(7);
        let mean = (0..10_000).map(|_| random.fraction()).sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "mean {mean}");
        assert_eq!(Random::new(9).next_u64(), Random::new(9).next_u64());
        assert_ne!(Random::new(9).next_u64(), Random::new(10).next_u64());
    }

    #[test]
    fn impossible_never_and_certain_always_happens() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| !random.happens(0.0)));
        assert!((0..1000).all(|_| random.happens(1.0)));
    }
}
