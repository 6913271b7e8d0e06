//! A dialogue of two real daemons with a shared secret and forced fragments: put together, decrypted, authenticated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use ikev2::authentication::{SignedOctets, shared_key_code};
use ikev2::fragmentation::open_message;
use ikev2::key_schedule::{Freshness, IkeKeys, Prf};
use ikev2::sealed_payload::{IkeCipher, PayloadCipher};
use ikev2::wire::{ExchangeType, Message, Payload, decode_chain};
use support::capture::{Capture, nonce};

const DIALOGUE: &str = include_str!("captures/strongswan_shared_secret_fragments.hex");

/// A complete message: whether side "a" sent it, and what was inside.
struct Opened {
    from_a: bool,
    exchange: ExchangeType,
    fragments: u16,
    payloads: Vec<Payload>,
}

fn first_keys(capture: &Capture) -> (IkeKeys, Vec<u8>, Vec<u8>) {
    let (request, response) = (capture.message(0), capture.message(1));
    let (nonce_i, nonce_r) = (nonce(&request.payloads), nonce(&response.payloads));
    let (spi_i, spi_r) = (response.header.spi_i, response.header.spi_r);
    let fresh = Freshness { nonce_i: &nonce_i, nonce_r: &nonce_r, spi_i, spi_r };
    let keys = IkeKeys::initial(Prf::HmacSha256, IkeCipher::Aes256Gcm16, &capture.secret("ke", 0), fresh);
    (keys, nonce_i, nonce_r)
}

/// All messages of the first IKE SA behind IKE_SA_INIT, each side's fragments in the order that `order` gives them.
fn open_all(capture: &Capture, keys: &IkeKeys, order: impl Fn(&mut Vec<&Vec<u8>>)) -> Vec<Opened> {
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

#[test]
fn the_key_schedule_is_that_of_the_log() {
    let capture = Capture::parse(DIALOGUE);
    let (keys, nonce_i, nonce_r) = first_keys(&capture);
    let derived = [&keys.sk_d, &keys.sk_ei, &keys.sk_er, &keys.sk_pi, &keys.sk_pr];
    for (key, name) in derived.into_iter().zip(["sk_d", "sk_ei", "sk_er", "sk_pi", "sk_pr"]) {
        assert_eq!(key.expose(), capture.value(name, 0), "{name}");
    }
    let material = keys.child(&[], &nonce_i, &nonce_r, 72);
    assert_eq!(material.expose(), [capture.value("esp_i", 0), capture.value("esp_r", 0)].concat());
}

#[test]
fn fragments_are_put_together_in_any_order() {
    let capture = Capture::parse(DIALOGUE);
    let (keys, ..) = first_keys(&capture);
    let in_order = open_all(&capture, &keys, |_| {});
    let reversed = open_all(&capture, &keys, |datagrams| datagrams.reverse());
    let fragments: Vec<_> = in_order.iter().map(|message| (message.from_a, message.fragments)).collect();
    // IKE_AUTH and the rekeying of the CHILD SA came in two fragments each way; deletions and the rest fit in one.
    assert_eq!(fragments[..4], [(true, 2), (false, 2), (true, 2), (false, 2)]);
    assert!(fragments[4..].iter().all(|(_, count)| *count == 1), "{fragments:?}");
    for (one, other) in in_order.iter().zip(&reversed) {
        assert_eq!(one.payloads, other.payloads);
    }
}

#[test]
fn both_sides_prove_that_they_know_the_secret() {
    let capture = Capture::parse(DIALOGUE);
    let (keys, nonce_i, nonce_r) = first_keys(&capture);
    let messages = open_all(&capture, &keys, |_| {});
    for (index, message) in messages.iter().take(2).enumerate() {
        assert_eq!(message.exchange, ExchangeType::IkeAuth);
        let id = message.payloads.iter().find_map(|payload| match payload {
            Payload::IdentificationInitiator(id) if message.from_a => Some(id.octets()),
            Payload::IdentificationResponder(id) if !message.from_a => Some(id.octets()),
            _ => None,
        });
        let octets = SignedOctets {
            first_message: &capture.datagrams[index].1,
            nonce: if message.from_a { &nonce_r } else { &nonce_i },
            prf: keys.prf,
            sk_p: if message.from_a { &keys.sk_pi } else { &keys.sk_pr },
            identification: &id.unwrap(),
            intermediate: &[],
        };
        let octets = octets.concatenate();
        assert_eq!(octets, capture.value("auth_octets", index));
        let code = shared_key_code(keys.prf, &capture.secret("secret", 0), &octets);
        assert_eq!(code.expose(), capture.value("auth", index));
        let sent = message.payloads.iter().find_map(|payload| match payload {
            Payload::Authentication { method: 2, data } => Some(data.as_slice()),
            _ => None,
        });
        assert_eq!(sent, Some(code.expose()));
    }
}
