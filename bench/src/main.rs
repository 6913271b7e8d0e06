//! Benchmarks. Each prints its method and can write what it measured as JSON.
//!
//! Run them by `cargo xtask bench NAME`, on a machine that does nothing else.

mod micro;
mod pump;

use clap::{Parser, Subcommand};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Benchmarks of viamesh.
#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    /// Also write the results to FILE
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Single steps of the data path: classifying by 1,000 policies
    Micro,
    /// Packets through sealing and opening in memory, without any input or output
    Pump,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.benchmark {
        Benchmark::Micro => micro::run().and_then(|report| publish(&report, arguments.json)),
        Benchmark::Pump => pump::run().and_then(|report| publish(&report, arguments.json)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a terminal there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn publish(report: &(impl Serialize + fmt::Display), json: Option<PathBuf>) -> Result<(), String> {
    writeln!(std::io::stdout(), "{report}").map_err(|error| error.to_string())?;
    let Some(path) = json else { return Ok(()) };
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    std::fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
}
