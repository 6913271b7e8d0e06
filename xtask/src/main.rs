//! The repository's own commands: `cargo xtask setup`, `cargo xtask test` and friends.
//! This program only dispatches: what is tested or measured lives in `interop` and `bench`.

mod deb;
mod interop;
mod kernel;
mod packages;
mod roots;
mod step;
mod suite;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Commands of the viamesh repository.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the tests need: system packages (apt-get, through sudo when not root), and the root file systems
    /// of the foreign peers (cached below `$XDG_CACHE_HOME/viamesh`).
    Setup,
    /// Run everything that a change must pass: format, lints, docs, unit, simulation and lab tests.
    Test(suite::TestArguments),
    /// Try our daemon with foreign peers, real ones, in network namespaces.
    Interop(interop::InteropArguments),
    /// Keep a mesh of real daemons in a storm of faults: `cargo xtask soak --minutes 60 --seed 7`.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 60)]
        minutes: u32,
        /// What the faults follow from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Build the Debian package: `target/debian/viamesh_*.deb`.
    Deb(deb::DebArguments),
    /// Run a benchmark, e.g. `cargo xtask bench pump --json FILE`; best on a machine that does nothing else.
    Bench {
        /// Name and arguments of the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a fuzz target of one of the cores, e.g. `cargo xtask fuzz babel/packet --seconds 600`.
    Fuzz {
        /// CRATE/TARGET, e.g. `esp/open`.
        target: String,
        /// How long to run.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Setup => suite::setup(),
        Command::Test(arguments) => suite::run(&arguments),
        Command::Interop(arguments) => interop::run(&arguments),
        Command::Soak { minutes, seed } => suite::soak(minutes, seed),
        Command::Deb(arguments) => deb::run(&arguments),
        Command::Bench { arguments } => suite::bench(&arguments),
        Command::Fuzz { target, seconds } => suite::fuzz(&target, seconds),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            step::narrate(&format!("xtask: {failure}"));
            ExitCode::FAILURE
        }
    }
}
