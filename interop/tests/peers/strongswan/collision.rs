//! Both sides begin to change the same keys before either hears of it, and traffic does not notice.

use super::pair::{Dialler, Pair, Setup};
use super::rekey::{complaints, streams};
use super::{PEER, RELEASES};
use crate::case::{Case, is_full};
use lab::Pinger;
use lab::peers::Release;
use std::collections::BTreeSet;
use std::time::Duration;
use viamesh::control::report::{ChildAssociation, IkeAssociation};

/// What both change at once: name, our timers, charon's option, what it says once it has compared the nonces.
type Kind = (&'static str, &'static str, &'static str, &'static str);

const KINDS: [Kind; 2] = [
    (
        "child_sa",
        "timers: { hello: 1s, redial: 500ms, retransmit: 4s, child_rekey: 5s }",
        "--child",
        "CHILD_SA rekey collision",
    ),
    (
        "ike_sa",
        "timers: { hello: 1s, redial: 500ms, retransmit: 4s, ike_rekey: 5s }",
        "--ike",
        "IKE_SA rekey collision",
    ),
];

/// There and back. What each sends is under way for half of it: more than the second within which we are due.
const ROUND_TRIP: Duration = Duration::from_secs(3);

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in KINDS {
        for release in RELEASES {
            for dialler in [Dialler::Us, Dialler::Peer] {
                let sampled = match kind.0 {
                    "child_sa" => (Release::Debian13, Dialler::Us),
                    _ => (Release::Debian12, Dialler::Peer),
                };
                if is_full() || (release, dialler) == sampled {
                    let name = ["rekeys_collide", kind.0, release.recipe().name, dialler.role()].join("/");
                    cases.push(Case::new(PEER, name, move || run(release, dialler, kind)));
                }
            }
        }
    }
    cases
}

/// charon is told to begin when we are about to, and neither request can arrive before the other leaves.
fn run(release: Release, dialler: Dialler, (_, node, option, verdict): Kind) {
    let setup = Setup {
        release,
        dialler,
        node,
        // An SA must outlive its rekeying.
        connection: "over_time = 60s\nrand_time = 0s\n",
        child: "life_time = 3600s\nrand_time = 0s\n",
        ..Setup::default()
    };
    let pair = setup.connect();
    pair.underlay.slow_down(ROUND_TRIP);
    // For a moment nothing arrives at all, which Babel may take for an outage.
    pair.wait("Babel to be content with the long way", || {
        let probe = Pinger {
            source: Some("10.1.0.1".parse().unwrap()),
            count: Some(1),
            patience: 3 * ROUND_TRIP,
            ..Pinger::new("10.2.0.1".parse().unwrap())
        };
        probe.run(&pair.world.find("ours").unwrap()).unwrap().received == 1
    });
    let before = (pair.misfits(), complaints(&pair));
    let unreachable = without_route(&pair);
    let streams = streams(&pair);
    let mut told = BTreeSet::new();
    pair.wait("their requests to cross", || {
        let due = pair.associations().into_iter().find_map(|sa| due(&sa, option));
        if due.is_some_and(|spi| told.insert(spi)) {
            pair.charon.swanctl(&["--rekey", option, "mesh"]).unwrap();
        }
        let log = pair.charon.log();
        log.lines().any(|line| {
            line.contains(verdict) && (line.contains("collision won") || line.contains("collision lost"))
        })
    });
    let settled = || {
        let associations = pair.associations();
        associations.len() == 1 && associations.iter().all(|sa| sa.state == "established")
    };
    pair.wait("one IKE SA to be left", settled);
    let [out, back] = streams.map(|stream| stream.stop(Duration::from_secs(10)).unwrap());
    assert_eq!(pair.misfits(), before.0, "packets were dropped for SPI, replay or authentication");
    // A path that gets so much longer may cost Babel the route for a moment; that is nothing of IKE's.
    let unreachable = without_route(&pair) - unreachable;
    assert_eq!((out.lost(), back.lost()), (unreachable, 0), "{out:?} {back:?}");
    assert_eq!(complaints(&pair), before.1, "charon dropped packets");
    pair.check();
}

/// Packets that we had no route for.
fn without_route(pair: &Pair) -> u64 {
    pair.mesh.status("ours").unwrap().drops.get("unreachable").copied().unwrap_or_default()
}

/// The SPI of what we rekey within a second.
fn due(association: &IkeAssociation, option: &str) -> Option<String> {
    if option == "--ike" {
        return (association.rekey_in_seconds == Some(0)).then(|| association.initiator_spi.clone());
    }
    let is_due = |child: &&ChildAssociation| child.state == "sending" && child.rekey_in_seconds == Some(0);
    association.children.iter().find(is_due).map(|child| child.inbound_spi.clone())
}
