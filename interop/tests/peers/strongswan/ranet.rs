//! A peer that ranet configures: ranet's registry, read by us unchanged, and what ranet tells charon.

use super::PEER;
use super::pair::{Dialler, Setup};
use super::underlay::Underlay;
use crate::case::Case;
use lab::peers::{Charon, Release};
use viamesh::config::key;
use viamesh::demo::{Mesh, ORGANIZATION, PORT};

pub(crate) fn cases() -> Vec<Case> {
    let releases = [Release::Debian12, Release::Debian13, Release::DebianNext];
    let case =
        |release: Release| Case::new(PEER, format!("ranet/{}", release.recipe().name), move || run(release));
    releases.into_iter().map(case).collect()
}

/// Gives both sides their keys and the registry: in ranet's own words, with nothing of ours in it.
pub(crate) fn prepare(mesh: &Mesh, charon: &Charon, underlay: &Underlay) {
    // The nodes of an organization have one key.
    let key = key::load(&mesh.directory.join("ours/key.pem")).unwrap();
    let public_key = key::public_pem(&key.verifying_key()).unwrap();
    charon.write("swanctl/pkcs8/swan.pem", &key::private_pem(&key).unwrap()).unwrap();
    charon.write("swanctl/pubkey/swan.pem", &public_key).unwrap();
    charon.write("swanctl/pubkey/ours.pem", &public_key).unwrap();
    let node = |name: &str, address: std::net::Ipv4Addr| {
        serde_json::json!({
            "common_name": name,
            "endpoints": [{
                "serial_number": "0", "address_family": "ip4", "address": address.to_string(), "port": PORT,
            }],
            "remarks": {},
        })
    };
    let registry = serde_json::json!([{
        "public_key": public_key,
        "organization": ORGANIZATION,
        "nodes": [node("ours", underlay.ours.v4.unwrap()), node("swan", underlay.swan.v4.unwrap())],
    }]);
    std::fs::write(mesh.directory.join("registry.yaml"), registry.to_string()).unwrap();
}

/// Both dial each other, as the nodes of ranet's meshes do.
fn run(release: Release) {
    let pair = Setup { release, dialler: Dialler::Peer, ranet: true, ..Setup::default() }.connect();
    // However many the first moment made: they settle, and each that is left works.
    pair.wait("the tunnels to settle", || {
        let associations = pair.associations();
        !associations.is_empty() && associations.iter().all(|association| association.state == "established")
    });
    pair.wait_traffic();
    pair.check();
}
