//! `viamesh help`: on commands as clap knows them, and on the codes of diagnostics.

use clap::{Command, CommandFactory};

use super::arguments::Arguments;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::Code;
use crate::telemetry::HealthCode;

pub(super) fn run(topic: &[String], output: &mut Output) -> Result<Exit, Failure> {
    match topic {
        [code] if code.contains('/') => on_code(code, output)?,
        _ => on_command(topic, output)?,
    }
    Ok(Exit::Done)
}

fn on_code(name: &str, output: &mut Output) -> Result<(), Failure> {
    if let Some(code) = HealthCode::ALL.iter().find(|code| code.name() == name) {
        output.line(&format!("{}: {}", code.severity(), code.name()))?;
        return output.text(&format!("\n{}\n\n{}\n", code.meaning(), code.remedy()));
    }
    let Some(code) = Code::ALL.iter().find(|code| code.name() == name) else {
        let failure = Failure::new(Exit::Usage, format!("no message has the code `{name}`"));
        let nearest = crate::config::nearest(name, codes());
        return Err(match nearest {
            Some(meant) => failure.help(format!("did you mean `{meant}`?")),
            None => failure.help("`viamesh check` and `viamesh status --json` print codes"),
        });
    };
    output.line(&format!("{}: {}", code.severity().name(), code.name()))?;
    output.line("")?;
    output.line(code.meaning())
}

/// All codes of `check` and `status`.
fn codes() -> impl Iterator<Item = &'static str> {
    let health = HealthCode::ALL.iter().map(|code| code.name());
    Code::ALL.iter().map(|code| code.name()).chain(health)
}

fn on_command(topic: &[String], output: &mut Output) -> Result<(), Failure> {
    let mut root = Arguments::command();
    root.build();
    let mut command: &Command = &root;
    for word in topic {
        command = command.find_subcommand(word).ok_or_else(|| {
            let failure = Failure::new(Exit::Usage, format!("there is no command `{word}`"));
            failure.help("`viamesh help` lists all commands")
        })?;
    }
    output.text(&command.clone().render_long_help().to_string())
}
