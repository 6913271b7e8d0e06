//! The ESP packet of RFC 7634 appendix A, with both back-ends.

mod support;

use esp::{Algorithm, Backend, Discard, HEADER_LEN, ICV_LEN, InboundSa, NEXT_HEADER_IPV4};
use support::{WINDOW, hex, receive};

const KEY: &str = "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f";
const SALT: &str = "a0a1a2a3";
const PLAINTEXT: &str = "45000054a6f200004001e778c6336405c000020508005b7a3a080000553bec10
    0007362708090a0b0c0d0e0f10111213 1415161718191a1b1c1d1e1f20212223
    2425262728292a2b2c2d2e2f3031323334353637 01020204";
const PACKET: &str = "01020304000000051011121314151617
    24039428b97f417e3c13753a4f05087b67c352e6a7fab1b982d466ef407ae5c6
    14ee8099d52844eb61aa95dfab4c02f72aa71e7c4c4f64c9befe2facc638e8f3
    cbec163fac469b502773f6fb94e664da9165b82829f641e0 76aaa8266b7fb0f7b11b369907e1ad43";

#[test]
fn the_cipher_seals_the_packet() {
    for backend in Backend::ALL {
        let cipher = Algorithm::ChaCha20Poly1305.aead(&hex(KEY), backend).unwrap();
        let packet = hex(PACKET);
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&hex(SALT));
        nonce[4..].copy_from_slice(&packet[8..HEADER_LEN]);
        let mut data = hex(PLAINTEXT);
        let icv = cipher.seal_in_place(&nonce, &packet[..8], &mut data);
        assert_eq!(data, packet[HEADER_LEN..packet.len() - ICV_LEN]);
        assert_eq!(icv, packet[packet.len() - ICV_LEN..]);
    }
}

#[test]
fn an_sa_opens_the_packet_once() {
    for backend in Backend::ALL {
        let key_material = hex(&[KEY, SALT].concat());
        let algorithm = Algorithm::ChaCha20Poly1305;
        let sa = InboundSa::new(0x0102_0304, algorithm, &key_material, false, WINDOW, backend).unwrap();
        let (accepted, payload) = receive(&sa, &hex(PACKET)).unwrap();
        assert_eq!(payload, hex(PLAINTEXT)[..84]);
        assert_eq!((accepted.next_header(), accepted.sequence()), (NEXT_HEADER_IPV4, 5));
        assert_eq!(receive(&sa, &hex(PACKET)), Err(Discard::Replayed));
    }
}
