//! System packages that the tests drive as real peers and judges.

use crate::step;
use std::path::Path;
use std::process::Command;

/// The keys that the peers' root file systems are checked with.
pub(crate) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// (package, a file that proves it is there).
const PACKAGES: &[(&str, &str)] = &[
    ("iperf3", "/usr/bin/iperf3"),
    ("tshark", "/usr/bin/tshark"),
    ("nftables", "/usr/sbin/nft"),
    ("iproute2", "/usr/sbin/ip"),
    ("iputils-ping", "/usr/bin/ping"),
    ("mmdebstrap", "/usr/bin/mmdebstrap"),
    ("debian-archive-keyring", KEYRING),
    // What the guest's kernel is built with.
    ("gcc", "/usr/bin/gcc"),
    ("libc6-dev", "/usr/include/stdio.h"),
    ("make", "/usr/bin/make"),
    ("flex", "/usr/bin/flex"),
    ("bison", "/usr/bin/bison"),
    ("bc", "/usr/bin/bc"),
    ("xz-utils", "/usr/bin/xz"),
    // Judges of what people see: a browser, Prometheus' tools, Graphviz, a terminal.
    ("chromium", "/usr/bin/chromium"),
    ("fonts-dejavu-core", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"),
    ("prometheus", "/usr/bin/promtool"),
    ("graphviz", "/usr/bin/dot"),
    ("tmux", "/usr/bin/tmux"),
    ("etcd-server", "/usr/bin/etcd"),
    ("etcd-client", "/usr/bin/etcdctl"),
];

/// Packages that are not installed yet.
pub(crate) fn missing() -> Vec<&'static str> {
    PACKAGES.iter().filter(|(_, proof)| !Path::new(proof).exists()).map(|(name, _)| *name).collect()
}

/// Install what is missing. Prints each command, then runs it: nothing but `apt-get` is run with `sudo`.
pub(crate) fn install() -> Result<(), String> {
    let wanted = missing();
    if wanted.is_empty() {
        return Ok(());
    }
    apt_get(&["update", "-q"])?;
    let install = |packages: &[&str]| {
        apt_get(&[&["install", "-y", "-q", "--no-install-recommends"], packages].concat())
    };
    // One name that the mirror lacks would fail them all; alone it tells which.
    if install(&wanted).is_ok() { Ok(()) } else { wanted.iter().try_for_each(|package| install(&[package])) }
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let root = Path::new("/proc/self").exists() && is_root();
    let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
    if !root {
        command.arg("apt-get");
    }
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    step::run(&format!("{}apt-get {}", if root { "" } else { "sudo " }, arguments.join(" ")), &mut command)
}

/// Whether this process has root's user id (in its user namespace).
pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|ids| ids.split_whitespace().nth(1))
        .is_some_and(|effective| effective == "0")
}
