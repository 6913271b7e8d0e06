//! Two ends of one SA, and reading of hexadecimal vectors.
#![allow(dead_code, reason = "each test binary uses its own part of this module")]
#![allow(unreachable_pub, reason = "the module is private to each test binary")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world should fail loudly")]

use esp::{
    Accepted, Algorithm, Backend, Discard, HEADER_LEN, InboundSa, OutboundSa, SequenceNumber, sealed_len,
};

pub const SPI: u32 = 0xc0de_0001;
pub const ALGORITHMS: [Algorithm; 3] = Algorithm::by_preference(true);
pub const WINDOW: u32 = 4096;

pub struct Pair {
    pub sender: OutboundSa,
    pub receiver: InboundSa,
}

impl Pair {
    pub fn new(algorithm: Algorithm, esn: bool, sender: Backend, receiver: Backend) -> Self {
        let key: Vec<u8> = (0u8..).take(algorithm.key_material_len()).collect();
        Self {
            sender: OutboundSa::new(SPI, algorithm, &key, esn, sender).unwrap(),
            receiver: InboundSa::new(SPI, algorithm, &key, esn, WINDOW, receiver).unwrap(),
        }
    }

    /// The usual case: AES-256-GCM with extended sequence numbers.
    pub fn usual() -> Self {
        Self::new(Algorithm::Aes256Gcm16, true, Backend::AwsLc, Backend::AwsLc)
    }

    /// The next packet of the sender.
    pub fn datagram(&self, payload: &[u8]) -> Vec<u8> {
        let sequence = self.sender.reserve(1).unwrap().next().unwrap();
        self.sealed(sequence, payload, esp::NEXT_HEADER_IPV6)
    }

    pub fn sealed(&self, sequence: SequenceNumber, payload: &[u8], next_header: u8) -> Vec<u8> {
        let mut datagram = vec![0; sealed_len(payload.len())];
        datagram[HEADER_LEN..][..payload.len()].copy_from_slice(payload);
        let length = self.sender.seal(sequence, &mut datagram, payload.len(), next_header).unwrap();
        assert_eq!(length, datagram.len());
        datagram
    }

    /// Skips numbers as if their packets had been lost.
    pub fn lose(&self, count: u32) {
        drop(self.sender.reserve(count).unwrap());
    }

    pub fn receive(&self, datagram: &[u8]) -> Result<(Accepted, Vec<u8>), Discard> {
        receive(&self.receiver, datagram)
    }
}

/// Pre-check, open and commit of one datagram; the payload comes as a copy.
pub fn receive(receiver: &InboundSa, datagram: &[u8]) -> Result<(Accepted, Vec<u8>), Discard> {
    let mut datagram = datagram.to_vec();
    let pending = receiver.pre_check(&datagram)?;
    let opened = receiver.open(&pending, &mut datagram)?;
    let accepted = receiver.commit(opened, 1)?;
    let payload = datagram[accepted.payload()].to_vec();
    Ok((accepted, payload))
}

/// Bytes of a vector, whitespace ignored.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}
