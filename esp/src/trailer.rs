//! Padding, pad length and next header at the end of the plaintext (RFC 4303 §2.4 to §2.6).
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

use crate::error::Discard;
use crate::overhead::padding_len;
use crate::wire::TRAILER_LEN;

/// Next header of an IPv4 packet in tunnel mode.
pub const NEXT_HEADER_IPV4: u8 = 4;
/// Next header of an IPv6 packet in tunnel mode.
pub const NEXT_HEADER_IPV6: u8 = 41;
/// Next header of a dummy packet, which the receiver drops in silence (RFC 4303 §2.6).
pub const NEXT_HEADER_DUMMY: u8 = 59;

/// The longest padding that we ever need: up to the next multiple of 4.
const PADDING: [u8; 3] = [1, 2, 3];

/// Writes padding and trailer behind the payload. `tail` is what follows the payload, up to the ICV; its
/// length is [`padding_len`] + [`TRAILER_LEN`].
//= RFC 4303 §2.4 (the first padding octet is 1, then 2, 3, …)
pub(crate) fn write(tail: &mut [u8], payload_len: usize, next_header: u8) {
    let pad_len = padding_len(payload_len);
    debug_assert_eq!(tail.len(), pad_len.saturating_add(TRAILER_LEN));
    for (octet, value) in tail.iter_mut().zip(PADDING.iter().take(pad_len)) {
        *octet = *value;
    }
    if let Some(trailer) = tail.last_chunk_mut::<TRAILER_LEN>() {
        *trailer = [u8::try_from(pad_len).unwrap_or(0), next_header];
    }
}

/// What an authentic plaintext holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) payload_len: usize,
    pub(crate) next_header: u8,
}

/// Reads the trailer of a decrypted plaintext and checks every octet of the padding.
pub(crate) fn read(plaintext: &[u8]) -> Result<Trailer, Discard> {
    let (rest, [pad_len, next_header]) =
        plaintext.split_last_chunk::<TRAILER_LEN>().ok_or(Discard::BadPadding)?;
    let payload_len = rest.len().checked_sub(usize::from(*pad_len)).ok_or(Discard::BadPadding)?;
    let padding = rest.get(payload_len..).ok_or(Discard::BadPadding)?;
    //= RFC 4303 §2.4 (the receiver should inspect the padding)
    if !padding.iter().copied().eq(1..=*pad_len) {
        return Err(Discard::BadPadding);
    }
    Ok(Trailer { payload_len, next_header: *next_header })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a panic fails the test")]

    use super::*;
    use proptest::prelude::*;

    fn padded(payload_len: usize) -> Vec<u8> {
        let tail_len = padding_len(payload_len) + TRAILER_LEN;
        let mut plaintext = vec![0xee; payload_len + tail_len];
        write(&mut plaintext[payload_len..], payload_len, NEXT_HEADER_IPV6);
        plaintext
    }

    #[test]
    fn pads_to_four_with_counting_octets() {
        assert_eq!(padded(0), [1, 2, 2, 41]);
        assert_eq!(padded(1), [0xee, 1, 1, 41]);
        assert_eq!(padded(2), [0xee, 0xee, 0, 41]);
        assert_eq!(padded(3), [0xee, 0xee, 0xee, 1, 2, 3, 3, 41]);
    }

    #[test]
    fn foreign_padding_of_any_legal_length_is_read() {
        for pad_len in 0..=255u8 {
            let mut plaintext = vec![0xee; 5];
            plaintext.extend(1..=pad_len);
            plaintext.extend([pad_len, NEXT_HEADER_IPV4]);
            let expected = Trailer { payload_len: 5, next_header: NEXT_HEADER_IPV4 };
            assert_eq!(read(&plaintext), Ok(expected));
        }
    }

    #[test]
    fn every_wrong_octet_is_bad_padding() {
        for position in 0..9 {
            let mut plaintext: Vec<u8> = (1..=9).collect();
            plaintext.extend([9, NEXT_HEADER_IPV4]);
            plaintext[position] ^= 0x80;
            assert_eq!(read(&plaintext), Err(Discard::BadPadding));
        }
    }

    #[test]
    fn pad_length_beyond_the_packet_is_bad_padding() {
        assert_eq!(read(&[1, 2, 3, 4, NEXT_HEADER_IPV4]), Err(Discard::BadPadding));
        assert_eq!(read(&[255, NEXT_HEADER_IPV4]), Err(Discard::BadPadding));
        assert_eq!(read(&[4]), Err(Discard::BadPadding));
        assert_eq!(read(&[]), Err(Discard::BadPadding));
    }

    proptest! {
        #[test]
        fn round_trip(payload_len in 0usize..2000) {
            let plaintext = padded(payload_len);
            prop_assert_eq!(plaintext.len() % 4, 0);
            prop_assert_eq!(read(&plaintext), Ok(Trailer { payload_len, next_header: NEXT_HEADER_IPV6 }));
        }

        #[test]
        fn any_bytes_give_a_payload_inside_or_an_error(plaintext in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(trailer) = read(&plaintext) {
                prop_assert!(trailer.payload_len + TRAILER_LEN <= plaintext.len());
            }
        }
    }
}
