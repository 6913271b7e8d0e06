//! Dialogues of real daemons: decoded, decrypted, authenticated, and all keys derived anew.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use ikev2::authentication::{SignedOctets, verify_digital_signature};
use ikev2::key_exchange::Method;
use ikev2::key_schedule::{Freshness, IkeKeys, Prf};
use ikev2::proposal::IkePolicy;
use ikev2::sealed_payload::{IkeCipher, PayloadCipher};
use ikev2::wire::{Delete, Message, Payload};
use ikev2::{Ed25519Signer, Signer};
use support::capture::{Capture, nonce, open, open_chain};

const HYBRID: &str = include_str!("captures/strongswan_x25519_ml_kem_768.hex");
const X25519: &str = include_str!("captures/strongswan_x25519.hex");
const PLAIN: [&str; 3] = [
    include_str!("captures/strongswan_plain_x25519.hex"),
    include_str!("captures/strongswan_plain_ml_kem_768.hex"),
    include_str!("captures/strongswan_plain_x25519_port500_float.hex"),
];

fn policy() -> IkePolicy {
    IkePolicy {
        ciphers: vec![IkeCipher::Aes256Gcm16],
        prfs: vec![Prf::HmacSha256],
        methods: vec![Method::X25519],
        additional: vec![],
    }
}

/// Ciphers of an IKE SA: from initiator, from responder.
fn ciphers(keys: &IkeKeys) -> (PayloadCipher, PayloadCipher) {
    (
        PayloadCipher::new(keys.cipher, &keys.sk_ei, &keys.sk_ai),
        PayloadCipher::new(keys.cipher, &keys.sk_er, &keys.sk_ar),
    )
}

fn assert_logged(keys: &IkeKeys, capture: &Capture, index: usize) {
    for (name, value) in [
        ("sk_d", &keys.sk_d),
        ("sk_ei", &keys.sk_ei),
        ("sk_er", &keys.sk_er),
        ("sk_pi", &keys.sk_pi),
        ("sk_pr", &keys.sk_pr),
    ] {
        assert_eq!(value.expose(), capture.value(name, index), "{name} {index}");
    }
}

fn proposals(payloads: &[Payload]) -> Vec<ikev2::wire::Proposal> {
    let found = payloads.iter().find_map(|payload| match payload {
        Payload::SecurityAssociation(proposals) => Some(proposals.clone()),
        _ => None,
    });
    found.unwrap()
}

/// Keys of the first IKE SA and the nonces that made them.
fn first_keys(capture: &Capture) -> (IkeKeys, Vec<u8>, Vec<u8>) {
    let (request, response) = (capture.message(0), capture.message(1));
    let (nonce_i, nonce_r) = (nonce(&request.payloads), nonce(&response.payloads));
    let fresh = Freshness {
        nonce_i: &nonce_i,
        nonce_r: &nonce_r,
        spi_i: response.header.spi_i,
        spi_r: response.header.spi_r,
    };
    let keys = IkeKeys::initial(Prf::HmacSha256, IkeCipher::Aes256Gcm16, &capture.secret("ke", 0), fresh);
    (keys, nonce_i, nonce_r)
}

#[test]
fn every_recorded_datagram_decodes_and_encodes_to_the_same_octets() {
    for text in PLAIN.into_iter().chain([X25519, HYBRID]) {
        for (_, datagram) in Capture::parse(text).datagrams {
            assert_eq!(Message::decode(&datagram).unwrap().encode(), datagram);
        }
    }
}

#[test]
fn we_choose_what_the_real_responder_chose_and_accept_its_answer() {
    let capture = Capture::parse(X25519);
    let (offer, answer) = (proposals(&capture.message(0).payloads), proposals(&capture.message(1).payloads));
    let choice = policy().select(&offer, Some(31)).unwrap();
    assert_eq!(vec![choice.proposal], answer);
    assert_eq!(policy().confirm(&answer).unwrap().suite, choice.suite);
}

#[test]
fn the_key_schedule_is_that_of_the_log() {
    let capture = Capture::parse(X25519);
    let (keys, ..) = first_keys(&capture);
    assert_logged(&keys, &capture, 0);
}

