//! The daemon's side of the control socket.
//!
//! Each client has a task; a request goes to the control loop together with a [`Responder`], and the answer
//! comes back over it. A client that does not read, sends too much, or says nothing loses its connection; the
//! control loop never waits for one.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use super::protocol::{Envelope, MAX_REQUEST, Refusal, Reply, ReplyLine, Request, VERSION};

/// Clients served at once.
const CLIENTS: usize = 64;
/// Replies that wait for a slow client; progress beyond them is dropped, the final reply never is.
const BACKLOG: usize = 32;
/// A client that takes no line within this time is gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// A client that sends no request within this time is sent away.
const IDLE: Duration = Duration::from_secs(120);
/// Members of this group may use the socket, where the group exists.
const GROUP: &str = "viamesh";

/// Why the control socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A daemon answers there.
    #[error("another viamesh is running and answers at {path}")]
    Alive {
        /// The socket.
        path: PathBuf,
    },
    /// There is a file, and it is no socket.
    #[error("{path} exists and is not a socket")]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot create the control socket {path}: {source}")]
    Refused {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A request and the way back.
#[derive(Debug)]
pub struct Incoming {
    /// What is asked.
    pub request: Request,
    /// Where the answer goes.
    pub responder: Responder,
}

/// Asks the control loop from within the daemon, as a client of the socket would. `None` if it is ending.
pub async fn ask(requests: &mpsc::Sender<Incoming>, request: Request) -> Option<Reply> {
    let (lines, mut replies) = mpsc::channel(BACKLOG);
    requests.send(Incoming { request, responder: Responder { lines } }).await.ok()?;
    while let Some(line) = replies.recv().await {
        if !line.more {
            return Some(line.reply);
        }
    }
    None
}

/// The way back to one client for one request.
#[derive(Debug)]
pub struct Responder {
    lines: mpsc::Sender<ReplyLine>,
}

impl Responder {
    /// Tells how far it is. Dropped if the client is slow: the final reply holds everything.
    pub fn progress(&self, reply: Reply) {
        let _ = self.lines.try_send(ReplyLine { version: VERSION, reply, more: true });
    }

    /// Answers.
    pub fn finish(self, reply: Reply) {
        let line = ReplyLine { version: VERSION, reply, more: false };
        if let Err(mpsc::error::TrySendError::Full(line)) = self.lines.try_send(line) {
            // Waits for room in the background; the client's write time-out ends it.
            tokio::spawn(async move { self.lines.send(line).await });
        }
    }

    /// Refuses the request.
    pub fn refuse(self, exit_code: u8, text: impl Into<String>) {
        self.finish(Reply::Refused(Refusal::new(exit_code, text.into())));
    }

    /// Whether the client has gone, so that longer work may end.
    pub fn is_cancelled(&self) -> bool {
        self.lines.is_closed()
    }
}

/// The listening socket. Removed from the file system when dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of our socket: another one in its place is not ours to remove.
    identity: Option<(u64, u64)>,
}

impl Server {
    /// Creates the socket, mode 0660 from the first moment that its name exists. The socket of a daemon that
    /// died is replaced. Needs a running tokio runtime.
    ///
    /// # Errors
    /// When another daemon answers there, another kind of file is in the way, or the system refuses.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let refused = |source| BindError::Refused { path: path.to_owned(), source };
        make_way(path)?;
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(refused)?;
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&temporary).map_err(refused)?;
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o660)).map_err(refused)?;
        give_to_group(&temporary);
        fs::rename(&temporary, path).map_err(refused)?;
        Ok(Self { listener, path: path.to_owned(), identity: identity(path) })
    }

    /// Waits for one client: for those who speak something else over such a socket.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    /// Serves clients for ever. Requests go to `requests`; the future ends when nobody takes them any more.
    pub async fn run(self, requests: mpsc::Sender<Incoming>) {
        let places = Arc::new(Semaphore::new(CLIENTS));
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = requests.closed() => return,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors: others must end first.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                // Closing the connection is the answer.
                continue;
            };
            let requests = requests.clone();
            tokio::spawn(async move {
                // An error means that the client is gone, and nobody is left to be told.
                let _ = serve(stream, requests).await;
                drop(place);
            });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whatever is at `path` must be a socket that nobody listens at.
