//! A host made of texts.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use ed25519_dalek::SigningKey;

use crate::config::load::{Host, Loaded, Request, load};
use crate::config::{Diagnostics, key};

/// Files in memory.
pub(super) struct Files {
    files: BTreeMap<String, (Vec<u8>, u32)>,
    pub(super) ipv6: bool,
}

impl Files {
    /// A node file, a registry, and `acme.pem`, all in `/etc/viamesh`.
    pub(super) fn new(node: &str, registry: &str) -> Self {
        let mut files = Self { files: BTreeMap::new(), ipv6: true };
        files.set("node.yaml", node.as_bytes(), 0o644);
        files.set("registry.yaml", registry.as_bytes(), 0o644);
        files.set("acme.pem", key::private_pem(&acme_key()).unwrap().as_bytes(), 0o600);
        files
    }

    pub(super) fn set(&mut self, name: &str, bytes: &[u8], mode: u32) {
        self.files.insert(format!("/etc/viamesh/{name}"), (bytes.to_vec(), mode));
    }

    /// Loads `node.yaml`.
    pub(super) fn load(&self) -> Loaded {
        load(&Request { node: "/etc/viamesh/node.yaml".into(), ..Request::default() }, self)
    }

    /// All diagnostics as text.
    pub(super) fn render(&self) -> String {
        self.load().diagnostics.render(false)
    }
}

impl Host for Files {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = path.to_str().and_then(|path| self.files.get(path));
        file.map(|(bytes, _)| bytes.clone()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn mode(&self, path: &Path) -> Option<u32> {
        path.to_str().and_then(|path| self.files.get(path)).map(|(_, mode)| *mode)
    }

    fn has_ipv6(&self) -> bool {
        self.ipv6
    }
}

/// Codes and lines of all diagnostics, in order.
pub(super) fn codes(diagnostics: &Diagnostics) -> Vec<String> {
    let json = diagnostics.to_json();
    let list = json.as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    list.iter()
        .map(|one| format!("{} {} {}", text(&one["severity"]), text(&one["code"]), one["line"]))
        .collect()
}

pub(super) fn acme_key() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn indented(key: &SigningKey, spaces: usize) -> String {
    let pem = key::public_pem(&key.verifying_key()).unwrap();
    pem.lines().map(|line| format!("{:spaces$}{line}\n", "")).collect()
}

/// acme with alpha, bravo, charlie and echo; partner with delta.
pub(super) fn registry() -> String {
    let node = |name: &str, address: &str| {
        format!(
            "    - common_name: {name}\n      endpoints: [{{ serial_number: \"0\", address_family: ip4{address}, port: 13000 }}]\n"
        )
    };
    [
        "- organization: acme\n  public_key: |\n",
        &indented(&acme_key(), 4),
        "  nodes:\n",
        &node("alpha", ", address: alpha.acme.example"),
        &node("bravo", ", address: 198.51.100.2"),
        &node("charlie", ""),
        &node("echo", ", address: 198.51.100.5"),
        "- organization: partner\n  public_key: |\n",
        &indented(&SigningKey::from_bytes(&[2; 32]), 4),
        "  nodes:\n",
        &node("delta", ", address: 203.0.113.4"),
    ]
    .concat()
}

/// A node file of alpha with `rest` appended; `rest` begins on line 7.
pub(super) fn alpha(rest: &str) -> String {
    format!(
        "organization: acme\ncommon_name: alpha\nprivate_key: /etc/viamesh/acme.pem\nregistry: /etc/viamesh/registry.yaml\nendpoints:\n  - {{ serial_number: \"0\", address_family: ip4, port: 13000 }}\n{rest}"
    )
}
