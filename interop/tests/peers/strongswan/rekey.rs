//! Keys change every few seconds, by the will of either side or both, and traffic does not notice.

use super::pair::{Dialler, Pair, Setup};
use super::{PEER, RELEASES};
use crate::case::{Case, is_full};
use lab::peers::Release;
use lab::{RunningUdpStream, UdpStream, wait_until};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Who wants new keys: name, our timers, charon's lines for the connection and for the child.
type Who = (&'static str, &'static str, &'static str, &'static str);

/// An SA must outlive its rekeying: charon's own default for these short intervals is no time at all.
const WHO: [Who; 3] = [
    ("by_us", "timers: { hello: 1s, redial: 500ms, child_rekey: 3s, ike_rekey: 8s }", "", ""),
    (
        "by_it",
        "",
        "rekey_time = 8s\nover_time = 60s\nrand_time = 0s\n",
        "rekey_time = 3s\nlife_time = 60s\nrand_time = 0s\n",
    ),
    (
        "by_both_at_once",
        "timers: { hello: 1s, redial: 500ms, child_rekey: 3s, ike_rekey: 8s }",
        "rekey_time = 8s\nover_time = 60s\nrand_time = 0s\n",
        "rekey_time = 3s\nlife_time = 60s\nrand_time = 0s\n",
    ),
];

/// Algorithms: name, and charon's proposals for IKE and ESP.
const SUITES: [(&str, &str, &str); 2] = [
    ("classical", Setup::DEFAULT.proposals, Setup::DEFAULT.esp_proposals),
    ("hybrid", "aes256gcm16-prfsha256-x25519-ke1_mlkem768", "aes256gcm16-x25519-ke1_mlkem768"),
];

/// CI's sample: each release and each of [`WHO`] once, in the role in which it is more delicate. Release, who dials,
/// who wants new keys, algorithms.
const SAMPLE: [(Release, Dialler, &str, &str); 3] = [
    (Release::Debian12, Dialler::Peer, "by_us", "classical"),
    (Release::Debian13, Dialler::Us, "by_it", "classical"),
    (Release::DebianNext, Dialler::Us, "by_both_at_once", "hybrid"),
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for release in RELEASES {
        for dialler in [Dialler::Us, Dialler::Peer] {
            for who in WHO {
                for (suite, proposals, esp_proposals) in SUITES {
                    let sampled = SAMPLE.contains(&(release, dialler, who.0, suite));
                    let exists = suite == "classical" || release == Release::DebianNext;
                    if exists && (sampled || is_full()) {
                        let setup = Setup { release, dialler, proposals, esp_proposals, ..Setup::default() };
                        let name = ["rekey", release.recipe().name, dialler.role(), who.0, suite].join("/");
                        cases.push(Case::new(PEER, name, move || run(setup, who)));
                    }
                }
            }
        }
    }
    cases
}

fn length() -> Duration {
    Duration::from_secs(if is_full() { 120 } else { 16 })
}

fn run(setup: Setup, (_, node, connection, child): Who) {
    let is_hybrid = setup.proposals.contains("mlkem");
    let pair = Setup { node, connection, child, ..setup }.connect();
    let before = (pair.misfits(), complaints(&pair));
    let streams = streams(&pair);
    let (mut ike, mut children) = (BTreeSet::new(), BTreeSet::new());
    let started = Instant::now();
    wait_until(length() + Duration::from_secs(60), "the end of the run", || {
        for association in pair.associations() {
            ike.insert(association.initiator_spi);
            children.extend(association.children.into_iter().map(|child| child.inbound_spi));
        }
        started.elapsed() >= length()
    })
    .unwrap();
    let [out, back] = streams.map(|stream| stream.stop(Duration::from_secs(5)).unwrap());
    let rekeys = (ike.len() - 1, children.len() - 1);
    assert!(rekeys.0 >= 1 && rekeys.1 >= 3, "too few rekeys (IKE, CHILD): {rekeys:?}");
    assert_eq!(pair.misfits(), before.0, "packets were dropped for SPI, replay or authentication");
    assert_eq!((out.lost(), back.lost()), (0, 0), "{rekeys:?} rekeys: {out:?} {back:?}");
    assert_eq!(complaints(&pair), before.1, "charon dropped packets");
    if is_hybrid {
        let exchanges = ["x25519 + ml-kem-768"; 1];
        let now: Vec<_> = pair.associations().into_iter().map(|sa| sa.key_exchange.to_lowercase()).collect();
        assert_eq!(now, exchanges, "new keys were made without ML-KEM");
        let followups = pair.charon.log().matches("parsed IKE_FOLLOWUP_KE response").count()
            + pair.charon.log().matches("generating IKE_FOLLOWUP_KE response").count();
        assert!(followups >= rekeys.0 + rekeys.1, "{followups} of IKE_FOLLOWUP_KE for {rekeys:?} rekeys");
    }
    pair.check();
}

/// One in each direction.
pub(crate) fn streams(pair: &Pair) -> [RunningUdpStream; 2] {
    [
        stream(pair, "ours", "10.1.0.1", "swan", "10.2.0.1:7200"),
        stream(pair, "swan", "10.2.0.1", "ours", "10.1.0.1:7200"),
    ]
}

fn stream(pair: &Pair, from: &str, source: &str, to: &str, target: &str) -> RunningUdpStream {
    let stream = UdpStream {
        target: target.parse().unwrap(),
        source: Some(source.parse().unwrap()),
        packets_per_second: 300.0,
        payload: 200,
    };
    stream.start(&pair.world.find(from).unwrap(), &pair.world.find(to).unwrap()).unwrap()
}

/// What charon logs about ESP packets that it can't use.
pub(crate) fn complaints(pair: &Pair) -> Vec<String> {
    let log = pair.charon.log();
    log.lines().filter(|line| line.contains("[ESP]")).map(str::to_owned).collect()
}
