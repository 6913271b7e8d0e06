//! The stable names of everything that can be wrong while a node runs.

use super::health::Severity;

/// Declares the codes: variant, stable name, severity, what it means and what to do.
macro_rules! health_codes {
    ($($variant:ident $name:literal $severity:ident $meaning:literal, $remedy:literal)*) => {
        /// What is wrong. Names never change once released; each has a heading in docs/troubleshooting.md.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum HealthCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl HealthCode {
            /// Every code, in the order of the manual.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable name, such as `peer/no-answer`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How bad it is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What it means.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// What to do about it, wherever it appears; the message itself says more of the case at hand.
            #[must_use]
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

health_codes! {
    PeerNoAnswer "peer/no-answer" Warning
        "A peer was dialled more than once and did not let us in: no packet comes back, or it refuses. Traffic takes another way if there is one.",
        "Is its daemon running? Is its UDP port open from here (`nc -u`, a packet capture on both sides)? Do both registries name the same key (`viamesh key fingerprint`)? If the message says that it refused us, its registry does not know this node or this key."
    PolicyDown "policy/down" Error
        "A policy has no usable path: a stop or its exit cannot be reached, or the exit does not offer what is asked of it. What happens to its packets is what `if_unreachable` says.",
        "`viamesh status` names the stop. `viamesh explain SRC DST` shows the decision, `viamesh ping STOP` whether the stop answers."
    ConfigNotReloaded "config/not-reloaded" Warning
        "The last reload failed and changed nothing: the node runs on what it had before. After a restart it would not start.",
        "`viamesh check` lists all mistakes. Mend them, then `viamesh reload`."
    ConfigUnconfirmed "config/unconfirmed" Notice
        "A change that was applied with `--confirm-within` is in force on trial.",
        "`viamesh confirm` keeps it. `viamesh undo`, the end of the time, or a restart goes back."
    RegistryUnreachable "registry/unreachable" Warning
        "The registry's source does not answer. The node runs on the last good registry, and so it would after a restart; it only does not hear of changes.",
        "Does the server run, and does the way to it not lead through the mesh itself? `viamesh registry` shows what is in force and how old it is."
    RegistryRefused "registry/refused" Warning
        "The registry's source offers a registry that must not be used: it is older than the one in force, its signature does not fit, or it has mistakes. The node runs on the last good one.",
        "The message says which. After a deliberate return to an older one, remove `registry.json` from the state directory and restart the node; of mistakes the log shows file, line and column."
    DiskState "disk/state" Warning
        "The state directory cannot be written. After a restart the peers may refuse this node's routes for minutes, because Babel's sequence number is lost.",
        "Free space on the disk, or set `state_dir` to a directory that can be written."
    SocketLimited "socket/limited" Notice
        "A UDP socket lacks something that makes it fast, such as a large buffer or segmentation offload. Everything works, with less throughput.",
        "Raise `net.core.rmem_max` and `net.core.wmem_max` to 16 MiB, or give the daemon CAP_NET_ADMIN; use a current kernel."
    WebCannotListen "web/cannot-listen" Warning
        "Metrics or the web page cannot be served where the node file says: something else listens there, or a file is in the way that is no socket. Tunnels are not affected.",
        "Write another `metrics` or `page` into the node file, or stop what is there; then restart."
    KernelNoIpv6 "kernel/no-ipv6" Warning
        "IPv6 is switched off on this host, so the overlay carries IPv4 only, and no policy can work: segments are IPv6.",
        "Switch it on: no `ipv6.disable=1` on the kernel's command line, `net.ipv6.conf.all.disable_ipv6=0`."
    KernelNotPermitted "kernel/not-permitted" Error
        "The kernel does not let the daemon do something.",
        "It needs CAP_NET_ADMIN: run it as root or by the packaged unit; in a container add the capability."
    KernelNoTun "kernel/no-tun" Error
        "The tunnel device is gone while the daemon runs.",
        "Something deleted it. Restart viamesh."
    KernelRefused "kernel/refused" Error
        "The kernel refuses a route, a rule or an address.",
        "`ip route show table all`, `ip rule` and `ip address` show what is in the way."
    KernelSetting "kernel/setting" Warning
        "A kernel setting (sysctl) cannot be changed from here.",
        "Set it outside, in a container on its host: the message gives the line."
    KernelStateFile "kernel/state-file" Notice
        "The file that remembers the host's own forwarding settings cannot be written.",
        "After a crash the next clean stop could not restore them. Make the state directory writable."
    KernelNoNftables "kernel/no-nftables" Error
        "This node offers the internet and the program `nft` is missing, so addresses are not translated.",
        "Install nftables."
    KernelNftables "kernel/nftables" Error
        "`nft` refuses the rule that translates addresses.",
        "The kernel needs nf_tables and nft_masq: `modprobe nft_masq`. `nft list ruleset` shows what is there."
    KernelSharedTable "kernel/shared-table" Warning
        "Another program has routes in the routing table that viamesh uses.",
        "`ip route show table N` shows whose. Give one of them another number (`kernel.table`)."
    KernelLateLocalRule "kernel/late-local-rule" Warning
        "The rule for local addresses was moved behind ours, so packets for this host may go into the mesh.",
        "Move it back to priority 0, or raise `kernel.underlay_priority` and `kernel.overlay_priority` above it."
    KernelForwardDropped "kernel/forward-dropped" Warning
        "A firewall chain drops forwarded packets by default, as Docker's does, so nothing passes between the tunnel and the networks behind this node.",
        "Allow forwarding to and from the tunnel device in that chain."
}

/// The manual, `docs/troubleshooting.md`.
#[must_use]
pub fn manual() -> String {
    let mut text = include_str!("troubleshooting.md").to_owned();
    for code in HealthCode::ALL {
        text.push_str(&format!(
            "\n### {}\n\n*{}.* {}\n\n{}\n",
            code.name(),
            code.severity(),
            code.meaning(),
            code.remedy()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The page in the repository is what the table says; `UPDATE_DOCS=1` makes it so.
    #[test]
    fn the_troubleshooting_page_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/troubleshooting.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, manual()).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let command = "UPDATE_DOCS=1 cargo test -p viamesh --lib troubleshooting";
        assert!(found == manual(), "docs/troubleshooting.md is out of date: run `{command}`");
    }

    #[test]
    fn names_are_unique_and_none_is_a_code_of_check() {
        let mut names: Vec<&str> = HealthCode::ALL.iter().map(|code| code.name()).collect();
        names.extend(crate::config::Code::ALL.iter().map(|code| code.name()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