#[test]
fn both_authentications_verify_and_ours_would_be_the_same_octets() {
    let capture = Capture::parse(X25519);
    let (keys, nonce_i, nonce_r) = first_keys(&capture);
    let (from_i, from_r) = ciphers(&keys);
    for (index, cipher, of_initiator) in [(2, &from_i, true), (3, &from_r, false)] {
        let payloads = open(cipher, &capture.datagrams[index].1);
        let id = payloads.iter().find_map(|payload| match payload {
            Payload::IdentificationInitiator(id) if of_initiator => Some(id.clone()),
            Payload::IdentificationResponder(id) if !of_initiator => Some(id.clone()),
            _ => None,
        });
        let id = id.unwrap();
        let name = if of_initiator { "a.mesh.test" } else { "b.mesh.test" };
        assert_eq!(id.identity().unwrap(), ikev2::Identity::Fqdn(name.into()));
        let octets = SignedOctets {
            first_message: &capture.datagrams[index - 2].1,
            nonce: if of_initiator { &nonce_r } else { &nonce_i },
            prf: keys.prf,
            sk_p: if of_initiator { &keys.sk_pi } else { &keys.sk_pr },
            identification: &id.octets(),
            intermediate: &[],
        };
        let octets = octets.concatenate();
        assert_eq!(octets, capture.value("auth_octets", usize::from(!of_initiator)));
        let data = payloads.iter().find_map(|payload| match payload {
            Payload::Authentication { method: 14, data } => Some(data.clone()),
            _ => None,
        });
        let data = data.unwrap();
        let seed = capture.value(if of_initiator { "seed_a" } else { "seed_b" }, 0);
        let signer = Ed25519Signer::from_seed(&seed.try_into().unwrap());
        assert_eq!(verify_digital_signature(&data, &octets, &[signer.public_key()]), Ok(()));
        assert_eq!(data[8..], signer.sign(&octets, ikev2::SignatureHash::Identity).unwrap());
    }
}

#[test]
fn child_keys_of_the_handshake_and_of_the_rekey_are_those_of_the_log() {
    let capture = Capture::parse(X25519);
    let (keys, nonce_i, nonce_r) = first_keys(&capture);
    let material = keys.child(&[], &nonce_i, &nonce_r, 72);
    assert_eq!(material.expose(), [capture.value("esp_i", 0), capture.value("esp_r", 0)].concat());

    let (from_i, from_r) = ciphers(&keys);
    let (request, response) =
        (open(&from_i, &capture.datagrams[4].1), open(&from_r, &capture.datagrams[5].1));
    let secrets = [capture.secret("ke", 1)];
    let material = keys.child(&secrets, &nonce(&request), &nonce(&response), 72);
    assert_eq!(material.expose(), [capture.value("esp_i", 1), capture.value("esp_r", 1)].concat());
}

#[test]
fn the_rekeyed_ike_association_has_the_keys_of_the_log_and_opens_the_rest() {
    let capture = Capture::parse(X25519);
    let (keys, ..) = first_keys(&capture);
    let (from_i, from_r) = ciphers(&keys);
    let (request, response) =
        (open(&from_i, &capture.datagrams[8].1), open(&from_r, &capture.datagrams[9].1));
    let spi =
        |payloads: &[Payload]| u64::from_be_bytes(proposals(payloads)[0].spi.clone().try_into().unwrap());
    let (nonce_i, nonce_r) = (nonce(&request), nonce(&response));
    let fresh =
        Freshness { nonce_i: &nonce_i, nonce_r: &nonce_r, spi_i: spi(&request), spi_r: spi(&response) };
    let new = keys.rekeyed(Prf::HmacSha256, IkeCipher::Aes256Gcm16, &[capture.secret("ke", 2)], fresh);
    assert_logged(&new, &capture, 1);
    // The old SA is deleted, and later the new one by its own keys.
    assert_eq!(open(&from_i, &capture.datagrams[10].1), [Payload::Delete(Delete::IkeSa)]);
    assert_eq!(open(&from_r, &capture.datagrams[11].1), []);
    let (new_from_i, new_from_r) = ciphers(&new);
    assert_eq!(open(&new_from_i, &capture.datagrams[12].1), [Payload::Delete(Delete::IkeSa)]);
    assert_eq!(open(&new_from_r, &capture.datagrams[13].1), []);
}

/// IntAuth_A | IntAuth_P of a message, from the datagram that it came in (its first fragment).
fn int_auth_octets(datagram: &[u8], plaintext: &[u8], first: u8) -> Vec<u8> {
    let length = u32::try_from(32 + plaintext.len()).unwrap().to_be_bytes();
    let payload_length = u16::try_from(4 + plaintext.len()).unwrap().to_be_bytes();
    [&datagram[..16], &[46], &datagram[17..24], &length, &[first, 0], &payload_length, plaintext].concat()
}

