//! `cargo xtask deb`: the Debian package.

use crate::step;
use lab::peers::Cache;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that builds the package, and the version that is known to work.
const CARGO_DEB: (&str, &str) = ("cargo-deb", "3.8.0");

/// Which build goes into the package.
#[derive(clap::Args)]
pub(crate) struct DebArguments {
    /// Pack the unoptimised build of the tests, to try the package.
    #[arg(long)]
    dev: bool,
    /// The package's version, instead of the workspace's.
    #[arg(long)]
    deb_version: Option<String>,
}

/// The package that the lab tests try, of the build that they use.
pub(crate) fn for_tests() -> Result<(), String> {
    run(&DebArguments { dev: true, deb_version: None })
}

/// Whether cargo-deb is here already.
pub(crate) fn is_ready() -> bool {
    kept().is_dir()
}

/// Build the package; its file is in `target/debian`.
pub(crate) fn run(arguments: &DebArguments) -> Result<(), String> {
    let mut build = step::cargo(&["build", "--workspace", "--quiet", "--bin", "viamesh"]);
    if !arguments.dev {
        build.arg("--release");
    }
    step::run("the daemon", &mut build)?;
    let built = target()?.join(if arguments.dev { "debug" } else { "release" });
    generate(&built.join("viamesh"), &built.join("package"))?;
    let mut command = Command::new(cargo_deb()?);
    command.args(["--no-build", "--package", "viamesh"]);
    if arguments.dev {
        // It warns of this profile; the package is made to be tried and thrown away.
        command.args(["--profile", "dev", "--fast", "-Z", "gz"]);
    }
    if let Some(version) = &arguments.deb_version {
        command.args(["--deb-version", version]);
    }
    step::run("the Debian package", &mut command)
}

/// Manual pages and completions come from the program itself.
fn generate(binary: &Path, folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(&man).map_err(failed)?;
    std::fs::create_dir_all(&completions).map_err(failed)?;
    step::run("manual pages", Command::new(binary).arg("man").arg("--dir").arg(&man).stdout(Stdio::null()))?;
    for (shell, name) in [("bash", "viamesh.bash"), ("zsh", "_viamesh"), ("fish", "viamesh.fish")] {
        let output = Command::new(binary).args(["completions", shell]).output().map_err(failed)?;
        std::fs::write(completions.join(name), output.stdout).map_err(failed)?;
    }
    Ok(())
}

/// cargo-deb, built once and kept with the other things that take a while.
fn cargo_deb() -> Result<PathBuf, String> {
    let (name, version) = CARGO_DEB;
    let folder = kept();
    let make = |path: &Path| {
        let mut install =
            step::cargo(&["install", "--quiet", "--locked", name, "--version", version, "--root"]);
        step::run(&format!("{name} {version} (once)"), install.arg(path)).map_err(super::roots::Failure)
    };
    Cache::of_user().ensure(&folder, make).map_err(|failure| failure.0)?;
    Ok(folder.join("bin").join(name))
}

/// Where cargo-deb is once it has been built.
fn kept() -> PathBuf {
    Cache::of_user().artefact("tools", CARGO_DEB.0, CARGO_DEB.1)
}

/// Where cargo builds.
fn target() -> Result<PathBuf, String> {
    if let Some(folder) = std::env::var_os("CARGO_TARGET_DIR") {
        return Ok(folder.into());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask is in no workspace")?;
    Ok(root.join("target"))
}
