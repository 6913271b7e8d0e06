//! One step of a command: a child process with a heading and a measured duration.

use std::io::Write;
use std::process::Command;
use std::time::Instant;

/// Write one line to standard error; a closed terminal is not an error worth failing for.
pub(crate) fn narrate(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Run `command` and fail with its description when it fails.
pub(crate) fn run(title: &str, command: &mut Command) -> Result<(), String> {
    narrate(&format!("\n=== {title}"));
    let started = Instant::now();
    let status = command.status().map_err(|e| format!("{title}: cannot start {command:?}: {e}"))?;
    let seconds = started.elapsed().as_secs_f32();
    if status.success() {
        narrate(&format!("=== {title}: done in {seconds:.0} s"));
        Ok(())
    } else {
        Err(format!("{title} failed ({status}) after {seconds:.0} s"))
    }
}

/// `cargo` as the one that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}
