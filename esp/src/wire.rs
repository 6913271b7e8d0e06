//! The ESP datagram as it is on the wire (RFC 4303 §2, RFC 4106 §3, RFC 7634 §2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                              SPI                              |
//! +---------------------------------------------------------------+
//! |                Sequence number, low 32 bits                   |
//! +---------------------------------------------------------------+
//! |                          IV (8 bytes)                         |
//! |                                                               |
//! +---------------------------------------------------------------+
//! |       payload, padding, pad length, next header  (encrypted)  |
//! +---------------------------------------------------------------+
//! |                         ICV (16 bytes)                        |
//! +---------------------------------------------------------------+
//! ```
//!
//! All numbers are in network byte order. A view is checked once, at construction; its accessors cannot fail.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

use crate::error::Discard;

/// SPI (4), sequence number (4) and IV (8): the bytes before the ciphertext.
pub const HEADER_LEN: usize = 16;
/// The integrity check value of all our algorithms, in bytes.
pub const ICV_LEN: usize = 16;
/// Pad length and next header.
pub(crate) const TRAILER_LEN: usize = 2;
/// The ciphertext ends on a multiple of this (RFC 4303 §2.4).
pub(crate) const ALIGNMENT: usize = 4;
/// The smallest datagram that can be ESP: header, four bytes of ciphertext, ICV.
pub const MIN_DATAGRAM_LEN: usize = HEADER_LEN + ALIGNMENT + ICV_LEN;

/// The three fields before the ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) spi: u32,
    pub(crate) sequence_low: u32,
    pub(crate) iv: [u8; 8],
}

impl Header {
    #[inline]
    pub(crate) fn parse(header: &[u8; HEADER_LEN]) -> Self {
        let [s0, s1, s2, s3, q0, q1, q2, q3, iv @ ..] = *header;
        Self {
            spi: u32::from_be_bytes([s0, s1, s2, s3]),
            sequence_low: u32::from_be_bytes([q0, q1, q2, q3]),
            iv,
        }
    }

    pub(crate) fn emit(self, out: &mut [u8; HEADER_LEN]) {
        let [s0, s1, s2, s3] = self.spi.to_be_bytes();
        let [q0, q1, q2, q3] = self.sequence_low.to_be_bytes();
        let [i0, i1, i2, i3, i4, i5, i6, i7] = self.iv;
        *out = [s0, s1, s2, s3, q0, q1, q2, q3, i0, i1, i2, i3, i4, i5, i6, i7];
    }
}

/// A datagram whose length was checked, cut into its three parts.
pub(crate) struct Datagram<'a> {
    pub(crate) header: Header,
    pub(crate) ciphertext: &'a mut [u8],
    pub(crate) icv: [u8; ICV_LEN],
}

impl<'a> Datagram<'a> {
    pub(crate) fn split(datagram: &'a mut [u8]) -> Result<Self, Discard> {
        check_length(datagram.len())?;
        let (header, rest) = datagram.split_first_chunk_mut::<HEADER_LEN>().ok_or(Discard::TooShort)?;
        let header = Header::parse(header);
        let (ciphertext, icv) = rest.split_last_chunk_mut::<ICV_LEN>().ok_or(Discard::TooShort)?;
        Ok(Self { header, ciphertext, icv: *icv })
    }
}

/// The header of a datagram of a possible length.
#[inline]
pub(crate) fn peek_header(datagram: &[u8]) -> Result<Header, Discard> {
    check_length(datagram.len())?;
    let header = datagram.first_chunk::<HEADER_LEN>().ok_or(Discard::TooShort)?;
    Ok(Header::parse(header))
}

//= RFC 4303 §2.4 (pad length and next header right-aligned in a 4-byte word)
fn check_length(length: usize) -> Result<(), Discard> {
    if length < MIN_DATAGRAM_LEN {
        Err(Discard::TooShort)
    } else if !length.is_multiple_of(ALIGNMENT) {
        // Header and ICV are multiples of 4, so the whole datagram is one if the ciphertext is.
        Err(Discard::Misaligned)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trip_in_network_byte_order() {
        let header =
            Header { spi: 0x0102_0304, sequence_low: 0x0506_0708, iv: [9, 10, 11, 12, 13, 14, 15, 16] };
        let mut bytes = [0; HEADER_LEN];
        header.emit(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(Header::parse(&bytes), header);
    }

    #[test]
    fn every_length_has_one_verdict() {
        for length in 0..200 {
            let mut datagram = vec![0xa5; length];
            let expected = match length {
                0..36 => Some(Discard::TooShort),
                _ if length % 4 != 0 => Some(Discard::Misaligned),
                _ => None,
            };
            assert_eq!(peek_header(&datagram).err(), expected, "{length}");
            assert_eq!(Datagram::split(&mut datagram).err(), expected, "{length}");
        }
    }

    impl std::fmt::Debug for Datagram<'_> {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.header.fmt(formatter)
        }
    }
}
