//! Recorded dialogues with AES-256-GCM-16 and PRF-HMAC-SHA2-256, opened with their keys.

use super::capture::{Capture, nonce};
use ikev2::fragmentation::open_message;
use ikev2::key_schedule::{Freshness, IkeKeys, Prf};
use ikev2::sealed_payload::{IkeCipher, PayloadCipher};
use ikev2::wire::{ExchangeType, Message, Payload, decode_chain};

/// A complete message: whether side "a" sent it, and what was inside.
pub struct Opened {
    pub from_a: bool,
    pub exchange: ExchangeType,
    pub fragments: u16,
    pub payloads: Vec<Payload>,
}

/// Keys of the first IKE SA and the nonces that made them.
pub fn first_keys(capture: &Capture) -> (IkeKeys, Vec<u8>, Vec<u8>) {
    let (request, response) = (capture.message(0), capture.message(1));
    let (nonce_i, nonce_r) = (nonce(&request.payloads), nonce(&response.payloads));
    let (spi_i, spi_r) = (response.header.spi_i, response.header.spi_r);
    let fresh = Freshness { nonce_i: &nonce_i, nonce_r: &nonce_r, spi_i, spi_r };
    let keys = IkeKeys::initial(Prf::HmacSha256, IkeCipher::Aes256Gcm16, &capture.secret("ke", 0), fresh);
    (keys, nonce_i, nonce_r)
}

/// All messages of the first IKE SA behind IKE_SA_INIT, each side's fragments in the order that `order` gives them.
pub fn open_all(capture: &Capture, keys: &IkeKeys, order: impl Fn(&mut Vec<&Vec<u8>>)) -> Vec<Opened> {
    let spi = capture.message(0).header.spi_i;
    let ciphers = [(&keys.sk_er, &keys.sk_ar), (&keys.sk_ei, &keys.sk_ai)]
        .map(|(encryption, integrity)| PayloadCipher::new(keys.cipher, encryption, integrity));
    let mut opened = Vec::new();
    let mut rest: Vec<_> = capture.datagrams.iter().skip(2).collect();
    while let Some((from_a, first)) = rest.first().copied() {
        let header = Message::decode(first).unwrap().header;
        let of_message = |datagram: &[u8]| {
            let other = Message::decode(datagram).unwrap().header;
            (other.message_id, other.spi_i) == (header.message_id, header.spi_i)
        };
        let length =
            rest.iter().take_while(|(side, datagram)| side == from_a && of_message(datagram)).count();
        let mut datagrams: Vec<_> = rest.drain(..length).map(|(_, datagram)| datagram).collect();
        if header.spi_i != spi {
            continue;
        }
        order(&mut datagrams);
        let (mut reassembly, mut complete) = (None, None);
        for datagram in &datagrams {
            assert!(complete.is_none(), "complete before the last fragment");
            let outside = Message::decode(datagram).unwrap().payloads;
            let cipher = &ciphers[usize::from(*from_a)];
            complete = open_message(cipher, &mut reassembly, header.message_id, datagram, &outside).unwrap();
        }
        let message = complete.unwrap();
        opened.push(Opened {
            from_a: *from_a,
            exchange: header.exchange().unwrap(),
            fragments: u16::try_from(length).unwrap(),
            payloads: decode_chain(message.first_inner, &message.plaintext).unwrap(),
        });
    }
    opened
}