fn make_way(path: &Path) -> Result<(), BindError> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(BindError::NotASocket { path: path.to_owned() });
    }
    match BlockingStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(BindError::Refused { path: path.to_owned(), source }),
        Ok(_) => Err(BindError::Alive { path: path.to_owned() }),
    }
}

/// Without the group, or without the right to give files away, the socket stays ours alone.
fn give_to_group(path: &Path) {
    if let Ok(Some(group)) = nix::unistd::Group::from_name(GROUP) {
        let _ = std::os::unix::fs::chown(path, None, Some(group.gid.as_raw()));
    }
}

async fn serve(stream: UnixStream, requests: mpsc::Sender<Incoming>) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(line) = read_line(&mut reader).await? {
        match parse(&line) {
            Ok(request) => answer(request, &requests, &mut reader, &mut writer).await?,
            Err(refusal) => {
                let reply = Reply::Refused(refusal);
                write_line(&mut writer, &ReplyLine { version: VERSION, reply, more: false }).await?;
            }
        }
    }
    Ok(())
}

/// One line, or `None` at the end or when the client is silent for too long.
async fn read_line(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = reader.take(MAX_REQUEST as u64 + 1);
    match tokio::time::timeout(IDLE, limited.read_until(b'\n', &mut line)).await {
        Ok(read) => read?,
        Err(_) => return Ok(None),
    };
    if line.len() > MAX_REQUEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long"));
    }
    Ok((!line.is_empty()).then_some(line))
}

fn parse(line: &[u8]) -> Result<Request, Refusal> {
    let refusal = |text: String, help: &str| Refusal::new(1, text).help(help);
    let envelope: Envelope = serde_json::from_slice(line).map_err(|error| {
        refusal(
            format!("the daemon does not understand the request: {error}"),
            "restart the daemon after an upgrade",
        )
    })?;
    if envelope.version == VERSION {
        serde_json::from_value(envelope.request).map_err(|error| {
            refusal(
                format!("the daemon does not know the request: {error}"),
                "restart the daemon after an upgrade",
            )
        })
    } else {
        let text =
            format!("the daemon speaks version {VERSION} of the control protocol, not {}", envelope.version);
        Err(refusal(text, "use the command and the daemon of one release"))
    }
}

async fn answer(
    request: Request,
    requests: &mpsc::Sender<Incoming>,
    reader: &mut BufReader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let (lines, mut replies) = mpsc::channel(BACKLOG);
    if requests.send(Incoming { request, responder: Responder { lines } }).await.is_err() {
        return write_line(writer, &refusal_line("the daemon is ending")).await;
    }
    let mut listening = true;
    loop {
        tokio::select! {
            line = replies.recv() => match line {
                Some(line) => {
                    write_line(writer, &line).await?;
                    if !line.more {
                        return Ok(());
                    }
                }
                None => return write_line(writer, &refusal_line("the daemon did not answer")).await,
            },
            // Nothing but the client's end is expected; a request sent ahead waits for its turn.
            data = reader.fill_buf(), if listening => {
                if data?.is_empty() {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                listening = false;
            }
        }
    }
}

fn refusal_line(text: &str) -> ReplyLine {
    let refusal = Refusal::new(1, text.to_owned());
    ReplyLine { version: VERSION, reply: Reply::Refused(refusal), more: false }
}

async fn write_line(writer: &mut OwnedWriteHalf, line: &ReplyLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    match tokio::time::timeout(WRITE_PATIENCE, writer.write_all(&text)).await {
        Ok(written) => written,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
