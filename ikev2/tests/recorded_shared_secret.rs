//! A dialogue of two real daemons with a shared secret and forced fragments: put together, decrypted, authenticated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use ikev2::authentication::{SignedOctets, shared_key_code};
use ikev2::wire::{ExchangeType, Payload};
use support::capture::Capture;
use support::dialogue::{first_keys, open_all};

const DIALOGUE: &str = include_str!("captures/strongswan_shared_secret_fragments.hex");

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