/// Both IKE_INTERMEDIATE messages: their KE payloads, and what IntAuth covers.
fn intermediate(capture: &Capture, keys: &IkeKeys) -> (Vec<u8>, Vec<u8>) {
    let (from_i, from_r) = ciphers(keys);
    let (first, mut request) = open_chain(&from_i, &capture.datagrams[2].1);
    request.extend(open_chain(&from_i, &capture.datagrams[3].1).1);
    let (first_back, response) = open_chain(&from_r, &capture.datagrams[4].1);
    (
        int_auth_octets(&capture.datagrams[2].1, &request, first),
        int_auth_octets(&capture.datagrams[4].1, &response, first_back),
    )
}

#[test]
fn a_hybrid_handshake_has_the_keys_and_the_authentication_of_the_log() {
    let capture = Capture::parse(HYBRID);
    let (keys, nonce_i, nonce_r) = first_keys(&capture);
    assert_logged(&keys, &capture, 0);
    let (request, response) = intermediate(&capture, &keys);
    let header = capture.message(1).header;
    let fresh = Freshness { nonce_i: &nonce_i, nonce_r: &nonce_r, spi_i: header.spi_i, spi_r: header.spi_r };
    let mixed = keys.mixed(&capture.secret("ke", 1), fresh);
    assert_logged(&mixed, &capture, 1);

    let parts = [
        keys.prf.compute(keys.sk_pi.expose(), &[&request]),
        keys.prf.compute(keys.sk_pr.expose(), &[&response]),
    ];
    let int_auth = [parts[0].expose(), parts[1].expose(), &2u32.to_be_bytes()].concat();
    let (from_i, from_r) = ciphers(&mixed);
    for (index, cipher, of_initiator) in [(5, &from_i, true), (6, &from_r, false)] {
        let payloads = open(cipher, &capture.datagrams[index].1);
        let id = payloads.iter().find_map(|payload| match payload {
            Payload::IdentificationInitiator(id) if of_initiator => Some(id.clone()),
            Payload::IdentificationResponder(id) if !of_initiator => Some(id.clone()),
            _ => None,
        });
        let octets = SignedOctets {
            first_message: &capture.datagrams[usize::from(!of_initiator)].1,
            nonce: if of_initiator { &nonce_r } else { &nonce_i },
            prf: mixed.prf,
            sk_p: if of_initiator { &mixed.sk_pi } else { &mixed.sk_pr },
            identification: &id.unwrap().octets(),
            intermediate: &int_auth,
        };
        assert_eq!(octets.concatenate(), capture.value("auth_octets", usize::from(!of_initiator)));
    }
    let material = mixed.child(&[], &nonce_i, &nonce_r, 72);
    assert_eq!(material.expose(), [capture.value("esp_i", 0), capture.value("esp_r", 0)].concat());
}

#[test]
fn hybrid_rekeys_of_both_kinds_have_the_keys_of_the_log() {
    let capture = Capture::parse(HYBRID);
    let (keys, nonce_i, nonce_r) = first_keys(&capture);
    let header = capture.message(1).header;
    let fresh = Freshness { nonce_i: &nonce_i, nonce_r: &nonce_r, spi_i: header.spi_i, spi_r: header.spi_r };
    let mixed = keys.mixed(&capture.secret("ke", 1), fresh);
    let (from_i, from_r) = ciphers(&mixed);
    // CHILD: CREATE_CHILD_SA, then IKE_FOLLOWUP_KE in two fragments.
    let (request, response) =
        (open(&from_i, &capture.datagrams[7].1), open(&from_r, &capture.datagrams[8].1));
    let secrets = [capture.secret("ke", 2), capture.secret("ake", 0)];
    let material = mixed.child(&secrets, &nonce(&request), &nonce(&response), 72);
    assert_eq!(material.expose(), [capture.value("esp_i", 1), capture.value("esp_r", 1)].concat());
    // IKE.
    let (request, response) =
        (open(&from_i, &capture.datagrams[14].1), open(&from_r, &capture.datagrams[15].1));
    let spi =
        |payloads: &[Payload]| u64::from_be_bytes(proposals(payloads)[0].spi.clone().try_into().unwrap());
    let (nonce_i, nonce_r) = (nonce(&request), nonce(&response));
    let fresh =
        Freshness { nonce_i: &nonce_i, nonce_r: &nonce_r, spi_i: spi(&request), spi_r: spi(&response) };
    let secrets = [capture.secret("ke", 3), capture.secret("ake", 1)];
    let new = mixed.rekeyed(Prf::HmacSha256, IkeCipher::Aes256Gcm16, &secrets, fresh);
    assert_logged(&new, &capture, 2);
}
