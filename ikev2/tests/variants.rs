//! The handshake in its variants: hybrid, fragmented, childless, other algorithms, shared keys.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use std::time::Duration;

use ikev2::key_exchange::Method;
use ikev2::sealed_payload::{IkeCipher, Integrity};
use ikev2::wire::{ExchangeType, Header};
use ikev2::{Config, ConnectionConfig, EspAlgorithm, SecretBytes};
use support::pair::{LINK, Pair, Side, calm, connection, node_config};

fn build(
    seed: u64,
    configure: impl Fn(Side, &mut Config),
    connect: impl Fn(Side, &mut ConnectionConfig),
) -> Pair {
    let [a, b] = [Side::A, Side::B].map(|side| {
        let mut config = node_config(side, calm());
        configure(side, &mut config);
        config
    });
    let mut pair = Pair::with_configs(seed, a, b);
    let now = pair.now;
    for side in [Side::A, Side::B] {
        let mut config = connection(side);
        connect(side, &mut config);
        pair.node(side).endpoint.set_connection(LINK, config, now);
    }
    pair
}

fn dial(pair: &mut Pair) {
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(3));
}

/// Offers and accepts this one in addition.
fn hybrid(config: &mut Config, method: Method) {
    config.additional_methods = vec![method];
    config.offer_hybrid = true;
}

/// Both kinds of rekey, from both sides.
fn assert_rekeys(pair: &mut Pair) {
    for side in [Side::A, Side::B] {
        let old = *pair.node(side).children.keys().next().unwrap();
        let now = pair.now;
        pair.node(side).endpoint.rekey_child(old, now);
        pair.drive_for(Duration::from_secs(8));
        assert!(!pair.node(side).children.contains_key(&old));
        pair.assert_one_tunnel();
        let before = pair.a.established()[0].spis;
        let now = pair.now;
        pair.node(side).endpoint.rekey_ike(LINK, now);
        pair.drive_for(Duration::from_secs(8));
        assert_ne!(pair.a.established()[0].spis, before);
        pair.assert_one_tunnel();
    }
}

fn exchanges(pair: &Pair) -> Vec<ExchangeType> {
    pair.log.iter().map(|(_, octets)| Header::decode(octets).unwrap().exchange().unwrap()).collect()
}

#[test]
fn hybrid_key_exchange_is_used_where_both_want_it_and_kept_in_rekeys() {
    let mut pair = build(1, |_, config| hybrid(config, Method::MlKem768), |_, _| {});
    dial(&mut pair);
    pair.assert_one_tunnel();
    assert_eq!(pair.a.established()[0].key_exchange, "X25519 + ML-KEM-768");
    assert!(exchanges(&pair).contains(&ExchangeType::IkeIntermediate));
    assert!(pair.log.iter().all(|(_, octets)| octets.len() <= 1180));
    assert_rekeys(&mut pair);
    assert_eq!(pair.b.established()[0].key_exchange, "X25519 + ML-KEM-768");
    let follow_ups =
        exchanges(&pair).iter().filter(|exchange| **exchange == ExchangeType::IkeFollowupKe).count();
    assert_eq!(follow_ups, 4 * 3, "two fragments out, one back, for each of four rekeys");
}

#[test]
fn hybrid_key_exchange_is_accepted_from_a_peer_that_offers_it() {
    let mut pair = build(14, |side, config| config.offer_hybrid = side == Side::A, |_, _| {});
    dial(&mut pair);
    pair.assert_one_tunnel();
    assert_eq!(pair.b.established()[0].key_exchange, "X25519 + ML-KEM-768");
}

#[test]
fn each_key_encapsulation_works_and_is_kept_in_rekeys() {
    for (method, name) in [
        (Method::MlKem512, "P-384 + ML-KEM-512"),
        (Method::MlKem768, "P-384 + ML-KEM-768"),
        (Method::MlKem1024, "P-384 + ML-KEM-1024"),
    ] {
        let mut pair = build(
            12,
            |_, config| {
                config.key_exchange_methods = vec![Method::P384];
                hybrid(config, method);
            },
            |_, _| {},
        );
        dial(&mut pair);
        pair.assert_one_tunnel();
        assert_rekeys(&mut pair);
        assert_eq!(pair.b.established()[0].key_exchange, name);
    }
}

/// Old ciphers fragment like the others.
#[test]
fn a_handshake_with_an_old_cipher_is_cut_to_size() {
    let cipher = IkeCipher::Aes128Cbc(Integrity::HmacSha256);
    let mut pair = build(
        13,
        |_, config| {
            config.ike_ciphers = vec![cipher];
            config.fragment_size = 230;
        },
        |_, _| {},
    );
    dial(&mut pair);
    pair.assert_one_tunnel();
    let secured = pair.log.iter().filter(|(_, octets)| Header::decode(octets).unwrap().exchange_code != 34);
    assert!(
        secured.clone().count() > 4 && secured.map(|(_, octets)| octets.len()).all(|length| length <= 230)
    );
    assert_rekeys(&mut pair);
}

#[test]
fn a_classical_peer_is_met_with_classical_key_exchange() {
    for with in [Side::A, Side::B] {
        let configure = |side, config: &mut Config| {
            config.additional_methods.clear();
            if side == with {
                hybrid(config, Method::MlKem768);
            }
        };
        let mut pair = build(2, configure, |_, _| {});
        dial(&mut pair);
        pair.assert_one_tunnel();
        assert_eq!(pair.a.established()[0].key_exchange, "X25519");
        assert!(!exchanges(&pair).contains(&ExchangeType::IkeIntermediate));
        assert_rekeys(&mut pair);
    }
}

