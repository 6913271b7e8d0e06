//! Forwarding between interfaces, a setting of the whole host that we may have to switch on, and that a clean
//! stop puts back as it was.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::problem::{Problem, words};
use super::setting::{self, Setting};

/// A setting of the host that we changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Changed {
    setting: Setting,
    /// What it was before.
    original: String,
    /// What we set it to. If it is something else later, somebody changed it after us, and it stays.
    ours: String,
}

/// What we changed, kept on disk so that it survives a crash.
#[derive(Debug, Default)]
pub(super) struct HostForwarding {
    file: Option<PathBuf>,
    v4: Vec<Changed>,
    v6: Vec<Changed>,
}

#[derive(Serialize, Deserialize, Default)]
struct Kept {
    v4: Vec<Changed>,
    v6: Vec<Changed>,
}

impl HostForwarding {
    /// Recalls what an earlier run changed and did not put back.
    pub(super) fn recall(file: Option<PathBuf>) -> Self {
        let kept: Kept = file
            .as_ref()
            .and_then(|file| fs::read(file).ok())
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        Self { file, v4: kept.v4, v6: kept.v6 }
    }

    /// Switches forwarding on where it is wanted, and back where it no longer is.
    pub(super) fn apply(&mut self, v4: bool, v6: bool, tun: &str, problems: &mut Vec<Problem>) {
        if v4 {
            self.enable_v4(problems);
        } else {
            restore(&mut self.v4);
        }
        if v6 {
            self.enable_v6(tun, problems);
        } else {
            restore(&mut self.v6);
        }
        if !v4 || !v6 {
            self.keep(problems);
        }
    }

    fn enable_v4(&mut self, problems: &mut Vec<Problem>) {
        let switch = Setting::host("net/ipv4/ip_forward");
        if switch.read().as_deref() == Some("1") {
            return;
        }
        self.v4 = vec![Changed { setting: switch, original: "0".to_owned(), ours: "1".to_owned() }];
        self.v4.extend(forwarding_alone("ipv4"));
        self.keep(problems);
        write(&self.v4, problems);
    }

    /// A forwarding IPv6 host ignores router advertisements (and so loses its default route) unless
    /// `accept_ra` is 2: interfaces that listen to them go on doing so.
    fn enable_v6(&mut self, tun: &str, problems: &mut Vec<Problem>) {
        let switch = Setting::interface("ipv6", "all", "forwarding");
        let Some("0") = switch.read().as_deref() else { return };
        let mut changes = Vec::new();
        for interface in setting::interfaces("ipv6").unwrap_or_default() {
            let setting = Setting::interface("ipv6", &interface, "accept_ra");
            if interface != tun && interface != "lo" && setting.read().as_deref() == Some("1") {
                changes.push(Changed { setting, original: "1".to_owned(), ours: "2".to_owned() });
            }
        }
        changes.push(Changed { setting: switch, original: "0".to_owned(), ours: "1".to_owned() });
        changes.extend(forwarding_alone("ipv6"));
        self.v6 = changes;
        self.keep(problems);
        write(&self.v6, problems);
    }

    /// Puts everything back.
    pub(super) fn restore(&mut self, problems: &mut Vec<Problem>) {
        restore(&mut self.v4);
        restore(&mut self.v6);
        self.keep(problems);
    }

    fn keep(&self, problems: &mut Vec<Problem>) {
        let Some(file) = &self.file else { return };
        let result = if self.v4.is_empty() && self.v6.is_empty() {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        } else {
            let kept = Kept { v4: self.v4.clone(), v6: self.v6.clone() };
            serde_json::to_vec(&kept).map_err(io::Error::other).and_then(|text| fs::write(file, text))
        };
        if let Err(error) = result {
            problems.push(Problem::StateFile { file: file.display().to_string(), reason: words(&error) });
        }
    }
}

/// Interfaces that forward although the host as a whole does not: switching the host off again would switch
/// them off too, so they are switched on again after it.
fn forwarding_alone(family: &str) -> Vec<Changed> {
    let names = setting::interfaces(family).unwrap_or_default();
    let settings = names.iter().map(|name| Setting::interface(family, name, "forwarding"));
    settings
        .filter(|setting| setting.read().as_deref() == Some("1"))
        .map(|setting| Changed { setting, original: "1".to_owned(), ours: "1".to_owned() })
        .collect()
}

fn write(changes: &[Changed], problems: &mut Vec<Problem>) {
    problems.extend(changes.iter().filter_map(|change| change.setting.write(&change.ours).err()));
}

/// What cannot be put back is gone: an interface that no longer exists.
fn restore(changes: &mut Vec<Changed>) {
    let untouched: Vec<Changed> = changes
        .drain(..)
        .filter(|change| change.setting.read().as_deref() == Some(change.ours.as_str()))
        .collect();
    for change in untouched {
        let _ = change.setting.write(&change.original);
    }
}
