//! Where results and narration go.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::arguments::Color;
use super::failure::Failure;

/// Results to stdout, narration to stderr.
pub struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    colour: bool,
    colour_stderr: bool,
    json: bool,
    terminal: bool,
}

impl Output {
    /// Output with or without colours, as text or JSON.
    #[must_use]
    pub fn new(color: Color, json: bool) -> Self {
        Self {
            stdout: BufWriter::new(io::stdout().lock()),
            colour: wants_colour(color, io::stdout().is_terminal()),
            colour_stderr: wants_colour(color, io::stderr().is_terminal()),
            json,
            terminal: io::stdout().is_terminal(),
        }
    }

    /// Whether results go to a person's terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether results may have colours.
    #[must_use]
    pub fn colour(&self) -> bool {
        self.colour && !self.json
    }

    /// Whether narration may have colours.
    #[must_use]
    pub fn colour_stderr(&self) -> bool {
        self.colour_stderr
    }

    /// Whether the result is to be one JSON document.
    #[must_use]
    pub fn json(&self) -> bool {
        self.json
    }

    /// Writes text as it is.
    ///
    /// # Errors
    /// If stdout takes no more; quietly if nobody reads it any more.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.stdout.write_all(text.as_bytes())?)
    }

    /// Writes a line.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn line(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.stdout, "{line}")?)
    }

    /// Writes one JSON document.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn document(&mut self, document: &serde_json::Value) -> Result<(), Failure> {
        Ok(writeln!(self.stdout, "{document:#}")?)
    }

    /// Lets everything out that was written.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.stdout.flush()?)
    }

    /// Says something that is no result.
    pub fn narrate(&mut self, text: &str) {
        // Nobody to tell it to is no reason to stop.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Says why the command fails.
    pub fn error(&mut self, message: &str, help: Option<&str>) {
        let (red, bold, plain) =
            if self.colour_stderr { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
        let mut text = format!("{red}error{plain}{bold}: {message}{plain}");
        if let Some(help) = help {
            text.push_str(&format!("\n{bold}help{plain}: {help}"));
        }
        self.narrate(&text);
    }
}

fn wants_colour(color: Color, terminal: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}
