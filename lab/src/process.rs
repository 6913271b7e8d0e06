//! A program that runs in a host, and its log.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use crate::error::Result;

/// A running program. Dropping it ends it: SIGTERM, a while later SIGKILL, for its whole process group.
#[derive(Debug)]
pub struct Process {}

/// What a finished program left.
#[derive(Debug, Clone)]
pub struct RunOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl RunOutput {
    /// The output, if the program ended with success.
    ///
    /// # Errors
    /// [`crate::LabError::ProcessFailed`] with the end of standard error.
    pub fn successful(self) -> Result<Self> {
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}

impl Process {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        0
    }

    /// The file that holds its standard output and error.
    pub fn log(&self) -> &Path {
        Path::new("")
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        let _ = lines;
        String::new()
    }

    /// The whole log so far.
    pub fn log_text(&self) -> String {
        String::new()
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        false
    }

    /// Fails, with the end of the log, if it has ended.
    ///
    /// # Errors
    /// [`crate::LabError::ProcessFailed`].
    pub fn ensure_running(&self) -> Result<()> {
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Sends a signal (a number of `libc`) to the process.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: i32) -> Result<()> {
        let _ = signal;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`crate::LabError::TimedOut`].
    pub fn wait(&self, limit: Duration) -> Result<ExitStatus> {
        let _ = limit;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Asks it to end (SIGTERM) and waits; kills it if it does not.
    ///
    /// # Errors
    /// [`crate::LabError::TimedOut`] when it had to be killed.
    pub fn stop(&self, limit: Duration) -> Result<ExitStatus> {
        let _ = limit;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Kills it at once, as a crash would.
    pub fn kill(&self) {}
}
