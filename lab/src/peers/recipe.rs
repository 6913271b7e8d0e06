//! What is in the file systems of the peers: data for `mmdebstrap`.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::cache::Cache;
use crate::error::{LabError, Result};
use crate::root::Root;

/// strongSwan with its daemon for use without systemd's help, and everything that its plugins can do.
const STRONGSWAN: &[&str] = &[
    "charon-systemd",
    "strongswan-swanctl",
    "libstrongswan-standard-plugins",
    "libstrongswan-extra-plugins",
    "libcharon-extra-plugins",
];

/// The Babel speakers.
const BABEL: &[&str] = &["bird2", "babeld"];

/// What every root has beside the daemons.
const BASE: &[&str] = &["iproute2", "nftables", "openssl"];

/// A release of Debian with foreign peers in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// bookworm: strongSwan 5.9.8, BIRD 2.0.12, babeld 1.12.
    Debian12,
    /// trixie: strongSwan 6.0.1, BIRD 2.17, babeld 1.13.
    Debian13,
    /// forky, the next release: strongSwan 6.1 with ML-KEM, BIRD and babeld of the day.
    DebianNext,
    /// trixie with libreswan 5.2, which can't be installed beside strongSwan.
    Debian13Libreswan,
}

/// How to make the file system of a [`Release`].
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// Names the file system in the cache.
    pub name: &'static str,
    /// The suite on the mirror.
    pub suite: &'static str,
    /// Groups of packages.
    packages: &'static [&'static [&'static str]],
}

impl Release {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Debian13, Self::Debian12, Self::DebianNext, Self::Debian13Libreswan];

    /// How to make it.
    pub const fn recipe(self) -> Recipe {
        match self {
            Self::Debian12 => {
                Recipe { name: "debian-12", suite: "bookworm", packages: &[BASE, STRONGSWAN, BABEL] }
            }
            Self::Debian13 => {
                Recipe { name: "debian-13", suite: "trixie", packages: &[BASE, STRONGSWAN, BABEL] }
            }
            Self::DebianNext => {
                Recipe { name: "debian-next", suite: "forky", packages: &[BASE, STRONGSWAN, BABEL] }
            }
            Self::Debian13Libreswan => Recipe {
                name: "debian-13-libreswan",
                suite: "trixie",
                packages: &[BASE, &["libreswan", "libnss3-tools"]],
            },
        }
    }

    /// The file system, for [`Host::spawn_in`](crate::Host::spawn_in) and
    /// [`Host::run_in`](crate::Host::run_in). Its programs see `shared` under the same name as we do, and each has
    /// an empty `/run` and `/tmp` of its own.
    ///
    /// # Errors
    /// [`LabError::Impossible`] when it has not been made yet.
    pub fn root(self, shared: &Path) -> Result<Root> {
        let path = self.path();
        if !path.is_dir() {
            let name = self.recipe().name;
            let text = format!("{} is missing: `cargo xtask setup` makes the root of {name}", path.display());
            return Err(LabError::Impossible(text));
        }
        Ok(Root::new(path).private("/run").private("/tmp").share(shared, shared))
    }

    /// Where the file system is once it has been made.
    pub fn path(self) -> PathBuf {
        let recipe = self.recipe();
        Cache::of_user().artefact("roots", recipe.name, &recipe.hash())
    }
}

impl Recipe {
    /// Everything that decides what the file system holds, as arguments for `mmdebstrap`. Suite, target and mirror
    /// follow them.
    pub fn arguments(&self) -> Vec<String> {
        let packages: Vec<&str> = self.packages.iter().copied().flatten().copied().collect();
        let fixed = [
            "--variant=minbase",
            "--aptopt=APT::Install-Recommends \"false\"",
            "--aptopt=Acquire::Languages \"none\"",
            // A release in the making is signed anew every few hours, and mirrors that stand still are of use, too.
            "--aptopt=Acquire::Check-Valid-Until \"false\"",
            "--aptopt=Acquire::Retries \"3\"",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            // Which mirror it came from is nobody's business.
            "--customize-hook=rm -rf \"$1\"/etc/apt/sources.list \"$1\"/etc/apt/sources.list.d/*",
            "--customize-hook=rm -rf \"$1\"/var/cache/apt/*.bin \"$1\"/var/lib/apt/lists/*",
        ];
        let mut arguments: Vec<String> = fixed.into_iter().map(str::to_owned).collect();
        arguments.push(format!("--include={}", packages.join(",")));
        arguments
    }

    /// Identifies the contents: twelve hexadecimal digits.
    pub fn hash(&self) -> String {
        let text = format!("{} {}", self.suite, self.arguments().join("\n"));
        Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::Release;

    #[test]
    fn each_release_has_a_place_of_its_own() {
        let places: BTreeSet<_> = Release::ALL.iter().map(|release| release.path()).collect();
        assert_eq!(places.len(), Release::ALL.len());
        let hashes: BTreeSet<_> = Release::ALL.iter().map(|release| release.recipe().hash()).collect();
        assert_eq!(hashes.len(), Release::ALL.len());
        assert!(hashes.iter().all(|hash| hash.len() == 12));
    }

    #[test]
    fn a_missing_root_says_who_makes_it() {
        for release in Release::ALL.into_iter().filter(|release| !release.path().exists()) {
            let error = release.root(Path::new("/tmp")).unwrap_err().to_string();
            assert!(error.contains("cargo xtask setup"), "{error}");
        }
    }
}
