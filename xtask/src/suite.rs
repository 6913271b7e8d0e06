//! `cargo xtask test`: the steps of the test command, in the order that finds mistakes soonest.

use std::process::Command;

use crate::{deb, interop, packages, roots, step};

/// The module of the lab tests that takes minutes or hours.
const SOAK: &str = "soak::";

/// Modules of lab tests that compare times, or fill the machine.
const MEASURING: [&str; 4] = ["demo::", "path_mtu::", "rekey::", "relay::"];

/// The module of the lab test that tries the Debian package.
const PACKAGE: &str = "package::";

/// How long it may take each time.
const CI_SOAK_MINUTES: u32 = 2;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// Run the whole matrices and repetitions instead of CI's samples.
    #[arg(long)]
    full: bool,
    /// Install nothing; list what could not be run for that reason instead of failing.
    #[arg(long)]
    offline: bool,
    /// How many times to run the lab suite in a row.
    #[arg(long, default_value_t = 1)]
    repeat_lab: u32,
    /// Run only the lab suite (after building it).
    #[arg(long)]
    lab_only: bool,
}

/// Run the suite.
pub(crate) fn run(arguments: &TestArguments) -> Result<(), String> {
    // The roots come from the network, one after the other: meanwhile the compiler has something to do.
    let mut roots = None;
    if !arguments.offline {
        packages::install()?;
        roots = Some(std::thread::spawn(roots::make));
    }
    if !arguments.lab_only {
        static_checks()?;
        step::run(
            "unit, property and simulation tests",
            step::cargo(&["test", "--workspace", "--all-targets", "--quiet"]).env("RUST_BACKTRACE", "1"),
        )?;
        step::run("documentation tests", &mut step::cargo(&["test", "--workspace", "--doc", "--quiet"]))?;
    }
    if let Some(roots) = roots {
        roots.join().map_err(|_| "making the roots of the peers ended in a panic")??;
    }
    lab(arguments)?;
    if arguments.lab_only { Ok(()) } else { interop::after_the_lab(arguments.full, arguments.offline) }
}

/// Build the daemon that the tests start.
pub(crate) fn build_daemon() -> Result<(), String> {
    step::run("the daemon", &mut step::cargo(&["build", "--workspace", "--quiet", "--bin", "viamesh"]))
}

/// Install and make what the tests need and this machine lacks.
pub(crate) fn setup() -> Result<(), String> {
    packages::install()?;
    roots::make()
}

fn static_checks() -> Result<(), String> {
    step::run("format", &mut step::cargo(&["fmt", "--all", "--check"]))?;
    step::run(
        "lints",
        &mut step::cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    )?;
    step::run(
        "documentation",
        step::cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// The tests with real daemons in network namespaces. The whole workspace is named in each call, so
/// that cargo unites features the same way and builds nothing twice.
fn lab(arguments: &TestArguments) -> Result<(), String> {
    if !packages::is_root() {
        if arguments.offline {
            step::narrate("NOT RUN: lab tests (they need root: network namespaces and TUN devices)");
            return Ok(());
        }
        return Err("the lab tests need root (network namespaces and TUN devices): \
                    run `sudo -E env PATH=$PATH cargo xtask test`"
            .into());
    }
    for package in packages::missing() {
        step::narrate(&format!("NOT RUN: lab tests that {package} judges (it is not installed)"));
    }
    build_daemon()?;
    let packed = !arguments.offline || deb::is_ready();
    if packed {
        deb::for_tests()?;
    } else {
        step::narrate("NOT RUN: the test of the Debian package (it needs cargo-deb)");
    }
    for round in 1..=arguments.repeat_lab {
        let heading = format!("lab, round {round} of {}", arguments.repeat_lab);
        // Most of the time a world waits for its own clocks, so that two have room. What measures comes alone.
        let mut together = lab_command(arguments, "2");
        together.args(["--skip", SOAK]).args(MEASURING.iter().flat_map(|module| ["--skip", module]));
        if !packed {
            together.args(["--skip", PACKAGE]);
        }
        step::run(&format!("{heading}: two at a time"), &mut together)?;
        step::run(&format!("{heading}: one at a time"), lab_command(arguments, "1").args(MEASURING))?;
    }
    soak(CI_SOAK_MINUTES, 1)
}

/// The lab's tests, so many at once.
fn lab_command(arguments: &TestArguments, threads: &str) -> Command {
    let mut command = step::cargo(&["test", "--workspace", "--test", "lab", "--", "--test-threads", threads]);
    command.env("VIAMESH_OFFLINE", if arguments.offline { "1" } else { "0" });
    command.env("RUST_BACKTRACE", "1").env("VIAMESH_FULL", if arguments.full { "1" } else { "0" });
    command
}

/// Keep a mesh in a storm of faults for so long. Needs root.
pub(crate) fn soak(minutes: u32, seed: u64) -> Result<(), String> {
    step::run("the daemon", &mut step::cargo(&["build", "--workspace", "--quiet", "--bin", "viamesh"]))?;
    let mut command = step::cargo(&["test", "--workspace", "--test", "lab", "--", "--nocapture", SOAK]);
    command.env("RUST_BACKTRACE", "1");
    command.env("VIAMESH_SOAK_MINUTES", minutes.to_string()).env("VIAMESH_SOAK_SEED", seed.to_string());
    step::run(&format!("soak of {minutes} minutes, seed {seed}"), &mut command)
}

/// Run one libFuzzer target with the nightly tool chain.
pub(crate) fn fuzz(target: &str, seconds: u32) -> Result<(), String> {
    let (core, name) = target.split_once('/').ok_or("the target is CRATE/TARGET, e.g. `esp/open`")?;
    let mut command = Command::new("cargo");
    command.current_dir(core).args([
        "+nightly",
        "fuzz",
        "run",
        name,
        "--",
        &format!("-max_total_time={seconds}"),
    ]);
    step::run(&format!("fuzz {target}"), &mut command)
}

/// Run a benchmark, built for speed.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    let mut command = step::cargo(&["run", "--release", "--quiet", "--package", "bench", "--"]);
    command.args(arguments);
    step::run("benchmark", &mut command)
}
