//! What our small TCP servers share: a thread that accepts, one thread per connection, an end to both.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Result, Trying};
use crate::host::Host;

/// How late a thread notices that it shall stop.
const NAP: Duration = Duration::from_millis(20);

/// A listening server; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Serves one connection; reads time out every [`NAP`], and the flag says when to end.
pub(crate) type Serve = fn(TcpStream, &AtomicBool) -> io::Result<()>;

impl Server {
    /// Listens in a host.
    pub(crate) fn start(host: &Host, listen: SocketAddr, serve: Serve) -> Result<Self> {
        let doing = || format!("listening at {listen} in {}", host.name());
        let listener = host.within(|| TcpListener::bind(listen))?.trying(doing)?;
        listener.set_nonblocking(true).trying(doing)?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = host.thread("server", move || accept(&listener, &flag, serve))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, stop: &AtomicBool, serve: Serve) {
    // A connection that fails concerns its client, which reports it.
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => {
                    scope.spawn(move || prepare(&stream).and_then(|()| serve(stream, stop)));
                }
                Err(_) => std::thread::sleep(NAP),
            }
        }
    });
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    stream.set_read_timeout(Some(NAP))
}

/// Whether a read only timed out.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
