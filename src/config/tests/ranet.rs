//! ranet's files load unchanged.

use super::support::{Files, acme_key, codes};
use crate::config::key;
use crate::config::settings::{Bind, Family, PeerIdentity};

/// A node file with every field that ranet has, in JSON, as ranet's users write it.
const CONFIG: &str = r#"{
  "organization": "acme corp",
  "common_name": "some server",
  "endpoints": [
    {
      "serial_number": "0",
      "address": "192.0.2.1",
      "address_family": "ip4",
      "port": 13000,
      "updown": "/usr/local/bin/updown",
      "fwmark": null
    },
    {
      "serial_number": "1",
      "address": null,
      "address_family": "ip6",
      "port": 13000,
      "updown": "/usr/local/bin/updown",
      "fwmark": "0x1"
    }
  ],
  "experimental": { "iptfs": false }
}"#;

/// A registry with every field that ranet has.
fn registry(key: &str) -> String {
    let key = serde_json::Value::from(key);
    format!(
        r#"[
  {{
    "public_key": {key},
    "organization": "acme corp",
    "nodes": [
      {{
        "common_name": "some server",
        "endpoints": [
          {{ "serial_number": "0", "address_family": "ip4", "address": "example.com", "port": 13000 }},
          {{ "serial_number": "1", "address_family": "ip6", "address": null, "port": 13000 }}
        ],
        "remarks": {{ "arbitrary": "metadata", "other": false, "list": [1, {{}}] }}
      }}
    ]
  }}
]"#
    )
}

fn files() -> Files {
    let mut files = Files::new(CONFIG, &registry(&key::public_pem(&acme_key().verifying_key()).unwrap()));
    files.set("node.pem", key::private_pem(&acme_key()).unwrap().as_bytes(), 0o600);
    files
}

#[test]
fn both_files_load_with_warnings_only() {
    let loaded = files().load();
    assert_eq!(
        codes(&loaded.diagnostics),
        ["warning config/not-used 10", "warning config/not-used 18", "warning config/not-used 22"]
    );
    let settings = loaded.settings.unwrap();
    assert_eq!(settings.name.to_string(), "acme corp/some server");
    assert_eq!(settings.endpoints[0].bind, Bind::Address("192.0.2.1".parse().unwrap()));
    assert_eq!((settings.endpoints[1].bind, settings.endpoints[1].fwmark), (Bind::Any, Some(1)));
    let node = settings.own_node().unwrap();
    assert_eq!(node.identity, PeerIdentity::Ranet);
    assert_eq!(node.public_keys, [acme_key().verifying_key()]);
    assert_eq!(node.endpoints[0].address.as_deref(), Some("example.com"));
    assert_eq!((node.endpoints[1].family, node.endpoints[1].address.as_deref()), (Family::Ip6, None));
}

#[test]
fn the_placeholder_of_ranets_manual_is_all_that_is_wrong_with_it() {
    let mut files = files();
    files.set("registry.yaml", registry("<PEM encoded public key>").as_bytes(), 0o644);
    let errors: Vec<_> =
        codes(&files.load().diagnostics).into_iter().filter(|code| code.starts_with("error")).collect();
    assert_eq!(errors, ["error registry/bad-public-key 3"]);
}

#[test]
fn an_address_may_be_a_network_or_a_name() {
    let mut files = files();
    let load = |files: &mut Files, address: &str| {
        files.set("node.yaml", CONFIG.replace("192.0.2.1", address).as_bytes(), 0o644);
        files.load()
    };
    let bind = |loaded: crate::config::Loaded| loaded.settings.unwrap().endpoints[0].bind;
    assert_eq!(bind(load(&mut files, "192.0.2.0/24")), Bind::Network("192.0.2.0/24".parse().unwrap()));
    assert_eq!(bind(load(&mut files, "192.0.2.7/24")), Bind::Network("192.0.2.0/24".parse().unwrap()));
    assert_eq!(bind(load(&mut files, "192.0.2.7/32")), Bind::Address("192.0.2.7".parse().unwrap()));
    assert_eq!(bind(load(&mut files, "0.0.0.0")), Bind::Any);
    let named = load(&mut files, "host.example.com");
    assert_eq!(codes(&named.diagnostics)[0], "warning config/not-used 7");
    assert_eq!(bind(named), Bind::Any);
}

#[test]
fn a_mark_may_have_a_mask() {
    let mut files = files();
    files.set("node.yaml", CONFIG.replace("\"0x1\"", "\"0x2/0xff\"").as_bytes(), 0o644);
    assert_eq!(files.load().settings.unwrap().endpoints[1].fwmark, Some(2));
    files.set("node.yaml", CONFIG.replace("\"0x1\"", "3").as_bytes(), 0o644);
    assert_eq!(files.load().settings.unwrap().endpoints[1].fwmark, Some(3));
}
