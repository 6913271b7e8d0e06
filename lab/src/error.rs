//! What can go wrong while a world is built or used.

use std::io;
use std::time::Duration;

/// An error of the lab: of the machine it runs on, of a process in it, or of its caller.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The kernel refused something; `what` says what was tried.
    #[error("{what}: {source}")]
    System {
        /// What was tried, in words.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// This machine, or this user, can't build worlds; the text says what to run instead.
    #[error("{0}")]
    Impossible(String),
    /// A condition did not come true in time.
    #[error("waited {waited:?} for {what}, in vain")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// For how long.
        waited: Duration,
    },
    /// A process ended in another way than it should have.
    #[error("{what} failed ({status}); the end of its output:\n{tail}")]
    ProcessFailed {
        /// Host and program.
        what: String,
        /// Exit status or signal.
        status: String,
        /// The last lines of its log.
        tail: String,
    },
    /// Our caller asked for something that makes no sense.
    #[error("{0}")]
    Misuse(String),
}

/// The result of most calls of the lab.
pub type Result<T, E = LabError> = std::result::Result<T, E>;

/// Says what was tried when the kernel refuses.
pub(crate) trait Trying<T> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Trying<T> for std::result::Result<T, E> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| LabError::System { what: what(), source: source.into() })
    }
}
