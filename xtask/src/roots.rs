//! The root file systems that the foreign peers live in, made by `mmdebstrap` from the mirror that this machine's apt
//! uses.

use crate::{packages, step};
use lab::LabError;
use lab::peers::{Cache, Recipe, Release};
use std::path::Path;
use std::process::Command;

/// Names another mirror than the one of apt's configuration.
const MIRROR: &str = "VIAMESH_DEBIAN_MIRROR";

/// Make what is missing.
pub(crate) fn make() -> Result<(), String> {
    for release in missing() {
        let make = |path: &Path| bootstrap(&release.recipe(), path).map_err(Failure);
        Cache::of_user().ensure(&release.path(), make).map_err(|failure| failure.0)?;
    }
    Ok(())
}

/// Those that have not been made.
pub(crate) fn missing() -> Vec<Release> {
    Release::ALL.into_iter().filter(|release| !release.path().is_dir()).collect()
}

/// What went wrong, in words.
pub(crate) struct Failure(pub(crate) String);

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self(error.to_string())
    }
}

fn bootstrap(recipe: &Recipe, path: &Path) -> Result<(), String> {
    let mut command = Command::new("mmdebstrap");
    command.args(recipe.arguments()).arg(recipe.suite).arg(path).arg(source_line(recipe.suite)?);
    let title = format!("the root of {} (once, about a minute): {}", recipe.name, recipe.suite);
    step::run(&title, &mut command)
}

/// Where packages of a suite come from, as apt writes it.
pub(crate) fn source_line(suite: &str) -> Result<String, String> {
    Ok(format!("deb [signed-by={}] {} {suite} main", packages::KEYRING, mirror()?))
}

/// The mirror of Debian that apt uses here.
fn mirror() -> Result<String, String> {
    if let Ok(mirror) = std::env::var(MIRROR) {
        return Ok(mirror);
    }
    let output = Command::new("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]).output();
    let output = output.map_err(|error| format!("cannot ask apt-get for the mirror: {error}"))?;
    pick(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        format!("apt's configuration names no mirror of Debian: set {MIRROR}, e.g. to http://deb.debian.org/debian")
    })
}

/// The first address that ends as mirrors of Debian itself do.
fn pick(addresses: &str) -> Option<String> {
    let plain = addresses.lines().map(|line| line.trim().trim_end_matches('/'));
    plain.into_iter().find(|address| address.ends_with("/debian")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::pick;

    #[test]
    fn the_mirror_is_debians_own() {
        let addresses =
            "https://example.org/tool\nhttp://a.example/debian-security/\nhttp://b.example/debian/\n";
        assert_eq!(pick(addresses).as_deref(), Some("http://b.example/debian"));
        assert_eq!(pick("https://example.org/ubuntu\n"), None);
    }
}
