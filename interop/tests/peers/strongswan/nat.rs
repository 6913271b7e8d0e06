//! Address translation between both, which forgets its mappings.

use super::pair::{Dialler, Setup};
use super::{PEER, RELEASES};
use crate::case::{Case, is_full};
use lab::peers::Release;

/// CI has one release before whom the NAT is, and another one behind it.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, dialler, sampled) in
        [("before_us", Dialler::Us, Release::Debian13), ("before_it", Dialler::Peer, Release::Debian12)]
    {
        for release in RELEASES.into_iter().filter(|release| is_full() || *release == sampled) {
            let name = format!("nat_rebinds/{name}/{}", release.recipe().name);
            cases.push(Case::new(PEER, name, move || rebind(release, dialler)));
        }
    }
    cases
}

/// Where the mapping changes, both go on with the same keys.
fn rebind(release: Release, dialler: Dialler) {
    let setup = Setup {
        release,
        dialler,
        nat: true,
        node: "timers: { hello: 1s, redial: 500ms, liveness: 1s, retransmit: 200ms }",
        ..Setup::DEFAULT
    };
    let pair = setup.connect();
    let translated = |from: u16| {
        let seen = match dialler {
            Dialler::Peer => pair.associations()[0].remote.port(),
            // What charon sees of us: the port that it sends to.
            Dialler::Us => {
                let sas = pair.charon.swanctl(&["--list-sas"]).unwrap().stdout;
                let remote =
                    sas.lines().find(|line| line.trim_start().starts_with("remote")).unwrap().to_owned();
                remote.rsplit('[').next().unwrap().trim_end_matches([']', '\n']).parse().unwrap()
            }
        };
        (from..from + 100).contains(&seen)
    };
    assert!(translated(20_000), "there is no NAT between them");
    let old = pair.associations()[0].initiator_spi.clone();
    pair.underlay.rebind();
    pair.wait("both to use the new mapping", || translated(30_000));
    pair.wait_traffic();
    let spis: Vec<String> = pair.associations().into_iter().map(|sa| sa.initiator_spi).collect();
    assert_eq!(spis, [old], "the tunnel was built anew");
    pair.check();
}
