//! Dialogues between this implementation and strongSwan, as both had them: decoded, put together, decrypted,
//! authenticated, and all keys derived anew.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use ikev2::VerifyingKey;
use ikev2::authentication::{SignedOctets, shared_key_code, verify_digital_signature};
use ikev2::wire::{ExchangeType, Message, Payload};
use rustls_pki_types::{CertificateDer, UnixTime};
use std::time::Duration;
use support::capture::Capture;
use support::dialogue::{Opened, first_keys, open_all};

const CERTIFICATES: &str = include_str!("captures/strongswan_5_9_certificates.hex");
const SHARED_SECRET: &str = include_str!("captures/strongswan_6_0_shared_secret.hex");
const RAW_KEYS: &str = include_str!("captures/strongswan_5_9_raw_keys.hex");
const ALL: [&str; 3] = [CERTIFICATES, SHARED_SECRET, RAW_KEYS];

/// When the certificates were valid.
const RECORDED: Duration = Duration::from_secs(1_796_000_000);

/// Both messages of IKE_AUTH with what their AUTH payload covers, which is that of the log; initiator first.
fn authentications(capture: &Capture) -> Vec<(Opened, Vec<u8>)> {
    let (keys, nonce_i, nonce_r) = first_keys(capture);
    let messages = open_all(capture, &keys, |_| {}).into_iter().take(2).enumerate();
    let covered = messages.map(|(index, message)| {
        assert_eq!((message.exchange, message.from_a), (ExchangeType::IkeAuth, index == 0));
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
        (message, octets)
    });
    covered.collect()
}

/// Its AUTH payload: method and data.
fn authentication(message: &Opened) -> (u8, &[u8]) {
    let found = message.payloads.iter().find_map(|payload| match payload {
        Payload::Authentication { method, data } => Some((*method, data.as_slice())),
        _ => None,
    });
    found.unwrap()
}

/// The X.509 certificates that it brings, in order.
fn certificates(message: &Opened) -> Vec<CertificateDer<'_>> {
    let each = message.payloads.iter().filter_map(|payload| match payload {
        Payload::Certificate { encoding: 4, data } => Some(CertificateDer::from(data.as_slice())),
        _ => None,
    });
    each.collect()
}

#[test]
fn every_datagram_decodes_and_encodes_to_the_same_octets() {
    for text in ALL {
        let capture = Capture::parse(text);
        assert!(capture.datagrams.len() >= 4);
        for (_, datagram) in capture.datagrams {
            assert_eq!(Message::decode(&datagram).unwrap().encode(), datagram);
        }
    }
}

#[test]
fn the_keys_are_those_of_the_log_and_open_every_message() {
    for text in ALL {
        let capture = Capture::parse(text);
        let (keys, nonce_i, nonce_r) = first_keys(&capture);
        let derived = [&keys.sk_d, &keys.sk_ei, &keys.sk_er, &keys.sk_pi, &keys.sk_pr];
        for (key, name) in derived.into_iter().zip(["sk_d", "sk_ei", "sk_er", "sk_pi", "sk_pr"]) {
            assert_eq!(key.expose(), capture.value(name, 0), "{name}");
        }
        let material = keys.child(&[], &nonce_i, &nonce_r, 72);
        assert_eq!(material.expose(), [capture.value("esp_i", 0), capture.value("esp_r", 0)].concat());
        let opened = open_all(&capture, &keys, |_| {});
        assert!(opened.iter().all(|message| !message.payloads.is_empty() || message.fragments == 1));
    }
}

#[test]
fn certified_keys_verify_and_lead_to_the_authority() {
    let capture = Capture::parse(CERTIFICATES);
    let authority = CertificateDer::from(capture.value("authority", 0));
    let anchor = webpki::anchor_from_trusted_cert(&authority).unwrap();
    let both = authentications(&capture);
    // Ours brings the one in between, too, and is too long for one datagram.
    let counts: Vec<_> = both.iter().map(|(m, _)| (certificates(m).len(), m.fragments)).collect();
    assert_eq!(counts, [(2, 2), (1, 1)]);
    for (message, octets) in &both {
        let chain = certificates(message);
        let (leaf, others) = chain.split_first().unwrap();
        let leaf = webpki::EndEntityCert::try_from(leaf).unwrap();
        let usage = webpki::KeyUsage::client_auth();
        let (algorithms, now) = (webpki::ALL_VERIFICATION_ALGS, UnixTime::since_unix_epoch(RECORDED));
        leaf.verify_for_usage(algorithms, std::slice::from_ref(&anchor), others, now, usage, None, None)
            .unwrap();
        let key = VerifyingKey::from_spki_der(&leaf.subject_public_key_info()).unwrap();
        let (method, data) = authentication(message);
        assert_eq!(method, 14);
        assert_eq!(verify_digital_signature(data, octets, std::slice::from_ref(&key)), Ok(()));
        let mut forged = octets.clone();
        forged[0] ^= 1;
        assert!(verify_digital_signature(data, &forged, &[key]).is_err());
    }
}

#[test]
fn both_know_the_secret() {
    let capture = Capture::parse(SHARED_SECRET);
    let (keys, ..) = first_keys(&capture);
    for (message, octets) in authentications(&capture) {
        let code = shared_key_code(keys.prf, &capture.secret("secret", 0), &octets);
        assert_eq!(authentication(&message), (2, code.expose()));
    }
}

#[test]
fn raw_keys_sign_what_is_in_the_log() {
    for (message, _) in authentications(&Capture::parse(RAW_KEYS)) {
        let (method, data) = authentication(&message);
        // Seven octets that name Ed25519 and the octet of their length, then the signature.
        assert_eq!((method, data.len()), (14, 8 + 64));
        assert!(certificates(&message).is_empty());
    }
}
