//! A web server of a few files, with ETags.

use lab::Host;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A running server; dropping it stops it.
pub(crate) struct WebServer {
    shared: Arc<Shared>,
    address: SocketAddr,
}

#[derive(Default)]
struct Shared {
    files: Mutex<BTreeMap<String, (usize, Vec<u8>)>>,
    puts: AtomicUsize,
    not_modified: AtomicUsize,
    stop: AtomicBool,
}

impl WebServer {
    /// Serves at an address of a host.
    pub(crate) fn start(host: &Host, address: Ipv4Addr, port: u16) -> Self {
        let address = SocketAddr::from((address, port));
        let listener = host.within(|| TcpListener::bind(address).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            while !serving.stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => serving.answer(stream),
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        Self { shared, address }
    }

    /// `http://…` without a path.
    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets a file.
    pub(crate) fn put(&self, path: &str, content: &[u8]) {
        let tag = self.shared.puts.fetch_add(1, Ordering::Relaxed);
        self.shared.files.lock().unwrap().insert(path.to_owned(), (tag, content.to_vec()));
    }

    /// How often it said that nothing changed.
    pub(crate) fn not_modified(&self) -> usize {
        self.shared.not_modified.load(Ordering::Relaxed)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn answer(&self, stream: TcpStream) {
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let lines: Vec<String> = BufReader::new(&stream)
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
        let asked = lines.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("if-none-match").then(|| value.trim().to_owned())
        });
        let file = self.files.lock().unwrap().get(path).cloned();
        let (status, tag, content) = match file {
            Some((tag, _)) if asked == Some(format!("\"{tag}\"")) => {
                self.not_modified.fetch_add(1, Ordering::Relaxed);
                ("304 Not Modified", tag, Vec::new())
            }
            Some((tag, content)) => ("200 OK", tag, content),
            None => ("404 Not Found", 0, Vec::new()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nETag: \"{tag}\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            content.len()
        );
        // A client that went away has nothing to be told.
        let _ = (&stream).write_all(&[head.as_bytes(), &content].concat());
    }
}
