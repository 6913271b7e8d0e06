//! What one end seals the other opens, whatever the library, length and algorithm; and nothing else.

mod support;

use esp::{Algorithm, Backend, Discard, HEADER_LEN, sealed_len};
use proptest::prelude::*;
use support::{ALGORITHMS, Pair};

fn algorithm() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(ALGORITHMS.to_vec())
}

fn payload(max: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..=max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Seals with either library, opens with the other; both seal the same bytes.
    #[test]
    fn libraries_agree(algorithm in algorithm(), esn: bool, payload in payload(2000), next_header in 0u8..59) {
        let pairs = [
            Pair::new(algorithm, esn, Backend::AwsLc, Backend::RustCrypto),
            Pair::new(algorithm, esn, Backend::RustCrypto, Backend::AwsLc),
        ];
        let datagrams = pairs.each_ref().map(|pair| {
            let sequence = pair.sender.reserve(1).unwrap().next().unwrap();
            pair.sealed(sequence, &payload, next_header)
        });
        prop_assert_eq!(&datagrams[0], &datagrams[1]);
        prop_assert_eq!(datagrams[0].len(), sealed_len(payload.len()));
        for (pair, datagram) in pairs.iter().zip(&datagrams) {
            let (accepted, received) = pair.receive(datagram).unwrap();
            prop_assert_eq!(&received, &payload);
            prop_assert_eq!(accepted.next_header(), next_header);
        }
    }

    #[test]
    fn ciphers_agree_on_any_nonce_and_additional_data(
        algorithm in algorithm(),
        key in proptest::collection::vec(any::<u8>(), 32),
        nonce: [u8; 12],
        additional_data in payload(40),
        data in payload(300),
    ) {
        let key = &key[..algorithm.key_len()];
        let [aws_lc, rust_crypto] = Backend::ALL.map(|backend| algorithm.aead(key, backend).unwrap());
        let (mut first, mut second) = (data.clone(), data.clone());
        let tag = aws_lc.seal_in_place(&nonce, &additional_data, &mut first);
        prop_assert_eq!(tag, rust_crypto.seal_in_place(&nonce, &additional_data, &mut second));
        prop_assert_eq!(&first, &second);
        prop_assert_eq!(rust_crypto.open_in_place(&nonce, &additional_data, &mut first, &tag), Ok(()));
        prop_assert_eq!(aws_lc.open_in_place(&nonce, &additional_data, &mut second, &tag), Ok(()));
        prop_assert_eq!(&first, &data);
        prop_assert_eq!(&second, &data);
    }

    /// One flipped bit anywhere: another SPI, a number that was not sealed, or a wrong ICV.
    #[test]
    fn no_changed_bit_goes_unnoticed(
        algorithm in algorithm(),
        esn: bool,
        payload in payload(100),
        position: proptest::sample::Index,
        bit in 0u8..8,
    ) {
        let pair = Pair::new(algorithm, esn, Backend::AwsLc, Backend::AwsLc);
        pair.lose(10);
        let mut datagram = pair.datagram(&payload);
        let position = position.index(datagram.len());
        datagram[position] ^= 1 << bit;
        let discard = pair.receive(&datagram).unwrap_err();
        match position {
            0..4 => prop_assert_eq!(discard, Discard::WrongSpi),
            4..8 => prop_assert!(matches!(discard, Discard::IntegrityFailure | Discard::OutsideWindow)),
            _ => prop_assert_eq!(discard, Discard::IntegrityFailure),
        }
        prop_assert_eq!(pair.receiver.packets(), 0);
    }

    /// Cut to any shorter length, also one that was pre-checked at full length.
    #[test]
    fn no_shortened_datagram_opens(payload in payload(100), length: proptest::sample::Index) {
        let pair = Pair::usual();
        let mut datagram = pair.datagram(&payload);
        let pending = pair.receiver.pre_check(&datagram).unwrap();
        let length = length.index(datagram.len());
        let discard = pair.receiver.open(&pending, &mut datagram[..length]).unwrap_err();
        prop_assert!(matches!(discard, Discard::TooShort | Discard::Misaligned | Discard::IntegrityFailure));
    }
}

#[test]
fn the_longest_packet_fits() {
    let pair = Pair::usual();
    let payload = vec![0x77; esp::MAX_PAYLOAD_LEN];
    assert_eq!(pair.receive(&pair.datagram(&payload)).unwrap().1, payload);
}

#[test]
fn another_datagram_than_the_pre_checked_one_does_not_open() {
    let pair = Pair::usual();
    let (first, mut second) = (pair.datagram(b"first"), pair.datagram(b"second"));
    let pending = pair.receiver.pre_check(&first).unwrap();
    assert_eq!(pair.receiver.open(&pending, &mut second), Err(Discard::IntegrityFailure));
}

#[test]
fn only_the_payload_is_changed_between_header_and_padding() {
    let pair = Pair::usual();
    let datagram = pair.datagram(&[0; 14]);
    assert_eq!(datagram[..4], support::SPI.to_be_bytes());
    assert_eq!(datagram[4..8], 1u32.to_be_bytes());
    assert_eq!(datagram[8..HEADER_LEN], 1u64.to_be_bytes(), "the IV is the 64-bit sequence number");
}
