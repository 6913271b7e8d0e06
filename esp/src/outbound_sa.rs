//! The sending half of a CHILD SA.

use crate::aead::{Algorithm, Backend, Transform};
use crate::error::{Misuse, SequenceExhausted};
use crate::overhead::sealed_len;
use crate::sequence::{Reservation, SequenceCounter, SequenceNumber};
use crate::trailer;
use crate::wire::{HEADER_LEN, Header, ICV_LEN};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest payload that [`OutboundSa::seal`] takes, in bytes: the longest IP packet.
pub const MAX_PAYLOAD_LEN: usize = 65_535;

/// Seals packets for one SPI of the peer. Shared by threads; the sequence counter exists once, so an SA is
/// never cloned.
pub struct OutboundSa {
    transform: Transform,
    algorithm: Algorithm,
    backend: Backend,
    counters: Counters,
}

/// What changes per packet, on a cache line of its own: the cipher's key schedule stays shared and clean.
#[repr(align(64))]
struct Counters {
    sequence: SequenceCounter,
    bytes: AtomicU64,
}

impl OutboundSa {
    /// An SA for sending. `key_material` is the key and the salt of this direction
    /// ([`Algorithm::key_material_len`] bytes); the caller wipes its copy.
    ///
    /// # Errors
    /// [`Misuse`] if the SPI is reserved or the key material has another length.
    pub fn new(
        spi: u32,
        algorithm: Algorithm,
        key_material: &[u8],
        esn: bool,
        backend: Backend,
    ) -> Result<Self, Misuse> {
        let transform = Transform::new(spi, algorithm, key_material, esn, backend)?;
        let counters = Counters { sequence: SequenceCounter::new(esn), bytes: AtomicU64::new(0) };
        Ok(Self { transform, algorithm, backend, counters })
    }

    /// The SPI that the peer chose.
    #[must_use]
    pub fn spi(&self) -> u32 {
        self.transform.spi()
    }

    /// The cipher.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The library that does the work.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether sequence numbers have 64 bits.
    #[must_use]
    pub fn esn(&self) -> bool {
        self.transform.esn()
    }

    /// Packets so far: sequence numbers given away, which is what lifetimes count.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.counters.sequence.reserved()
    }

    /// Bytes of payload sealed so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.counters.bytes.load(Ordering::Relaxed)
    }

    /// Takes `count` consecutive sequence numbers, or none. One call serves a whole batch.
    ///
    /// # Errors
    /// [`SequenceExhausted`] if fewer are left: the counter never wraps.
    #[inline]
    pub fn reserve(&self, count: u32) -> Result<Reservation, SequenceExhausted> {
        self.counters.sequence.reserve(self.spi(), count)
    }

    /// Seals the payload that stands at `buffer[HEADER_LEN..HEADER_LEN + payload_len]` in place: writes the
    /// ESP header before it, padding, trailer and ICV behind it. Returns the length of the datagram.
    ///
    /// # Errors
    /// Those of [`OutboundSa::prepare`].
    #[inline]
    pub fn seal(
        &self,
        sequence: SequenceNumber,
        buffer: &mut [u8],
        payload_len: usize,
        next_header: u8,
    ) -> Result<usize, Misuse> {
        Ok(self.prepare(sequence, buffer, payload_len, next_header)?.seal())
    }

    /// Does everything but the cryptography, which the result can do on another core. The buffer is laid
    /// out as for [`OutboundSa::seal`].
    ///
    /// # Errors
    /// [`Misuse`] if the payload is longer than [`MAX_PAYLOAD_LEN`], the buffer shorter than
    /// [`sealed_len`], or the number was reserved from another SA. The number is spent all the same.
    pub fn prepare<'a>(
        &'a self,
        sequence: SequenceNumber,
        buffer: &'a mut [u8],
        payload_len: usize,
        next_header: u8,
    ) -> Result<PendingSeal<'a>, Misuse> {
        if payload_len > MAX_PAYLOAD_LEN {
            return Err(Misuse::PayloadLength(payload_len));
        }
        if sequence.spi() != self.spi() {
            let misuse = Misuse::ForeignSequenceNumber { reserved_from: sequence.spi(), spi: self.spi() };
            return Err(misuse);
        }
        let needed = sealed_len(payload_len);
        let too_short = Misuse::BufferTooShort { needed, actual: buffer.len() };
        let datagram = buffer.get_mut(..needed).ok_or(too_short)?;
        let (header, rest) = datagram.split_first_chunk_mut().ok_or(too_short)?;
        let (plaintext, icv) = rest.split_last_chunk_mut().ok_or(too_short)?;
        let tail = plaintext.get_mut(payload_len..).ok_or(too_short)?;
        trailer::write(tail, payload_len, next_header);
        let sequence = sequence.value();
        //= RFC 4106 §3.1 (the IV is a counter: it cannot repeat under one key)
        Header { spi: self.spi(), sequence_low: low_half(sequence), iv: sequence.to_be_bytes() }.emit(header);
        Ok(PendingSeal { sa: self, sequence, plaintext, icv, payload_len })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only the low half goes on the wire (RFC 4303 §2.2.1)")]
