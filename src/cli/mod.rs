//! The command line: arguments, dispatch, and the commands that need files only.
//!
//! Results go to stdout, narration and errors to stderr. A reader that goes away (`viamesh routes | head`) is no
//! error. Exit codes are those of [`failure::Exit`].

pub mod arguments;
mod ask;
mod associations;
mod change;
mod check;
mod completions;
mod demo;
mod explain;
pub mod failure;
mod graph;
mod help;
mod init;
mod key;
mod log;
mod man;
mod neighbours;
pub mod output;
mod ping;
mod progress;
mod registry;
mod report;
mod routes;
mod run;
mod status;
mod top;
mod trace;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command, normalised};
use failure::{Exit, Failure};
use output::Output;

/// Runs the command that the process was called with.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(normalised(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => {
            // The text of `--help` is a result, a wrong flag is an error; a closed pipe is neither.
            let _ = error.print();
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            return exit.into();
        }
    };
    let mut output = Output::new(arguments.global.color, arguments.global.json);
    let result = dispatch(&arguments, &mut output).and_then(|exit| output.flush().map(|()| exit));
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(&mut output).into(),
    }
}

fn dispatch(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Run(run) => run::run(run, global, output),
        Command::Check(check) => check::run(check, global, output),
        Command::Status(status) => status::run(status, global, output),
        Command::Routes(routes) => routes::run(routes, global, output),
        Command::Neighbours(neighbours) => neighbours::run(neighbours, global, output),
        Command::Associations(associations) => associations::run(associations, global, output),
        Command::Explain(explain) => explain::run(explain, global, output),
        Command::Trace(trace) => trace::run(trace, global, output),
        Command::Ping(ping) => ping::run(ping, global, output),
        Command::Registry(registry) => registry::run(registry, global, output),
        Command::Reload => change::reload(global, output),
        Command::Apply(apply) => change::apply(apply, global, output),
        Command::Confirm => change::confirm(global, output),
        Command::Undo => change::undo(global, output),
        Command::Log(log) => log::run(log, global, output),
        Command::Graph(graph) => graph::run(graph, global, output),
        Command::Report(report) => report::run(report, global, output),
        Command::Top => top::run(global, output),
        Command::Key(key) => key::run(key, output),
        Command::Init(init) => init::run(init, output),
        Command::Demo(demo) => demo::run(demo, global, output),
        Command::Completions { shell } => completions::run(*shell, output),
        Command::Man(man) => man::run(man, output),
        Command::Help { topic } => help::run(topic, output),
    }
}
