//! Address translation between both, which forgets its mappings.

use super::PEER;
use super::pair::{Dialler, Setup};
use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, dialler| Case::new(PEER, format!("nat_rebinds/{name}"), move || rebind(dialler));
    vec![case("before_us", Dialler::Us), case("before_it", Dialler::Peer)]
}

/// Where the mapping changes, both go on with the same keys.
fn rebind(dialler: Dialler) {
    let setup = Setup {
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
