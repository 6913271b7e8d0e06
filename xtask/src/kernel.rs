//! The kernel of the guest: built from Debian's source as a program of User-Mode Linux.

use crate::{roots, step};
use lab::peers::{Cache, GuestKernel};
use std::path::Path;
use std::process::Command;

/// Make it if it is missing.
pub(crate) fn make() -> Result<(), String> {
    let make = |path: &Path| build(path).map_err(roots::Failure);
    Cache::of_user().ensure(&GuestKernel::path(), make).map_err(|failure| failure.0)
}

/// Whether it has not been made.
pub(crate) fn is_missing() -> bool {
    !GuestKernel::path().exists()
}

fn build(path: &Path) -> Result<(), String> {
    let scratch = path.with_extension("scratch");
    discard(&scratch)?;
    let outcome = fetch(&scratch).and_then(|()| compile(&scratch, path));
    discard(&scratch)?;
    outcome
}

fn discard(scratch: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", scratch.display()))
        }
        _ => Ok(()),
    }
}

/// The source, unpacked into `source`.
fn fetch(scratch: &Path) -> Result<(), String> {
    let (suite, package) = GuestKernel::SOURCE;
    let (root, source) = (scratch.join("package"), scratch.join("source"));
    for folder in [scratch, &source] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut download = Command::new("mmdebstrap");
    download.args(["--variant=extract", "--aptopt=APT::Install-Recommends \"false\""]);
    download.args(["--aptopt=Acquire::Check-Valid-Until \"false\"", "--aptopt=Acquire::Retries \"3\""]);
    download.arg(format!("--include={package}")).arg(suite).arg(&root).arg(roots::source_line(suite)?);
    step::run(&format!("the source of the guest's kernel: {package}"), &mut download)?;
    let mut unpack = Command::new("tar");
    unpack.arg("--extract").arg("--strip-components=1").arg("--directory").arg(&source);
    unpack.args(GuestKernel::UNUSED.map(|pattern| format!("--exclude={pattern}")));
    unpack.arg("--file").arg(root.join("usr/src").join(package).with_added_extension("tar.xz"));
    step::run("unpacking it", &mut unpack)
}

fn compile(scratch: &Path, path: &Path) -> Result<(), String> {
    let (source, output) = (scratch.join("source"), scratch.join("output"));
    let configuration = scratch.join("configuration");
    std::fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    std::fs::write(&configuration, GuestKernel.configuration())
        .map_err(|error| format!("{}: {error}", configuration.display()))?;
    let make = |target: &str| {
        let mut command = Command::new("make");
        command.args(["-s", "ARCH=um"]).arg("-C").arg(&source).arg(format!("O={}", output.display()));
        // Those of cargo, if this is part of a build.
        command.env_remove("MAKEFLAGS").env("KCONFIG_ALLCONFIG", &configuration);
        command.arg(format!("KCFLAGS={}", GuestKernel::FLAGS)).arg(target);
        command
    };
    step::run("the configuration of the guest's kernel", &mut make("allnoconfig"))?;
    check(&output.join(".config"))?;
    let jobs = std::thread::available_parallelism().map_or(2, usize::from);
    let mut build = make("linux");
    build.arg(format!("-j{jobs}"));
    step::run("the guest's kernel (once, two or three minutes)", &mut build)?;
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(path).arg(output.join("linux"));
    step::run("its symbols go", &mut strip)
}

/// Whether every wish was granted: an option that another version calls otherwise must not vanish silently.
fn check(found: &Path) -> Result<(), String> {
    let found = std::fs::read_to_string(found).map_err(|error| format!("{}: {error}", found.display()))?;
    let wanted = GuestKernel.configuration().lines().filter(|line| line.starts_with("CONFIG_"));
    let missing: Vec<&str> = wanted.filter(|line| !found.lines().any(|other| other == *line)).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("this source has no {}", missing.join(", "))),
    }
}
