//! Kernel settings below `/proc/sys`.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::problem::{Problem, words};

/// One setting by its `sysctl` name. Interface names are given apart, since they may contain dots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(super) struct Setting {
    /// Path below `/proc/sys`.
    path: String,
}

impl Setting {
    /// A setting of the whole host, such as `net/ipv4/ip_forward`.
    pub(super) fn host(path: &str) -> Self {
        Self { path: path.to_owned() }
    }

    /// A setting of one interface: `family` is `ipv4` or `ipv6`.
    pub(super) fn interface(family: &str, interface: &str, name: &str) -> Self {
        Self { path: format!("net/{family}/conf/{interface}/{name}") }
    }

    /// The present value; `None` if the kernel does not have the setting.
    pub(super) fn read(&self) -> Option<String> {
        fs::read_to_string(self.file()).ok().map(|text| text.trim().to_owned())
    }

    /// Sets the value, unless it is set already: a container where `/proc/sys` is read-only but right is fine.
    pub(super) fn write(&self, value: &str) -> Result<(), Problem> {
        if self.read().as_deref() == Some(value) {
            return Ok(());
        }
        fs::write(self.file(), value).map_err(|error| Problem::Setting {
            key: self.path.replace('/', "."),
            value: value.to_owned(),
            reason: words(&error),
        })
    }

    fn file(&self) -> PathBuf {
        PathBuf::from("/proc/sys").join(&self.path)
    }
}

/// Interfaces that have settings of `family`, without the pseudo interfaces `all` and `default`.
pub(super) fn interfaces(family: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(format!("/proc/sys/net/{family}/conf"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "all" && name != "default" {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether this host speaks IPv6 on `interface`.
pub(super) fn has_ipv6(interface: &str) -> bool {
    let enabled = |interface: &str| {
        Setting::interface("ipv6", interface, "disable_ipv6").read().as_deref() == Some("0")
    };
    enabled("all") && enabled(interface)
}
