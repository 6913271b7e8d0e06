//! A host of the internet that knows nothing of a mesh: it answers HTTP with the address that the request came from.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::dial::dial;
use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::server::{Server, is_pause};

/// Enough for the request of any client; what is longer is cut.
const LONGEST_REQUEST: usize = 8192;
const END_OF_HEADERS: &[u8] = b"\r\n\r\n";

/// A server that answers every request with the source address it sees; dropping it stops it.
#[derive(Debug)]
pub struct Responder {
    _server: Server,
}

impl Responder {
    /// Listens in a host.
    ///
    /// # Errors
    /// When the address can't be bound.
    pub fn start(host: &Host, listen: SocketAddr) -> Result<Self> {
        Ok(Self { _server: Server::start(host, listen, respond)? })
    }
}

fn respond(mut stream: TcpStream, stop: &AtomicBool) -> io::Result<()> {
    let peer = stream.peer_addr()?.ip().to_canonical();
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.ends_with(END_OF_HEADERS) && request.len() < LONGEST_REQUEST {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => request.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error) if is_pause(&error) && !stop.load(Ordering::Relaxed) => {}
            Err(error) => return Err(error),
        }
    }
    let body = format!("{peer}\n");
    let head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Asks a responder, from a host, under which address it sees us.
///
/// # Errors
/// When there is no answer in time.
pub fn ask_responder(host: &Host, target: SocketAddr, limit: Duration) -> Result<IpAddr> {
    let answer = host.within(|| {
        let mut stream = dial(target, None, limit)?;
        stream.set_read_timeout(Some(limit)).trying(|| "setting a time limit".into())?;
        let mut answer = String::new();
        write!(stream, "GET / HTTP/1.0\r\nHost: {target}\r\n\r\n")
            .and_then(|()| stream.read_to_string(&mut answer))
            .trying(|| format!("asking {target}"))?;
        Ok::<_, LabError>(answer)
    })??;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.trim());
    body.and_then(|body| body.parse().ok()).ok_or_else(|| LabError::System {
        what: format!("understanding the answer of {target}"),
        source: io::Error::new(io::ErrorKind::InvalidData, answer.clone()),
    })
}
