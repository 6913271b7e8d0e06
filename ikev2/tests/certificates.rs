//! Peers that prove themselves by certificate, and raw keys of other kinds (RFC 7296 §3.6, RFC 7427, RFC 4945).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is a failed test; a wall clock needs an instant to start from"
)]

mod support;

use std::time::Duration;

use ikev2::{Identity, OwnCertificate, WallClock};
use rcgen::{
    ExtendedKeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    SignatureAlgorithm,
};
use support::authority::{Ca, only_for};
use support::pair::{LINK, Pair, Side, calm, connection, identity, node_config};

/// Noon of 2026-06-01; certificates of these tests are valid from 1975 to 4096 unless they are spoilt.
const TODAY: Duration = Duration::from_secs(1_780_315_200);

fn alice() -> Identity {
    Identity::Fqdn("alice.mesh.test".into())
}

fn bob() -> Identity {
    Identity::Fqdn("bob.mesh.test".into())
}

/// A and B, each with a certificate, each trusting the other's authority; A dials.
fn meet(ids: [Identity; 2], certificates: [OwnCertificate; 2], trusted: [&Ca; 2]) -> Pair {
    let [of_a, of_b] = certificates;
    let (mut a, mut b) = (node_config(Side::A, calm()), node_config(Side::B, calm()));
    a.certificate = Some(of_a);
    b.certificate = Some(of_b);
    let clock = WallClock { at: std::time::Instant::now(), since_epoch: TODAY };
    (a.wall_clock, b.wall_clock) = (Some(clock), Some(clock));
    let mut pair = Pair::with_configs(1, a, b);
    let now = pair.now;
    for (side, ours, theirs, ca) in
        [(Side::A, &ids[0], &ids[1], trusted[0]), (Side::B, &ids[1], &ids[0], trusted[1])]
    {
        let mut config = connection(side);
        config.local_id = ours.clone();
        config.remote_id = theirs.clone();
        config.remote_keys.clear();
        config.remote_authorities = vec![ca.authority()];
        config.prove_by_certificate = true;
        pair.node(side).endpoint.set_connection(LINK, config, now);
    }
    pair.a.endpoint.dial(LINK, now).unwrap();
    pair.drive_for(Duration::from_secs(3));
    pair
}

fn assert_refused(pair: &Pair, label: &str) {
    assert!(pair.a.established().is_empty() && pair.b.established().is_empty(), "{label}");
    assert!(pair.a.children.is_empty() && pair.b.children.is_empty(), "{label}");
}

const KINDS: [&SignatureAlgorithm; 4] =
    [&PKCS_ED25519, &PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_RSA_SHA256];

#[test]
fn each_kind_of_key_authenticates_through_each_kind_of_authority() {
    for authority in KINDS {
        let root = Ca::new("root", authority);
        let middle = root.below("middle", &PKCS_ECDSA_P256_SHA256);
        for leaf in KINDS {
            let certificates = [root.issue(&alice(), leaf, |_| {}), middle.issue(&bob(), leaf, |_| {})];
            let mut pair = meet([alice(), bob()], certificates, [&root, &root]);
            pair.assert_one_tunnel();
        }
    }
}

#[test]
fn names_of_all_kinds_are_found_in_the_certificate() {
    let root = Ca::new("root", &PKCS_ED25519);
    let addresses = [Identity::Ipv4("192.0.2.1".parse().unwrap()), Identity::Ipv6("::5".parse().unwrap())];
    let certificates =
        [root.issue(&addresses[0], &PKCS_ED25519, |_| {}), root.issue(&addresses[1], &PKCS_ED25519, |_| {})];
    meet(addresses, certificates, [&root, &root]).assert_one_tunnel();
    let names = [identity("alice"), identity("bob")];
    let certificates = [
        root.issue_for_name(["mesh", "alice", "0"], &PKCS_ED25519),
        root.issue_for_name(["mesh", "bob", "0"], &PKCS_ED25519),
    ];
    assert_eq!(certificates[0].check(&names[0]), Ok(()));
    assert!(certificates[0].check(&names[1]).is_err());
    meet(names, certificates, [&root, &root]).assert_one_tunnel();
}

#[test]
fn a_certificate_for_somebody_else_or_from_somebody_else_is_refused() {
    let (root, other) = (Ca::new("root", &PKCS_ED25519), Ca::new("root", &PKCS_ED25519));
    let good = |id: &Identity| root.issue(id, &PKCS_ED25519, |_| {});
    let names_other = [root.issue(&bob(), &PKCS_ED25519, |_| {}), good(&bob())];
    assert_refused(&meet([alice(), bob()], names_other, [&root, &root]), "the initiator is not alice");
    let names_other = [good(&alice()), root.issue(&alice(), &PKCS_ED25519, |_| {})];
    assert_refused(&meet([alice(), bob()], names_other, [&root, &root]), "the responder is not bob");
    let strangers = [other.issue(&alice(), &PKCS_ED25519, |_| {}), good(&bob())];
    assert_refused(&meet([alice(), bob()], strangers, [&root, &root]), "another authority of that name");
    let wildcard = Identity::Fqdn("*.mesh.test".into());
    let wildcards = [root.issue(&wildcard, &PKCS_ED25519, |_| {}), good(&bob())];
    assert_refused(&meet([alice(), bob()], wildcards, [&root, &root]), "a wildcard");
    // A certificate that somebody stole, without its key.
    let stolen = OwnCertificate { chain: good(&alice()).chain, signer: good(&alice()).signer };
    assert_refused(&meet([alice(), bob()], [stolen, good(&bob())], [&root, &root]), "a stolen certificate");
    // One that was issued by a node that is no authority.
    let node = good(&alice());
    let mut forged = other.issue(&alice(), &PKCS_ED25519, |_| {});
    forged.chain.extend(node.chain);
    assert_refused(&meet([alice(), bob()], [forged, good(&bob())], [&root, &root]), "a node as authority");
}

