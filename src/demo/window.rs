//! Lets a browser of this machine see the page of a city: a loopback port whose connections end at the page's socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

/// The port, if nobody has it.
const PORT: u16 = 9586;

/// Opens the window; it stays open until the process ends.
pub(super) fn open(page: PathBuf) -> io::Result<SocketAddr> {
    let wanted = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT));
    let listener = wanted.or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    thread::Builder::new().name("window".to_owned()).spawn(move || {
        for visitor in listener.incoming().flatten() {
            // Whoever cannot be served sees a closed connection and tries again.
            let _ = serve(visitor, &page);
        }
    })?;
    Ok(address)
}

fn serve(visitor: TcpStream, page: &Path) -> io::Result<()> {
    let daemon = UnixStream::connect(page)?;
    let (mut ask, mut asked) = (visitor.try_clone()?, daemon.try_clone()?);
    thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut ask, &mut asked);
        let _ = asked.shutdown(std::net::Shutdown::Write);
    })?;
    let (mut answer, mut answered) = (daemon, visitor);
    thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut answer, &mut answered);
        let _ = answered.shutdown(std::net::Shutdown::Both);
    })?;
    Ok(())
}
