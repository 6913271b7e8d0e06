//! How the guest's kernel is made: data for `mmdebstrap`, `tar` and `make`.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::peers::cache::Cache;

/// What it can do: everything that is not named stays out, so that it builds in minutes.
const CONFIGURATION: &str = include_str!("kernel.config");

/// The recipe of the guest's kernel.
#[derive(Debug, Clone, Copy)]
pub struct GuestKernel;

impl GuestKernel {
    /// Debian's suite and package with the source.
    pub const SOURCE: (&str, &str) = ("trixie", "linux-source-6.12");

    /// Files of the source that no part of this kernel is made of, as patterns of `tar`; unpacking them would take as long
    /// as compiling.
    pub const UNUSED: [&str; 11] = [
        "*/Documentation/*.[rty]*",
        "*/Documentation/*.svg",
        "*/arch/[!ux]*/*.[chS]",
        "*/arch/[!ux]*/*.dts*",
        "*/arch/[!ux]*/*_defconfig",
        "*/drivers/[acdf-mo-z]*/*/*.[ch]",
        "*/drivers/net/*/*.[ch]",
        "*/fs/[bcfgjnoux]*/*.[ch]",
        "*/sound/*.[ch]",
        "*/tools/perf/*",
        "*/tools/testing/*",
    ];

    /// What the compiler is told in addition: it shall be silent.
    pub const FLAGS: &str = "-w";

    /// The configuration, for `make allnoconfig` with `KCONFIG_ALLCONFIG`.
    pub const fn configuration(self) -> &'static str {
        CONFIGURATION
    }

    /// Where it is once it has been made: an ordinary program.
    pub fn path() -> PathBuf {
        let (suite, package) = Self::SOURCE;
        let text = format!("{suite} {package} {} {}\n{CONFIGURATION}", Self::UNUSED.join(" "), Self::FLAGS);
        let hash: String = Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Cache::of_user().artefact("kernels", "guest", &hash)
    }
}
