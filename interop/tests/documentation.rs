//! `docs/interop.md` shows the files that the tests use. `UPDATE_DOCS=1` writes them into it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use interop::foreign::{ForeignNode, ForeignProof};
use lab::peers::charon::{CharonConfig, Connection, Kind, Proof, bird_configuration};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n";

fn connection() -> Connection {
    Connection {
        kind: Kind::Mesh,
        local_address: Ipv4Addr::new(192, 0, 2, 20).into(),
        remote_address: Some(Ipv4Addr::new(192, 0, 2, 10).into()),
        local_port: 13000,
        remote_port: 13000,
        local_id: "swan.example".into(),
        remote_id: "O=acme, CN=alpha, serialNumber=0".into(),
        local_proof: Proof::PublicKey("swan.pem".into()),
        remote_proof: Proof::PublicKey("alpha.pem".into()),
        proposals: "aes256gcm16-prfsha256-x25519".into(),
        esp_proposals: "aes256gcm16-x25519".into(),
        dial: true,
        more: String::new(),
        more_of_child: String::new(),
    }
}

/// Files by the name that stands above them in the document.
fn files() -> Vec<(&'static str, String)> {
    let address = Some(Ipv4Addr::new(192, 0, 2, 20).into());
    let (id, proof) = ("fqdn:swan.example", ForeignProof::PublicKey(PUBLIC_KEY));
    let node = ForeignNode { name: "swan", ipv6: false, address, port: 13000, id, proof };
    let daemon = CharonConfig { port: 500, nat_port: 13000, more: String::new() };
    vec![
        ("registry.yaml", format!("- organization: acme\n  nodes:\n{}", node.registry_entry())),
        ("strongswan.conf", daemon.text(Path::new("/run"))),
        ("swanctl.conf", connection().text()),
        ("bird.conf", bird_configuration(Ipv4Addr::new(10, 2, 0, 1))),
    ]
}

#[test]
fn the_document_shows_the_files_of_the_tests() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/interop.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let mut updated = document.clone();
    for (name, text) in files() {
        let marker = format!("<!-- {name} -->\n```");
        let (before, rest) = updated.split_once(&marker).unwrap_or_else(|| panic!("no place for {name}"));
        let (language, rest) = rest.split_once('\n').unwrap();
        let (_, after) = rest.split_once("\n```").unwrap();
        let mut next = String::new();
        write!(next, "{before}{marker}{language}\n{}\n```{after}", text.trim_end()).unwrap();
        updated = next;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, updated).unwrap();
    } else {
        assert!(
            document == updated,
            "docs/interop.md is old: `UPDATE_DOCS=1 cargo test -p interop` renews it"
        );
    }
}
