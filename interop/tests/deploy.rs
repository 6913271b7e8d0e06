//! What `deploy/` brings to a host: the unit is as tight as it claims, scripts are scripts.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it leaves out"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy")
}

/// The most that `systemd-analyze security` may find exposed, in tenths.
const EXPOSURE: f64 = 2.0;

#[test]
fn the_unit_is_tight() {
    let unit = deploy().join("viamesh.service");
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager"])
        .arg(&unit)
        .output();
    let Ok(output) = output else {
        eprintln!("NOT RUN: there is no systemd-analyze on this host");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_default();
    let level = line.split_whitespace().find_map(|word| word.parse::<f64>().ok());
    let level =
        level.unwrap_or_else(|| panic!("no level in:\n{text}{}", String::from_utf8_lossy(&output.stderr)));
    assert!(level <= EXPOSURE, "{level}:\n{text}");
}

#[test]
fn the_unit_asks_for_what_the_daemon_does() {
    let unit = std::fs::read_to_string(deploy().join("viamesh.service")).unwrap();
    for line in [
        "Type=notify",
        "WatchdogSec=30",
        "ExecReload=/usr/bin/viamesh reload",
        "RestartPreventExitStatus=78",
        "StateDirectory=viamesh",
        "RuntimeDirectory=viamesh",
        "BindPaths=-/dev/net/tun",
    ] {
        assert!(unit.lines().any(|found| found == line), "no `{line}` in the unit");
    }
}

#[test]
fn the_init_script_is_one() {
    let script = deploy().join("openwrt/viamesh.init");
    let output = Command::new("sh").arg("-n").arg(&script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
