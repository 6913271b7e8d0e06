//! A program that runs in a host, and its log.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::error::{LabError, Result, Trying};
use crate::spawner::lock;

/// How long a program may take to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// How much of a log is shown when something fails.
const TAIL_LINES: usize = 30;

/// A running program. Dropping it ends it: SIGTERM, a while later SIGKILL, for its whole process group.
#[derive(Debug)]
pub struct Process {
    inner: Arc<ProcessInner>,
}

/// What a finished program left.
#[derive(Debug, Clone)]
pub struct RunOutput {
    pub(crate) what: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// Shared with the spawner, which ends what is left.
#[derive(Debug)]
pub(crate) struct ProcessInner {
    what: String,
    pid: Pid,
    /// Readable once the program has ended. It stays a zombie until this value is ended: only so is its number,
    /// which names its process group too, certain not to belong to another program.
    ended: OwnedFd,
    /// `None` once it has been reaped.
    child: Mutex<Option<Child>>,
    status: Mutex<Option<ExitStatus>>,
    log: PathBuf,
}

impl RunOutput {
    /// The output, if the program ended with success.
    ///
    /// # Errors
    /// [`LabError::ProcessFailed`] with the end of standard error.
    pub fn successful(self) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        let tail = last_lines(&self.stderr, TAIL_LINES);
        Err(LabError::ProcessFailed { what: self.what, status: self.status.to_string(), tail })
    }
}

impl Process {
    pub(crate) fn new(child: Child, what: String, log: PathBuf) -> Result<Self> {
        let pid = Pid::from_raw(child.id().cast_signed());
        let ended = open_pidfd(pid).trying(|| format!("watching {what}"));
        let ended = ended.inspect_err(|_| {
            let _ = killpg(pid, Signal::SIGKILL);
        })?;
        let (child, status) = (Mutex::new(Some(child)), Mutex::new(None));
        Ok(Self { inner: Arc::new(ProcessInner { what, pid, ended, child, status, log }) })
    }

    pub(crate) fn downgrade(&self) -> Weak<ProcessInner> {
        Arc::downgrade(&self.inner)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.inner.pid.as_raw().cast_unsigned()
    }

    /// The file that holds its standard output and error.
    pub fn log(&self) -> &Path {
        &self.inner.log
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        last_lines(&self.log_text(), lines)
    }

    /// The whole log so far.
    pub fn log_text(&self) -> String {
        let bytes = std::fs::read(&self.inner.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        !self.inner.await_end(Duration::ZERO)
    }

    /// Fails, with the end of the log, if it has ended.
    ///
    /// # Errors
    /// [`LabError::ProcessFailed`].
    pub fn ensure_running(&self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let status = self.inner.status()?.to_string();
        Err(LabError::ProcessFailed {
            what: self.inner.what.clone(),
            status,
            tail: self.log_tail(TAIL_LINES),
        })
    }

    /// Sends a signal (a number of `libc`) to the process.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: i32) -> Result<()> {
        self.ensure_running()?;
        let signal = Signal::try_from(signal).trying(|| format!("signal {signal}"))?;
        nix::sys::signal::kill(self.inner.pid, signal)
            .trying(|| format!("sending {signal} to {}", self.inner.what))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`LabError::TimedOut`].
    pub fn wait(&self, limit: Duration) -> Result<ExitStatus> {
        if !self.inner.await_end(limit) {
            let what = format!("the end of {}; its output:\n{}", self.inner.what, self.log_tail(TAIL_LINES));
            return Err(LabError::TimedOut { what, waited: limit });
        }
        self.inner.status()
    }

    /// Asks it to end (SIGTERM) and waits; kills it if it does not.
    ///
    /// # Errors
    /// [`LabError::TimedOut`] when it had to be killed.
    pub fn stop(&self, limit: Duration) -> Result<ExitStatus> {
        self.inner.ask_to_end();
        self.wait(limit).inspect_err(|_| self.kill())
    }

    /// Kills it at once, as a crash would, with its whole process group.
    pub fn kill(&self) {
        self.inner.signal_group(Signal::SIGKILL);
        self.inner.await_end(GRACE);
    }
}

impl Drop for Process {
    #[expect(clippy::print_stderr, reason = "a failing test shows what its programs said")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the end of the log of {}:\n{}", self.inner.what, self.log_tail(TAIL_LINES));
        }
        self.inner.end();
    }
}

impl ProcessInner {
    /// SIGTERM to the whole group.
    pub(crate) fn ask_to_end(&self) {
        self.signal_group(Signal::SIGTERM);
    }

    /// Ends the group, by force if need be, and reaps the program.
    pub(crate) fn end(&self) {
        let mut child = lock(&self.child);
        if child.is_none() {
            return;
        }
        let _ = killpg(self.pid, Signal::SIGTERM);
        self.await_end(GRACE);
        let _ = killpg(self.pid, Signal::SIGKILL);
        if let Some(mut child) = child.take() {
            let status = child.wait().ok();
            *lock(&self.status) = status;
        }
    }

    fn signal_group(&self, signal: Signal) {
        // Held meanwhile, so that nobody reaps the program and its number stays ours.
        if lock(&self.child).is_some() {
            let _ = killpg(self.pid, signal);
        }
    }

    /// Waits until the program has ended; false if it has not by then.
    fn await_end(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) if left.is_zero() => return false,
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return true,
                Err(_) => return false,
            }
        }
    }

    /// How it ended; only when it has.
    fn status(&self) -> Result<ExitStatus> {
        if let Some(status) = *lock(&self.status) {
            return Ok(status);
        }
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        let status = waitid(Id::Pid(self.pid), flags).trying(|| format!("asking how {} ended", self.what))?;
        Ok(match status {
            WaitStatus::Signaled(_, signal, _) => ExitStatus::from_raw(signal as i32),
            WaitStatus::Exited(_, code) => ExitStatus::from_raw(code << 8),
            _ => return Err(LabError::Misuse(format!("{} has not ended", self.what))),
        })
    }
}

fn open_pidfd(pid: Pid) -> std::io::Result<OwnedFd> {
    // SAFETY: a system call with two integers; the result is checked before it is taken for a descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(std::io::Error::last_os_error)?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<_> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}
