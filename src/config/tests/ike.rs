//! Certificates, shared keys and what else stands under `ike`.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::support::{Files, alpha, codes, registry};
use crate::config::credentials;
use crate::config::settings::{NodeName, PeerIdentity};

/// An authority's certificate, and a certificate and key for `name` under it, in PEM.
fn certified(name: &str) -> (String, String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&leaf_key, &Issuer::new(params, key)).unwrap();
    (authority, leaf.pem(), leaf_key.serialize_pem())
}

/// The registry with a node that proves itself by certificate and one that does so by a shared key.
fn registry_with(authority: &str) -> String {
    let authority: String = authority.lines().map(|line| format!("            {line}\n")).collect();
    let endpoint =
        "endpoints: [{ serial_number: \"0\", address_family: ip4, address: 198.51.100.9, port: 500 }]";
    format!(
        "{}- organization: gates\n  nodes:\n    - common_name: r1\n      {endpoint}\n      remarks:\n        viamesh:\n          id: \"fqdn:r1.example\"\n          authority: |\n{authority}    - common_name: r2\n      {endpoint}\n      remarks: {{ viamesh: {{ id: \"ip:198.51.100.9\", shared_key: true }} }}\n",
        registry()
    )
}

const IKE: &str = r#"ike:
  post_quantum: true
  id: "fqdn:alpha.example"
  certificate: alpha.crt
  certificate_key: alpha.key
  shared_keys:
    - { node: r2, file: r2.psk }
"#;

fn files(name: &str) -> Files {
    let (authority, chain, key) = certified(name);
    let mut files = Files::new(&alpha(IKE), &registry_with(&authority));
    files.set("alpha.crt", chain.as_bytes(), 0o644);
    files.set("alpha.key", key.as_bytes(), 0o600);
    files.set("r2.psk", b"correct horse battery staple\n", 0o600);
    files
}

#[test]
fn certificates_and_shared_keys_are_read() {
    let files = files("alpha.example");
    let loaded = files.load();
    assert_eq!(loaded.diagnostics.render(false), "");
    let settings = loaded.settings.unwrap();
    let (r1, r2) = (NodeName::new("gates", "r1"), NodeName::new("gates", "r2"));
    assert!(settings.ike.post_quantum);
    assert_eq!(settings.ike.id, Some(PeerIdentity::Fqdn("alpha.example".to_owned())));
    assert_eq!(settings.ike.shared_keys, [(r2.clone(), PathBuf::from("/etc/viamesh/r2.psk"))]);
    let nodes = [&r1, &r2].map(|name| settings.node(name).unwrap());
    assert_eq!(nodes.map(|node| (node.authorities.len(), node.shared_key)), [(1, false), (0, true)]);
    assert!(nodes.iter().all(|node| node.public_keys.is_empty()));
    let credentials = credentials::load(&settings, &files).unwrap();
    assert_eq!(credentials.certificate.unwrap().chain.len(), 1);
    assert_eq!(credentials.shared_keys[&r2].expose(), b"correct horse battery staple");
    assert_eq!(settings.own_identity("0", true).unwrap().to_string(), "alpha.example");
    assert_eq!(settings.own_identity("0", false).unwrap().to_string(), "O=acme, CN=alpha, serialNumber=0");
}

#[test]
fn a_certificate_that_does_not_fit_is_reported_where_it_stands() {
    let line = "error identity/unreadable-certificate 10";
    let named = files("beta.example");
    assert_eq!(codes(&named.load().diagnostics), [line]);
    assert!(named.render().contains("the certificate does not name `alpha.example`"), "{}", named.render());
    let (_, _, other_key) = certified("alpha.example");
    for (name, content) in [
        ("alpha.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ("alpha.crt", "no certificate"),
        ("alpha.key", "no key"),
        ("alpha.key", &other_key),
    ] {
        let mut files = files("alpha.example");
        files.set(name, content.as_bytes(), 0o600);
        assert_eq!(codes(&files.load().diagnostics), [line], "{name}: {}", files.render());
    }
}

#[test]
fn shared_keys_must_be_there_and_secret_and_for_somebody() {
    let mut open = files("alpha.example");
    open.set("r2.psk", b"correct horse battery staple", 0o644);
    assert_eq!(codes(&open.load().diagnostics), ["error identity/key-readable-by-others 13"]);
    let mut short = files("alpha.example");
    short.set("r2.psk", b"secret \n", 0o600);
    assert_eq!(codes(&short.load().diagnostics), ["error identity/unreadable-shared-key 13"]);
    let with = |node: &str| {
        let (authority, ..) = certified("alpha.example");
        let text = format!("ike: {{ shared_keys: [{{ node: {node}, file: r2.psk }}] }}\n");
        let mut files = Files::new(&alpha(&text), &registry_with(&authority));
        files.set("r2.psk", b"correct horse battery staple", 0o600);
        codes(&files.load().diagnostics)
    };
    assert_eq!(with("r2"), [""; 0]);
    assert_eq!(with("r3")[0], "error policy/unknown-node 7");
    let unused = with("bravo");
    assert!(unused.contains(&"warning identity/no-shared-key 7".to_owned()), "{unused:?}");
    assert_eq!(unused.len(), 2, "r2 has none either: {unused:?}");
}

#[test]
fn an_authority_is_a_certificate() {
    let files =
        Files::new(&alpha(""), &registry_with("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"));
    let codes = codes(&files.load().diagnostics);
    assert!(codes[0].starts_with("error registry/bad-authority"), "{codes:?}");
}
