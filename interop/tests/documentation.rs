//! `docs/interop.md` shows the files that the tests use. `UPDATE_DOCS=1` writes them into it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use interop::foreign::{ForeignNode, ForeignProof, IkeSection};
use lab::peers::charon::{CharonConfig, Connection, Kind, Proof, bird_configuration};
use lab::peers::{RouterPeer, RouterSetup};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n";

/// Where nodes prove themselves by something else than the keys in the registry.
const OUR_NAME: &str = "fqdn:alpha.example";

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

/// The same with other proofs; our node has a name of its own choice then.
fn proving(local_proof: Proof, remote_proof: Proof) -> Connection {
    Connection { local_proof, remote_proof, remote_id: "alpha.example".into(), ..connection() }
}

fn hybrid() -> Connection {
    Connection {
        proposals: "aes256gcm16-prfsha256-x25519-ke1_mlkem768".into(),
        esp_proposals: "aes256gcm16-x25519-ke1_mlkem768".into(),
        ..connection()
    }
}

/// What ranet tells charon.
fn ranet() -> Connection {
    Connection {
        kind: Kind::Ranet,
        local_id: "O=acme, CN=swan, serialNumber=0".into(),
        remote_id: "O=acme, CN=alpha, serialNumber=0".into(),
        ..connection()
    }
}

fn registry(proof: ForeignProof<'_>) -> String {
    let address = Some(Ipv4Addr::new(192, 0, 2, 20).into());
    let node =
        ForeignNode { name: "swan", ipv6: false, address, port: 13000, id: "fqdn:swan.example", proof };
    format!("- organization: acme\n  nodes:\n{}", node.registry_entry())
}

/// Files by the name that stands above them in the document.
fn files() -> Vec<(&'static str, String)> {
    let daemon = CharonConfig { port: 500, nat_port: 13000, more: String::new() };
    let certificates =
        proving(Proof::Certificate("swan.pem".into()), Proof::CertifiedBy("authority.pem".into()));
    let secret = Proof::SharedSecret("…".into());
    let section = IkeSection { id: Some(OUR_NAME), ..IkeSection::default() };
    let certified = IkeSection { certificate: Some(("alpha.crt", "alpha.key")), ..section };
    let sharing = IkeSection { shared_key: Some(("swan", "swan.psk")), ..section };
    let post_quantum = IkeSection { post_quantum: true, ..IkeSection::default() };
    let mut files = vec![
        ("registry.yaml", registry(ForeignProof::PublicKey(PUBLIC_KEY))),
        ("strongswan.conf", daemon.text(Path::new("/run"))),
        ("swanctl.conf", connection().text()),
        ("registry.yaml, by certificate", registry(ForeignProof::Authority(CERTIFICATE))),
        ("node.yaml, by certificate", certified.text()),
        ("swanctl.conf, by certificate", certificates.text()),
        ("registry.yaml, by shared key", registry(ForeignProof::SharedKey)),
        ("node.yaml, by shared key", sharing.text()),
        ("swanctl.conf, by shared key", proving(secret.clone(), secret).text()),
        ("node.yaml, post-quantum", post_quantum.text()),
        ("swanctl.conf, post-quantum", hybrid().text()),
        ("swanctl.conf, by ranet", ranet().text()),
        ("bird.conf", bird_configuration(Ipv4Addr::new(10, 2, 0, 1))),
    ];
    files.extend(router_files());
    files
}

/// The same for a router that does everything in its kernel.
fn router_files() -> [(&'static str, String); 6] {
    let address = Some(Ipv4Addr::new(192, 0, 2, 30).into());
    let (id, proof) = ("fqdn:router.example", ForeignProof::PublicKey(PUBLIC_KEY));
    let node = ForeignNode { name: "router", ipv6: false, address, port: 13000, id, proof };
    let setup = RouterSetup {
        name: "router".into(),
        id: "router.example".into(),
        port: 13000,
        underlay: "eth0".into(),
        lan: "eth1".into(),
        network_v4: "10.9.0.0/24".parse().unwrap(),
        network_v6: "fd00:0:0:9::/64".parse().unwrap(),
        locator: "fd5d:ac:0:9::/64".parse().unwrap(),
        static_routes: String::new(),
        peers: vec![RouterPeer {
            name: "alpha".into(),
            id: "O=acme, CN=alpha, serialNumber=0".into(),
            local_address: Ipv4Addr::new(192, 0, 2, 30).into(),
            address: Ipv4Addr::new(192, 0, 2, 10).into(),
            dial: true,
            more: String::new(),
            more_of_child: String::new(),
        }],
    };
    let segments = setup.registry_lines();
    let segments: String = segments.lines().map(|line| format!("        {line}\n")).collect();
    [
        (
            "router/registry.yaml",
            format!("- organization: acme\n  nodes:\n{}{segments}", node.registry_entry()),
        ),
        ("router/strongswan.conf", setup.daemon()),
        ("router/swanctl.conf", setup.connections()),
        ("router/devices.sh", setup.devices()),
        ("router/segments.sh", setup.segments()),
        ("router/bird.conf", setup.bird(Ipv4Addr::new(10, 9, 0, 1))),
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
