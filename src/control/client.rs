//! The commands' side of the control socket. Blocking: a command does nothing else meanwhile.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::protocol::{MessageLine, Refusal, Reply, ReplyLine, Request, VERSION};

/// Exit code when the daemon cannot be reached (`EX_UNAVAILABLE`).
pub const EXIT_UNREACHABLE: u8 = 69;
/// Exit code when we may not talk to it (`EX_NOPERM`).
pub const EXIT_NOT_PERMITTED: u8 = 77;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there.
    #[error("cannot reach the daemon at {path}: {reason}", reason = reason(.source))]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection ended, or took too long, before the answer was complete.
    #[error("the daemon at {path} did not answer: {reason}", reason = reason(.source))]
    Interrupted {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The answer is not ours to understand.
    #[error("the daemon's answer makes no sense: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// The daemon says no.
    #[error("{}", .0.text)]
    Refused(Refusal),
}

impl ClientError {
    /// The exit code of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unreachable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                EXIT_NOT_PERMITTED
            }
            Self::Unreachable { .. } | Self::Interrupted { .. } => EXIT_UNREACHABLE,
            Self::Malformed { .. } => 1,
            Self::Refused(refusal) => refusal.exit_code,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unreachable { source, .. } => Some(
                match source.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "run it as root, or as a member of the group `viamesh`"
                    }
                    _ => "is it running? `systemctl status viamesh`, or `viamesh run` in a terminal",
                }
                .to_owned(),
            ),
            Self::Interrupted { .. } => Some("`journalctl -u viamesh` shows what happened to it".to_owned()),
            Self::Malformed { .. } => Some("use the command and the daemon of one release".to_owned()),
            Self::Refused(refusal) => refusal.help.clone(),
        }
    }
}

/// The system's error in the words of our messages.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it takes too long".to_owned(),
        _ => error.to_string(),
    }
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl Client {
    /// Connects to the daemon at `path`.
    ///
    /// # Errors
    /// When nobody listens there, or we may not talk to them.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(path)
            .map_err(|source| ClientError::Unreachable { path: path.to_owned(), source })?;
        Ok(Self { stream: BufReader::new(stream), path: path.to_owned() })
    }

    /// Asks, and waits for the final answer.
    ///
    /// # Errors
    /// When the daemon refuses or does not answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        self.follow(request, |_| {})
    }

    /// Asks, hands each piece of progress to `progress`, and returns the final answer.
    ///
    /// # Errors
    /// When the daemon refuses or does not answer.
    pub fn follow(
        &mut self,
        request: &Request,
        mut progress: impl FnMut(&Reply),
    ) -> Result<Reply, ClientError> {
        self.send(request).map_err(|source| self.interrupted(source))?;
        loop {
            let line = self.receive()?;
            match (line.reply, line.more) {
                (Reply::Refused(refusal), _) => return Err(ClientError::Refused(refusal)),
                (reply, true) => progress(&reply),
                (reply, false) => return Ok(reply),
            }
        }
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(request.patience()))?;
        let mut line = serde_json::to_vec(&MessageLine { version: VERSION, request })?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)
    }

    fn receive(&mut self) -> Result<ReplyLine, ClientError> {
        let mut line = Vec::new();
        let read = self.stream.read_until(b'\n', &mut line).map_err(|source| self.interrupted(source))?;
        if read == 0 {
            return Err(self.interrupted(io::ErrorKind::UnexpectedEof.into()));
        }
        serde_json::from_slice(&line).map_err(|error| ClientError::Malformed { reason: error.to_string() })
    }

    fn interrupted(&self, source: io::Error) -> ClientError {
        ClientError::Interrupted { path: self.path.clone(), source }
    }
}
