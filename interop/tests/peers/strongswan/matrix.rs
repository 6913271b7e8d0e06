//! Every way to set up a tunnel: releases, roles, families, algorithms, fragments, childless IKE SAs, proofs.

use super::credentials::Credentials;
use super::pair::{Dialler, Pair, Setup};
use super::{PEER, RELEASES};
use crate::case::{Case, is_full};
use crate::pairwise;
use lab::peers::Release;

const DIALLERS: [Dialler; 2] = [Dialler::Us, Dialler::Peer];
const FAMILIES: [(&str, bool); 2] = [("ip4", false), ("ip6", true)];

/// Name, proposals for IKE and ESP, and how we name key exchange, IKE cipher and ESP cipher.
type Suite = (&'static str, &'static str, &'static str, [&'static str; 3]);

const SUITES: [Suite; 5] = [
    (
        "x25519_aes256",
        "aes256gcm16-prfsha256-x25519",
        "aes256gcm16-x25519",
        ["x25519", "aes-256-gcm-16", "aes-256-gcm-16"],
    ),
    (
        "p256_aes128",
        "aes128gcm16-prfsha384-ecp256",
        "aes128gcm16-ecp256",
        ["p-256", "aes-128-gcm-16", "aes-128-gcm-16"],
    ),
    (
        "x25519_chacha",
        "chacha20poly1305-prfsha512-x25519",
        "chacha20poly1305-x25519",
        ["x25519", "chacha20-poly1305", "chacha20-poly1305"],
    ),
    (
        HYBRID,
        "aes256gcm16-prfsha256-x25519-ke1_mlkem768",
        "aes256gcm16-x25519-ke1_mlkem768",
        ["x25519 + ml-kem-768", "aes-256-gcm-16", "aes-256-gcm-16"],
    ),
    // What charon proposes where nothing is configured, which is what ranet leaves it at.
    ("default", "default", "default", ["", "", ""]),
];

/// The suite with key encapsulation, which strongSwan has since 6.0 and Debian builds since forky.
const HYBRID: &str = "x25519_ml_kem_768";

/// Fragments and childless IKE SAs: name, lines of the daemon, lines of the connection.
const MANNERS: [(&str, &str, &str); 3] = [
    ("as_it_is", "", ""),
    ("fragments", "fragment_size = 296\n", "fragmentation = force\n"),
    ("childless", "", "childless = force\n"),
];

const PROOFS: [(&str, Credentials); 3] = [
    ("raw_keys", Credentials::RawKeys),
    ("certificates", Credentials::Certificates),
    ("shared_secret", Credentials::SharedSecret),
];

pub(crate) fn cases() -> Vec<Case> {
    let sizes = [RELEASES.len(), DIALLERS.len(), FAMILIES.len(), SUITES.len(), MANNERS.len(), PROOFS.len()];
    let mut combinations = pairwise::all(&sizes);
    // A charon that insists on childless IKE SAs refuses to be dialled in another way.
    combinations
        .retain(|choice| !(DIALLERS[choice[1]] == Dialler::Us && MANNERS[choice[4]].0 == "childless"));
    combinations.retain(|choice| SUITES[choice[3]].0 != HYBRID || RELEASES[choice[0]] == Release::DebianNext);
    if !is_full() {
        combinations = pairwise::sample(&combinations);
    }
    combinations.iter().map(|choice| case(choice)).collect()
}

fn case(choice: &[usize]) -> Case {
    let (release, dialler) = (RELEASES[choice[0]], DIALLERS[choice[1]]);
    let ((family, ipv6), suite, manner) = (FAMILIES[choice[2]], SUITES[choice[3]], MANNERS[choice[4]]);
    let (proof, credentials) = PROOFS[choice[5]];
    let name = [release.recipe().name, dialler.role(), family, suite.0, manner.0, proof].join("/");
    let setup = Setup {
        release,
        dialler,
        ipv6,
        credentials,
        proposals: suite.1,
        esp_proposals: suite.2,
        daemon: manner.1,
        connection: manner.2,
        ..Setup::default()
    };
    Case::new(PEER, format!("matrix/{name}"), move || run(&setup, suite, manner.0))
}

fn run(setup: &Setup, (suite, .., names): Suite, manner: &str) {
    let dialler = setup.dialler;
    let pair = setup.clone().connect();
    let associations = pair.associations();
    let [association] = associations.as_slice() else { panic!("one IKE SA, not {associations:#?}") };
    assert_eq!(association.initiator, dialler == Dialler::Us);
    let [child] = association.children.as_slice() else { panic!("one CHILD SA, not {associations:#?}") };
    if suite != "default" {
        let found = [&association.key_exchange, &association.encryption, &child.algorithm];
        assert_eq!(found.map(|name| name.to_lowercase()), names, "{association:#?}");
    }
    check_manner(&pair, manner);
    check_proof(&pair, setup.credentials);
    check_our_fragments(&pair, setup);
    let mut misfits = pair.misfits();
    // A responder may send at once; its first packets can overtake our reading of the message that names the SPI.
    misfits.remove("unknown_spi");
    assert!(misfits.is_empty(), "{misfits:?}");
    pair.check();
}

/// Whether what charon was forced to do has happened.
fn check_manner(pair: &Pair, manner: &str) {
    let log = pair.charon.log();
    match manner {
        "fragments" => assert!(log.contains("splitting IKE message"), "charon sent no fragments"),
        "childless" => {
            let authentication = log.lines().find(|line| line.contains("generating IKE_AUTH request"));
            assert!(authentication.is_some_and(|line| !line.contains(" TSi ")), "{authentication:?}");
            assert!(log.contains("CREATE_CHILD_SA response"), "no CHILD SA was made afterwards");
        }
        _ => {}
    }
}

/// Whether charon believed us for the reason that it should.
fn check_proof(pair: &Pair, credentials: Credentials) {
    let means = match credentials {
        Credentials::RawKeys => "with ED25519 successful",
        Credentials::Certificates => "with ECDSA_WITH_SHA256_DER successful",
        Credentials::SharedSecret => "with pre-shared key successful",
    };
    let log = pair.charon.log();
    let is_verdict = |line: &&str| line.contains("authentication of '") && line.contains("successful");
    let verdict = log.lines().find(|line| is_verdict(line) && !line.contains("(myself)"));
    assert!(verdict.is_some_and(|line| line.contains(means)), "{verdict:?}, and not {means}");
}

/// Whether what is too long for one datagram of ours came in several: two certificates, and a key of ML-KEM.
fn check_our_fragments(pair: &Pair, setup: &Setup) {
    let log = pair.charon.log();
    let came_in_two = |exchange: &str| {
        let mut messages = log.lines().filter(|line| line.contains(&format!("parsed {exchange} ")));
        messages.any(|line| line.contains("[ EF(1/2) ]"))
    };
    if setup.credentials == Credentials::Certificates {
        assert!(came_in_two("IKE_AUTH"), "our certificates came in one datagram");
    }
    if setup.dialler == Dialler::Us && setup.proposals.contains("mlkem") {
        assert!(came_in_two("IKE_INTERMEDIATE"), "our key of ML-KEM came in one datagram");
    }
}
