//! What the demo shows: a heading for each step, what is being waited for, and what was measured.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The terminal, or a file that gets the same text without colours.
pub(crate) struct Stage {
    colours: bool,
    started: Instant,
    step: usize,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colours, started: Instant::now(), step: 0 }
    }

    /// The title of the whole.
    pub(crate) fn title(&self, text: &str) {
        self.line(&format!("\n{}\n", self.styled(text, "1")));
    }

    /// The heading of a step, in one sentence.
    pub(crate) fn heading(&mut self, text: &str) {
        self.step += 1;
        let clock = format!("{:>5.1} s", self.started.elapsed().as_secs_f64());
        self.line(&format!("\n{}  {}. {}", self.styled(&clock, "2"), self.step, self.styled(text, "1")));
    }

    /// A remark below a heading.
    pub(crate) fn remark(&self, text: &str) {
        self.line(&format!("           {text}"));
    }

    /// Something that was measured.
    pub(crate) fn result(&self, what: &str, value: &str) {
        self.line(&format!("           {what:<44} {}", self.styled(value, "1;32")));
    }

    fn styled(&self, text: &str, code: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A closed pipe is no reason to stop: what is measured may also go to a file.
    fn line(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }
}

/// A duration in whole milliseconds.
pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.0} ms", duration.as_secs_f64() * 1000.0)
}