const fn low_half(sequence: u64) -> u32 {
    sequence as u32
}

impl fmt::Debug for OutboundSa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OutboundSa")
            .field("spi", &format_args!("{:#010x}", self.spi()))
            .field("algorithm", &self.algorithm)
            .field("backend", &self.backend)
            .field("esn", &self.esn())
            .field("packets", &self.packets())
            .finish_non_exhaustive()
    }
}

/// A packet with its header, padding and trailer written, to be encrypted by whoever has the time.
#[must_use = "the packet is still plaintext"]
pub struct PendingSeal<'a> {
    sa: &'a OutboundSa,
    sequence: u64,
    plaintext: &'a mut [u8],
    icv: &'a mut [u8; ICV_LEN],
    payload_len: usize,
}

impl PendingSeal<'_> {
    /// Encrypts in place, writes the ICV and returns the length of the datagram.
    pub fn seal(self) -> usize {
        let iv = self.sequence.to_be_bytes();
        *self.icv = self.sa.transform.seal(self.sequence, iv, self.plaintext);
        self.sa.counters.bytes.fetch_add(self.payload_len as u64, Ordering::Relaxed);
        HEADER_LEN + self.plaintext.len() + ICV_LEN
    }
}

impl fmt::Debug for PendingSeal<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sa, sequence, payload_len, .. } = self;
        formatter
            .debug_struct("PendingSeal")
            .field("sa", sa)
            .field("sequence", sequence)
            .field("payload_len", payload_len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trailer::NEXT_HEADER_IPV4;

    fn outbound(spi: u32) -> OutboundSa {
        OutboundSa::new(spi, Algorithm::Aes256Gcm16, &[3; 36], true, Backend::AwsLc).unwrap()
    }

    fn one(sa: &OutboundSa) -> SequenceNumber {
        sa.reserve(1).unwrap().next().unwrap()
    }

    #[test]
    fn header_holds_spi_low_half_and_the_whole_number_as_iv() {
        let sa = outbound(0x0102_0304);
        // One call away from the boundary.
        drop(sa.reserve(u32::MAX).unwrap());
        let mut buffer = [0; 100];
        assert_eq!(sa.seal(one(&sa), &mut buffer, 1, NEXT_HEADER_IPV4), Ok(36));
        assert_eq!(buffer[..HEADER_LEN], [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(buffer[36..], [0; 64], "nothing is written behind the datagram");
        assert_eq!((sa.packets(), sa.bytes()), (1 << 32, 1));
    }

    #[test]
    fn every_buffer_length_fits_or_is_misuse() {
        let sa = outbound(256);
        for payload_len in 0..64 {
            let needed = sealed_len(payload_len);
            for actual in 0..140 {
                let mut buffer = vec![0; actual];
                let result = sa.seal(one(&sa), &mut buffer, payload_len, NEXT_HEADER_IPV4);
                let misuse = Misuse::BufferTooShort { needed, actual };
                assert_eq!(result, if actual < needed { Err(misuse) } else { Ok(needed) });
            }
        }
    }

    #[test]
    fn absurd_payload_lengths_are_misuse() {
        let sa = outbound(256);
        for payload_len in [MAX_PAYLOAD_LEN + 1, usize::MAX - 1, usize::MAX] {
            let result = sa.seal(one(&sa), &mut [0; 64], payload_len, NEXT_HEADER_IPV4);
            assert_eq!(result, Err(Misuse::PayloadLength(payload_len)));
        }
        assert_eq!(sa.bytes(), 0);
    }

    #[test]
    fn a_number_of_another_sa_is_refused() {
        let (ours, other) = (outbound(256), outbound(257));
        let result = ours.seal(one(&other), &mut [0; 64], 1, NEXT_HEADER_IPV4);
        assert_eq!(result, Err(Misuse::ForeignSequenceNumber { reserved_from: 257, spi: 256 }));
    }

    #[test]
    fn without_extended_numbers_it_stops_before_the_wrap() {
        let sa = OutboundSa::new(256, Algorithm::Aes128Gcm16, &[3; 20], false, Backend::AwsLc).unwrap();
        drop(sa.reserve(u32::MAX - 2).unwrap());
        assert_eq!(one(&sa).value(), u64::from(u32::MAX) - 1);
        assert_eq!(sa.reserve(1).unwrap_err(), SequenceExhausted { remaining: 0 });
    }

    #[test]
    fn debug_shows_no_key() {
        let text = format!("{:?}", outbound(0x1234));
        assert!(text.contains("0x00001234") && !text.contains("3, 3"), "{text}");
    }
}