#[test]
fn any_fragment_of_a_hybrid_handshake_may_be_lost() {
    for lost in 0..8 {
        let mut pair = build(3, |_, config| hybrid(config, Method::MlKem768), |_, _| {});
        pair.lose.push(lost);
        dial(&mut pair);
        pair.assert_one_tunnel();
        assert_eq!((pair.a.ups, pair.b.ups), (1, 1));
    }
}

#[test]
fn small_datagrams_fragment_everything_but_the_first_exchange() {
    let mut pair = build(4, |_, config| config.fragment_size = 200, |_, _| {});
    pair.network.duplicate_percent = 50;
    pair.network.jitter = Duration::from_millis(15);
    dial(&mut pair);
    pair.assert_one_tunnel();
    let after_init =
        pair.log.iter().filter(|(_, octets)| Header::decode(octets).unwrap().exchange_code != 34);
    assert!(after_init.clone().count() > 4);
    assert!(after_init.map(|(_, octets)| octets.len()).all(|length| length <= 200));
    assert_rekeys(&mut pair);
}

#[test]
fn another_key_exchange_method_costs_one_round_trip_and_is_remembered() {
    let methods = |side| match side {
        Side::A => vec![Method::X25519, Method::P256],
        Side::B => vec![Method::P256],
    };
    let mut pair = build(5, |side, config| config.key_exchange_methods = methods(side), |_, _| {});
    dial(&mut pair);
    pair.assert_one_tunnel();
    assert_eq!(pair.a.established()[0].key_exchange, "P-256");
    assert_eq!(pair.log.len(), 6, "INVALID_KE_PAYLOAD once");
    assert_rekeys(&mut pair);
}

#[test]
fn no_common_method_ends_the_attempt_with_the_reason() {
    let method = |side| if side == Side::A { Method::X25519 } else { Method::P256 };
    let mut pair = build(6, |side, config| config.key_exchange_methods = vec![method(side)], |_, _| {});
    let now = pair.now;
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(120));
    assert_eq!(pair.a.saw("Refused(14)"), 1, "{:?}", pair.a.events);
}

#[test]
fn each_cipher_works_for_ike_and_for_esp() {
    for (ike, esp, key) in [
        (IkeCipher::Aes256Gcm16, EspAlgorithm::Aes128Gcm16, 20),
        (IkeCipher::Aes128Gcm16, EspAlgorithm::ChaCha20Poly1305, 36),
        (IkeCipher::ChaCha20Poly1305, EspAlgorithm::Aes256Gcm16, 36),
        (IkeCipher::Aes256Cbc(Integrity::HmacSha256), EspAlgorithm::Aes256Gcm16, 36),
        (IkeCipher::Aes256Cbc(Integrity::HmacSha384), EspAlgorithm::Aes256Gcm16, 36),
        (IkeCipher::Aes128Cbc(Integrity::HmacSha512), EspAlgorithm::Aes128Gcm16, 20),
    ] {
        let mut pair = build(
            7,
            |side, config| {
                if side == Side::B {
                    config.ike_ciphers = vec![ike];
                }
            },
            |side, config| {
                if side == Side::A {
                    config.esp_algorithms = vec![esp];
                }
            },
        );
        dial(&mut pair);
        pair.assert_one_tunnel();
        let report = &pair.a.established()[0];
        assert_eq!((report.encryption, report.children[0].algorithm), (ike.name(), esp));
        assert!(pair.a.children.values().all(|child| child.key_in.len() == key));
        assert_rekeys(&mut pair);
    }
}

#[test]
fn without_a_common_esp_algorithm_the_ike_sa_stays_and_says_nothing_false() {
    let algorithm =
        |side| if side == Side::A { EspAlgorithm::Aes256Gcm16 } else { EspAlgorithm::ChaCha20Poly1305 };
    let mut pair = build(8, |_, _| {}, |side, config| config.esp_algorithms = vec![algorithm(side)]);
    dial(&mut pair);
    assert_eq!((pair.a.established().len(), pair.b.established().len()), (1, 1));
    assert!(pair.a.children.is_empty() && pair.b.children.is_empty());
    pair.drive_for(Duration::from_secs(60));
    assert!(pair.log.len() < 60, "retries back off: {}", pair.log.len());
}

#[test]
fn a_childless_handshake_makes_its_first_child_afterwards() {
    let mut pair = build(9, |_, _| {}, |side, config| config.childless = side == Side::A);
    dial(&mut pair);
    pair.assert_one_tunnel();
    let created =
        exchanges(&pair).iter().filter(|exchange| **exchange == ExchangeType::CreateChildSa).count();
    assert_eq!(created, 2);
}

#[test]
fn a_shared_key_authenticates_both_or_nobody() {
    for (b_secret, agree) in [("secret", true), ("Secret", false)] {
        let secret = |side| if side == Side::A { "secret" } else { b_secret };
        let mut pair = build(
            10,
            |_, _| {},
            |side, config| {
                config.pre_shared_key = Some(SecretBytes::new(secret(side).as_bytes().to_vec()));
                config.remote_keys.clear();
            },
        );
        dial(&mut pair);
        assert_eq!(pair.a.established().len(), usize::from(agree));
        assert_eq!(pair.b.established().len(), usize::from(agree));
        assert_eq!(pair.a.saw("Refused(24)"), usize::from(!agree));
    }
}

#[test]
fn a_shared_key_does_not_open_a_connection_that_wants_a_signature() {
    let mut pair = build(
        11,
        |_, _| {},
        |side, config| {
            if side == Side::A {
                config.pre_shared_key = Some(SecretBytes::new(b"secret".to_vec()));
            }
        },
    );
    dial(&mut pair);
    assert!(pair.a.established().is_empty() && pair.b.established().is_empty());
}
