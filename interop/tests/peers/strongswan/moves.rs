//! A side gets another address in the middle of everything (RFC 4555), and keeps its keys.

use super::pair::{Dialler, Pair, Setup};
use super::{PEER, RELEASES};
use crate::case::{Case, is_full};
use lab::Interface;
use lab::peers::Release;
use std::net::{IpAddr, Ipv4Addr};

/// Who moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mover {
    Us,
    Peer,
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (who, mover) in [("it_moves", Mover::Peer), ("we_move", Mover::Us)] {
        for dialler in [Dialler::Us, Dialler::Peer] {
            for release in RELEASES {
                // CI's sample: whoever dials moves.
                let sampled =
                    release == Release::Debian13 && (mover == Mover::Us) == (dialler == Dialler::Us);
                if sampled || is_full() {
                    let name = format!("{who}/{}/{}", release.recipe().name, dialler.role());
                    cases.push(Case::new(PEER, name, move || run(release, dialler, mover)));
                }
            }
        }
    }
    cases
}

fn run(release: Release, dialler: Dialler, mover: Mover) {
    let setup = Setup {
        release,
        dialler,
        node: "timers: { hello: 1s, redial: 500ms, liveness: 1s, retransmit: 200ms }",
        connection: match mover {
            Mover::Us => "dpd_delay = 1s\n",
            Mover::Peer => "local_addrs = %any\nmobike = yes\ndpd_delay = 1s\n",
        },
        ..Setup::DEFAULT
    };
    let pair = setup.connect();
    let old = spis(&pair);
    let (name, interface) = match mover {
        Mover::Us => ("ours", pair.underlay.ours.clone()),
        Mover::Peer => ("swan", pair.underlay.swan.clone()),
    };
    let new = replace_address(&pair, name, &interface);
    pair.wait("both to use the new address", || match mover {
        Mover::Us => {
            let sas = pair.charon.swanctl(&["--list-sas"]).unwrap().stdout;
            sas.lines().any(|line| line.trim_start().starts_with("remote") && line.contains(&new.to_string()))
        }
        Mover::Peer => pair.associations().iter().all(|sa| sa.remote.ip() == IpAddr::V4(new)),
    });
    pair.wait_traffic();
    assert_eq!(spis(&pair), old, "the tunnel was built anew");
    // Only who began the IKE SA may tell the other by MOBIKE; the rest is found out from authenticated messages.
    if (mover, dialler) == (Mover::Peer, Dialler::Peer) {
        assert!(pair.charon.log().contains("N(UPD_SA_ADDR)"), "charon did not tell us by MOBIKE");
    }
    pair.check();
}

fn spis(pair: &Pair) -> Vec<String> {
    pair.associations().into_iter().map(|sa| sa.initiator_spi).collect()
}

/// The host has another address of the same network from now on.
fn replace_address(pair: &Pair, host: &str, interface: &Interface) -> Ipv4Addr {
    let old = interface.v4.unwrap();
    let [a, b, c, d] = old.octets();
    let new = Ipv4Addr::new(a, b, c, d + 100);
    let host = pair.world.find(host).unwrap();
    let in_network = |address: Ipv4Addr| format!("{address}/24").parse().unwrap();
    host.sysctl("net.ipv4.conf.all.promote_secondaries", "1").unwrap();
    host.add_address(&interface.name, in_network(new)).unwrap();
    host.remove_address(&interface.name, in_network(old)).unwrap();
    new
}
