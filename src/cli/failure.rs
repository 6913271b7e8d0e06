//! How a command ends.

use std::io;
use std::process::ExitCode;

use super::output::Output;

/// Exit codes. 69, 77 and 78 are those of sysexits; the systemd unit does not restart on 78.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything went well.
    Done,
    /// It failed, or what was asked for is not healthy.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// The daemon cannot be reached (EX_UNAVAILABLE).
    Unreachable,
    /// The system does not permit it (EX_NOPERM).
    NotPermitted,
    /// The configuration is invalid (EX_CONFIG).
    BadConfiguration,
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 69,
            Self::NotPermitted => 77,
            Self::BadConfiguration => 78,
        }
    }
}

impl Exit {
    /// The exit that has this number; `Failed` for any other.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        let all = [Self::Done, Self::Usage, Self::Unreachable, Self::NotPermitted, Self::BadConfiguration];
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Failed)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
    help: Option<String>,
    details: Option<String>,
}

impl Failure {
    /// A failure with a message that names what could not be done and why.
    #[must_use]
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: None, details: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds what is printed before the message: all that is wrong.
    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    /// What could not be done and why.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Writes it to stderr and says how the process ends.
    pub(super) fn report(&self, output: &mut Output) -> Exit {
        // What was printed before comes first; that it cannot be printed any more is not worth a second error.
        let _ = output.flush();
        if self.exit != Exit::Done {
            if let Some(details) = &self.details {
                output.narrate(details.trim_end());
            }
            output.error(&self.message, self.help.as_deref());
        }
        self.exit
    }
}

impl From<io::Error> for Failure {
    /// For writing results: a reader that went away has seen enough.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Done, "");
        }
        Self::new(Exit::Failed, format!("cannot write the result: {}", crate::config::key::reason(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_does_not_restart_on_an_invalid_configuration() {
        let unit = include_str!("../../deploy/viamesh.service");
        assert!(unit.contains(&format!("\nRestartPreventExitStatus={}\n", Exit::BadConfiguration.code())));
    }
}
