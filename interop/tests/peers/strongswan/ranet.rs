//! A peer that ranet configures: ranet's registry, read by us unchanged, and what ranet tells charon.

use super::pair::{Dialler, Pair, Setup};
use super::underlay::Underlay;
use super::{PEER, RELEASES};
use crate::case::{Case, is_full};
use lab::peers::{Charon, Release};
use std::net::Ipv4Addr;
use viamesh::config::key;
use viamesh::demo::{Mesh, ORGANIZATION, PORT};

/// What charon does with a second IKE SA of the same peer: versions of ranet differ.
const UNIQUE: [(&str, &str); 2] = [("keep", ""), ("replace", "unique = replace\n")];

/// Who knows where the other is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dial {
    Both,
    Us,
    Peer,
}

const WHO: [(&str, Dial); 3] = [("both_dial", Dial::Both), ("we_dial", Dial::Us), ("it_dials", Dial::Peer)];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for release in RELEASES {
        for (who, dial) in WHO {
            for (unique, connection) in UNIQUE {
                let sampled = match dial {
                    Dial::Both => release == Release::Debian13,
                    Dial::Us => (release, unique) == (Release::Debian12, "replace"),
                    Dial::Peer => (release, unique) == (Release::DebianNext, "replace"),
                };
                if sampled || is_full() {
                    let name = ["ranet", release.recipe().name, who, unique].join("/");
                    cases.push(Case::new(PEER, name, move || run(release, dial, connection)));
                }
            }
        }
    }
    cases
}

/// Gives both sides their keys and the registry: in ranet's own words, with nothing of ours in it.
pub(crate) fn prepare(mesh: &Mesh, charon: &Charon, underlay: &Underlay, dial: Dial) {
    // The nodes of an organization have one key.
    let key = key::load(&mesh.directory.join("ours/key.pem")).unwrap();
    let public_key = key::public_pem(&key.verifying_key()).unwrap();
    charon.write("swanctl/pkcs8/swan.pem", &key::private_pem(&key).unwrap()).unwrap();
    charon.write("swanctl/pubkey/swan.pem", &public_key).unwrap();
    charon.write("swanctl/pubkey/ours.pem", &public_key).unwrap();
    let node = |name: &str, address: Option<Ipv4Addr>| {
        serde_json::json!({
            "common_name": name,
            "endpoints": [{
                "serial_number": "0", "address_family": "ip4", "address": address, "port": PORT,
            }],
            "remarks": {},
        })
    };
    let registry = serde_json::json!([{
        "public_key": public_key,
        "organization": ORGANIZATION,
        "nodes": [node("ours", underlay.ours.v4), node("swan", underlay.swan.v4.filter(|_| dial != Dial::Peer))],
    }]);
    std::fs::write(mesh.directory.join("registry.yaml"), registry.to_string()).unwrap();
}

/// The nodes of ranet's meshes go on whatever happens to the other end.
fn run(release: Release, dial: Dial, connection: &'static str) {
    let setup = Setup {
        release,
        dialler: if dial == Dial::Us { Dialler::Us } else { Dialler::Peer },
        ranet: Some(dial),
        connection,
        child: if dial == Dial::Us { "start_action = none\nclose_action = none\n" } else { "" },
        node: "timers: { hello: 1s, redial: 500ms, liveness: 1s, retransmit: 200ms }",
        ..Setup::default()
    };
    let mut pair = setup.connect();
    settle(&pair);
    pair.charon.kill();
    pair.restart_charon();
    settle(&pair);
    // Where it alone dials it has to notice by itself: ranet lets a minute pass.
    if dial != Dial::Peer {
        pair.mesh.kill("ours");
        pair.mesh.start_node("ours").unwrap();
        settle(&pair);
    }
    pair.check();
}

/// However many IKE SAs the first moment made: each that is left works.
fn settle(pair: &Pair) {
    pair.wait_traffic();
    pair.wait("the tunnels to settle", || {
        let associations = pair.associations();
        !associations.is_empty() && associations.iter().all(|association| association.state == "established")
    });
    pair.wait_traffic();
}
