//! `viamesh help`: on commands as clap knows them, and on the codes of diagnostics.

use clap::{Command, CommandFactory};

use super::arguments::Arguments;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::Code;

pub(super) fn run(topic: &[String], output: &mut Output) -> Result<Exit, Failure> {
    match topic {
        [code] if code.contains('/') => on_code(code, output)?,
        _ => on_command(topic, output)?,
    }
    Ok(Exit::Done)
}

fn on_code(name: &str, output: &mut Output) -> Result<(), Failure> {
    let Some(code) = Code::ALL.iter().find(|code| code.name() == name) else {
        let failure = Failure::new(Exit::Usage, format!("no diagnostic has the code `{name}`"));
        let nearest = crate::config::nearest(name, Code::ALL.iter().map(|code| code.name()));
        return Err(match nearest {
            Some(meant) => failure.help(format!("did you mean `{meant}`?")),
            None => failure.help("`viamesh check` prints codes in brackets; docs/configuration.md lists all"),
        });
    };
    output.line(&format!("{}: {}", code.severity().name(), code.name()))?;
    output.line("")?;
    output.line(code.meaning())
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