#[test]
fn validity_and_purpose_are_checked() {
    let root = Ca::new("root", &PKCS_ED25519);
    let with = |change: &dyn Fn(&mut rcgen::CertificateParams)| {
        let certificates =
            [root.issue(&alice(), &PKCS_ED25519, change), root.issue(&bob(), &PKCS_ED25519, |_| {})];
        meet([alice(), bob()], certificates, [&root, &root])
    };
    let until = |year| {
        move |params: &mut rcgen::CertificateParams| params.not_after = rcgen::date_time_ymd(year, 1, 1)
    };
    assert_refused(&with(&until(2026)), "expired");
    with(&until(2027)).assert_one_tunnel();
    assert_refused(&with(&|params| params.not_before = rcgen::date_time_ymd(2027, 1, 1)), "not valid yet");
    assert_refused(&with(&only_for(ExtendedKeyUsagePurpose::CodeSigning)), "for signing code");
    for purpose in [
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::Any,
        ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 17]),
    ] {
        with(&only_for(purpose)).assert_one_tunnel();
    }
}

/// Sizes and numbers that only a hostile peer sends cost nothing and end nothing else.
#[test]
fn too_many_and_broken_certificates_are_refused() {
    let root = Ca::new("root", &PKCS_ED25519);
    let good = root.issue(&alice(), &PKCS_ED25519, |_| {}).chain.remove(0);
    for chain in [
        vec![],
        vec![vec![]],
        vec![vec![0x30; 9000]],
        vec![good[..good.len() - 1].to_vec()],
        std::iter::repeat_n(good.clone(), 7).collect(),
        vec![vec![0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], good],
    ] {
        let hostile = OwnCertificate { chain, ..root.issue(&alice(), &PKCS_ED25519, |_| {}) };
        let pair =
            meet([alice(), bob()], [hostile, root.issue(&bob(), &PKCS_ED25519, |_| {})], [&root, &root]);
        assert_refused(&pair, "hostile chain");
    }
}

#[test]
fn raw_keys_of_all_kinds_are_pinned_like_ed25519() {
    let root = Ca::new("unused", &PKCS_ED25519);
    for kind in KINDS {
        for good in [true, false] {
            let [mut a, mut b] = [Side::A, Side::B].map(|side| node_config(side, calm()));
            a.signer = root.issue(&alice(), kind, |_| {}).signer;
            b.signer = root.issue(&bob(), kind, |_| {}).signer;
            (a.send_certificate, b.send_certificate) = (true, true);
            let keys = [a.signer.public_key(), b.signer.public_key()];
            let mut pair = Pair::with_configs(3, a, b);
            let now = pair.now;
            for (side, other) in [(Side::A, 1), (Side::B, 0)] {
                let mut config = connection(side);
                // The old key of the peer and the new one count at once.
                config.remote_keys.push(keys[if good { other } else { 1 - other }].clone());
                pair.node(side).endpoint.set_connection(LINK, config, now);
            }
            pair.a.endpoint.dial(LINK, now).unwrap();
            pair.drive_for(Duration::from_secs(3));
            if good {
                pair.assert_one_tunnel();
            } else {
                assert_refused(&pair, "another key");
            }
        }
    }
}

#[test]
fn an_authority_that_is_no_longer_trusted_cuts_the_peer() {
    let (root, other) = (Ca::new("root", &PKCS_ED25519), Ca::new("other", &PKCS_ED25519));
    let certificates =
        [root.issue(&alice(), &PKCS_ED25519, |_| {}), root.issue(&bob(), &PKCS_ED25519, |_| {})];
    let mut pair = meet([alice(), bob()], certificates, [&root, &root]);
    pair.assert_one_tunnel();
    for (authorities, stays) in
        [(vec![root.authority(), other.authority()], true), (vec![other.authority()], false)]
    {
        let mut config = connection(Side::B);
        (config.local_id, config.remote_id) = (bob(), alice());
        config.remote_keys.clear();
        config.remote_authorities = authorities;
        config.prove_by_certificate = true;
        let now = pair.now;
        pair.b.endpoint.set_connection(LINK, config, now);
        pair.drive_for(Duration::from_secs(1));
        assert_eq!(!pair.b.established().is_empty(), stays);
        assert_eq!(!pair.a.established().is_empty(), stays);
    }
}
