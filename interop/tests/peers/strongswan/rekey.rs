//! Keys change every few seconds, by the will of either side or both, and traffic does not notice.

use super::PEER;
use super::pair::{Dialler, Pair, Setup};
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

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for release in [Release::Debian13, Release::Debian12, Release::DebianNext] {
        for (dialler, role) in [(Dialler::Us, "we_dial"), (Dialler::Peer, "it_dials")] {
            for who in WHO {
                // CI's sample: one release, and the role in which each is more delicate.
                let sampled = release == Release::Debian13
                    && match who.0 {
                        "by_us" => dialler == Dialler::Peer,
                        _ => dialler == Dialler::Us,
                    };
                if sampled || is_full() {
                    let name = ["rekey", release.recipe().name, role, who.0].join("/");
                    cases.push(Case::new(PEER, name, move || run(release, dialler, who)));
                }
            }
        }
    }
    cases
}

fn length() -> Duration {
    Duration::from_secs(if is_full() { 120 } else { 16 })
}

fn run(release: Release, dialler: Dialler, (_, node, connection, child): Who) {
    let pair = Setup { release, dialler, node, connection, child, ..Setup::default() }.connect();
    let before = pair.misfits();
    let streams = [
        stream(&pair, "ours", "10.1.0.1", "swan", "10.2.0.1:7200"),
        stream(&pair, "swan", "10.2.0.1", "ours", "10.1.0.1:7200"),
    ];
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
    assert_eq!(pair.misfits(), before, "packets were dropped for SPI, replay or authentication");
    assert_eq!((out.lost(), back.lost()), (0, 0), "{rekeys:?} rekeys: {out:?} {back:?}");
    let complaints = complaints(&pair);
    assert!(complaints.is_empty(), "charon dropped packets: {complaints:#?}");
    pair.check();
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
fn complaints(pair: &Pair) -> Vec<String> {
    let log = pair.charon.log();
    log.lines().filter(|line| line.contains("[ESP]")).map(str::to_owned).collect()
}
