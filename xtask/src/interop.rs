//! `cargo xtask interop`: foreign daemons as peers of ours.

use crate::{kernel, packages, roots, step, suite};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct InteropArguments {
    /// Run the whole matrices instead of CI's sample.
    #[arg(long)]
    full: bool,
    /// Run the cases of this peer only.
    peer: Option<Peer>,
    /// Run only cases whose name contains this, e.g. `rekey`.
    #[arg(long)]
    only: Option<String>,
}

/// A foreign peer.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Peer {
    Strongswan,
    Libreswan,
    Bird,
    Babeld,
    Seg6,
    /// All of these in a machine whose kernel has ESP and XFRM interfaces.
    Kernel,
}

impl Peer {
    /// How the names of its cases begin.
    fn prefix(self) -> &'static str {
        match self {
            Self::Strongswan => "strongswan/",
            Self::Libreswan => "libreswan/",
            Self::Bird => "bird/",
            Self::Babeld => "babeld/",
            Self::Seg6 => "seg6/",
            Self::Kernel => "kernel/",
        }
    }
}

/// Install what is missing, build, run, count.
pub(crate) fn run(arguments: &InteropArguments) -> Result<(), String> {
    suite::setup()?;
    require_root()?;
    // Its cases are the whole matrix's.
    let full = arguments.full || matches!(arguments.peer, Some(Peer::Kernel));
    if full {
        kernel::make()?;
    }
    suite::build_daemon()?;
    let filter = match (arguments.peer, &arguments.only) {
        (_, Some(only)) => Some(only.clone()),
        (Some(peer), None) => Some(peer.prefix().to_owned()),
        (None, None) => None,
    };
    cases(full, filter.as_deref())
}

/// As a step of `cargo xtask test`; everything is built by then.
pub(crate) fn after_the_lab(full: bool, offline: bool) -> Result<(), String> {
    if offline {
        let missing = roots::missing();
        let no_kernel = full && kernel::is_missing();
        if !missing.is_empty() || no_kernel || !packages::is_root() {
            let roots = missing.iter().map(|release| release.recipe().name);
            let names: Vec<&str> = roots.chain(no_kernel.then_some("the guest's kernel")).collect();
            let needs = if names.is_empty() { "root".to_owned() } else { names.join(", ") };
            step::narrate(&format!("NOT RUN: interop tests with foreign peers (they need {needs})"));
            return Ok(());
        }
    }
    require_root()?;
    if full {
        kernel::make()?;
    }
    cases(full, None)
}

fn require_root() -> Result<(), String> {
    if packages::is_root() {
        return Ok(());
    }
    Err("foreign peers need root (network namespaces, chroot and TUN devices): \
         run `sudo -E env PATH=$PATH cargo xtask interop`"
        .into())
}

/// Run the cases and say last how many passed and failed.
fn cases(full: bool, filter: Option<&str>) -> Result<(), String> {
    step::narrate("\n=== foreign peers");
    let mut command = step::cargo(&["test", "--workspace", "--test", "peers", "--"]);
    command.args(filter).env("RUST_BACKTRACE", "1").env("VIAMESH_FULL", if full { "1" } else { "0" });
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| format!("cargo: {error}"))?;
    let mut summary: Option<(u32, u32)> = None;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = writeln!(std::io::stdout().lock(), "{line}");
            if let Some((passed, failed)) = count(&line) {
                let (before, failed_before) = summary.unwrap_or_default();
                summary = Some((before + passed, failed_before + failed));
            }
        }
    }
    let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
    let (passed, failed) = summary.ok_or_else(|| format!("the cases ended early ({status})"))?;
    step::narrate(&format!("interop: {passed} cases passed, {failed} failed"));
    match status.success() && failed == 0 {
        true if passed > 0 => Ok(()),
        true => Err("no such case".into()),
        false => Err("foreign peers and ours disagree".into()),
    }
}

/// Passed and failed cases in the last line of a test program.
fn count(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |what: &str| {
        let part = rest.split(['.', ';']).map(str::trim).find(|part| part.ends_with(what))?;
        part.split_whitespace().next()?.parse().ok()
    };
    Some((number("passed")?, number("failed")?))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn the_result_line_is_understood() {
        let line =
            "test result: FAILED. 11 passed; 2 failed; 0 ignored; 0 measured; 3 filtered out; finished in 9s";
        assert_eq!(count(line), Some((11, 2)));
        assert_eq!(count("test strongswan/plain ... ok"), None);
    }
}
