//! What could not be done to the kernel, and what to do about it.

use std::io;

use crate::telemetry::{Health, HealthCode};

/// Something that the kernel or the host denies us. The daemon keeps running with the rest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// The host has IPv6 switched off.
    #[error(
        "this host has IPv6 switched off: mesh addresses, segments and IPv6 networks are not reachable from it"
    )]
    NoIpv6,
    /// We may not change the network.
    #[error("not permitted to change {what}")]
    NotPermitted {
        /// What was to be changed.
        what: String,
    },
    /// The tunnel device is not there.
    #[error("the tunnel device {name} does not exist")]
    NoTun {
        /// Interface name.
        name: String,
    },
    /// The kernel refused one change.
    #[error("the kernel refused {what}: {reason}")]
    Refused {
        /// What was to be changed.
        what: String,
        /// The kernel's error in words.
        reason: String,
    },
    /// A kernel setting could not be written.
    #[error("cannot set {key} to {value}: {reason}")]
    Setting {
        /// Name below `/proc/sys`, written with dots.
        key: String,
        /// The wanted value.
        value: String,
        /// Why not.
        reason: String,
    },
    /// What we changed on the host could not be written down.
    #[error("cannot write {file}: {reason}")]
    StateFile {
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
    /// The `nft` program is missing.
    #[error("masquerading needs the program `nft`, which is not installed")]
    NoNftables,
    /// `nft` refused our table.
    #[error("nft refused the masquerade table: {reason}")]
    Nftables {
        /// Its first line of complaint.
        reason: String,
    },
    /// Another program's routes are in a table that we use.
    #[error("routing table {table} also holds routes of another program")]
    SharedTable {
        /// Table number.
        table: u32,
    },
    /// The rule for local addresses comes after ours.
    #[error("the rule for local addresses has priority {priority}, behind ours at {ours}")]
    LateLocalRule {
        /// Priority of `lookup local`.
        priority: u32,
        /// Our lowest priority.
        ours: u32,
    },
    /// A firewall drops what this host forwards by default.
    #[error("the firewall's forward chain {chain} drops by default")]
    ForwardDropped {
        /// Table and chain.
        chain: String,
    },
}

impl Problem {
    /// What the kernel's answer to an attempt at `what` means.
    pub(super) fn refused(what: impl Into<String>, error: &io::Error) -> Self {
        let what = what.into();
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { what: "the network".to_owned() },
            _ => Self::Refused { what, reason: words(error) },
        }
    }

    /// The health message of this problem.
    pub fn health(&self) -> Health {
        let (code, subject, next_step) = self.describe();
        Health::new(code, subject, self.to_string(), next_step)
    }

    fn describe(&self) -> (HealthCode, String, String) {
        match self {
            Self::NoIpv6 => (
                HealthCode::KernelNoIpv6,
                String::new(),
                "IPv4 goes on working; for the rest enable IPv6 (ipv6.disable=0, net.ipv6.conf.all.disable_ipv6=0)"
                    .to_owned(),
            ),
            Self::NotPermitted { what } => (
                HealthCode::KernelNotPermitted,
                what.clone(),
                "needs CAP_NET_ADMIN: run as root, or use the packaged viamesh.service".to_owned(),
            ),
            Self::NoTun { name } => (
                HealthCode::KernelNoTun,
                name.clone(),
                "was it deleted by another program? Restart viamesh".to_owned(),
            ),
            Self::Refused { what, .. } => (
                HealthCode::KernelRefused,
                what.clone(),
                "`ip route`, `ip rule` and `ip address` show what is in the way".to_owned(),
            ),
            Self::Setting { key, value, .. } => (
                HealthCode::KernelSetting,
                key.clone(),
                format!("set it outside: `sysctl -w {key}={value}` (in a container: on its host)"),
            ),
            Self::StateFile { file, .. } => (
                HealthCode::KernelStateFile,
                file.clone(),
                "after a crash the next clean stop could not restore the host's forwarding setting".to_owned(),
            ),
            Self::NoNftables => (
                HealthCode::KernelNoNftables,
                String::new(),
                "install nftables (`apt-get install nftables`)".to_owned(),
            ),
            Self::Nftables { .. } => (
                HealthCode::KernelNftables,
                String::new(),
                "does the kernel have nf_tables and nft_masq? `nft list ruleset` shows what is loaded".to_owned(),
            ),
            Self::SharedTable { table } => (
                HealthCode::KernelSharedTable,
                table.to_string(),
                format!("see `ip route show table {table}`, or give viamesh other table numbers"),
            ),
            Self::LateLocalRule { .. } => (
                HealthCode::KernelLateLocalRule,
                String::new(),
                "raise viamesh's rule priorities above it, or move the local rule back to 0".to_owned(),
            ),
            Self::ForwardDropped { chain } => (
                HealthCode::KernelForwardDropped,
                chain.clone(),
                "allow forwarding to and from the tunnel device in that chain".to_owned(),
            ),
        }
    }
}

/// The error without its number.
pub(super) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}
