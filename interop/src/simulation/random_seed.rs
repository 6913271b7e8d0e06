//! Independent seeds for the parts of a simulation.

use lab::Random;

/// 32 octets that follow from the simulation's seed and from what they are for. Not for secrets.
pub(super) fn octets(seed: u64, purpose: &str, numbers: [u64; 2]) -> [u8; 32] {
    let mut random = Random::new(number(seed, purpose, numbers));
    let mut octets = [0; 32];
    for chunk in octets.chunks_mut(8) {
        chunk.copy_from_slice(&random.next_u64().to_be_bytes());
    }
    octets
}

/// 64 bits that follow from the same.
pub(super) fn number(seed: u64, purpose: &str, numbers: [u64; 2]) -> u64 {
    let words = purpose.bytes().map(u64::from).chain(numbers);
    words.fold(seed, |state, word| Random::new(state ^ word).next_u64())
}
