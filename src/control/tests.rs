//! Client and server over a real socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::mpsc;

use super::protocol::{MAX_REQUEST, Refusal};
use super::report::{FORMAT, PingReply, PingReport, RoutesReport};
use super::server::BindError;
use super::*;

/// A directory of its own for each test, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("viamesh-control-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("control.sock")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a server with `answer` as its control loop, and `client` on a thread beside it.
fn with_server(
    path: &Path,
    mut answer: impl FnMut(Incoming) + 'static,
    client: impl FnOnce(PathBuf) + Send + 'static,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = path.to_owned();
    runtime.block_on(async move {
        let server = Server::bind(&path).unwrap();
        let (sender, mut requests) = mpsc::channel(8);
        let serving = tokio::spawn(server.run(sender));
        let client = tokio::task::spawn_blocking(move || client(path));
        tokio::pin!(client);
        loop {
            tokio::select! {
                Some(incoming) = requests.recv() => answer(incoming),
                result = &mut client => {
                    result.unwrap();
                    break;
                }
            }
        }
        drop(requests);
        serving.await.unwrap();
    });
}

fn no_routes() -> Reply {
    Reply::Routes(RoutesReport { format: FORMAT, address: None, routes: Vec::new() })
}

const ROUTES: Request = Request::Routes { address: None };

#[test]
fn a_question_is_answered_and_the_socket_goes_with_the_server() {
    let directory = Directory::new();
    let answer = |incoming: Incoming| {
        assert_eq!(incoming.request, ROUTES);
        incoming.responder.finish(no_routes());
    };
    with_server(&directory.socket(), answer, |path| {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        let mut client = Client::connect(&path).unwrap();
        for _ in 0..3 {
            assert_eq!(client.ask(&ROUTES).unwrap(), no_routes());
        }
    });
    assert!(!directory.socket().exists());
}

fn ping(replies: u32) -> Reply {
    Reply::Ping(PingReport {
        format: FORMAT,
        node: "bravo".to_owned(),
        address: "fd5d:ac:1:2::1".parse().unwrap(),
        via: Vec::new(),
        sent: replies,
        replies: (1..=replies).map(|sequence| PingReply { sequence, rtt_ms: Some(1.0) }).collect(),
    })
}

#[test]
fn progress_comes_before_the_answer() {
    let directory = Directory::new();
    let answer = |incoming: Incoming| {
        incoming.responder.progress(ping(1));
        incoming.responder.progress(ping(2));
        incoming.responder.finish(ping(3));
    };
    with_server(&directory.socket(), answer, |path| {
        let mut seen = Vec::new();
        let last = Client::connect(&path).unwrap().follow(&ROUTES, |reply| seen.push(reply.clone())).unwrap();
        assert_eq!(seen, [ping(1), ping(2)]);
        assert_eq!(last, ping(3));
    });
}

#[test]
fn a_refusal_carries_its_exit_code() {
    let directory = Directory::new();
    let answer = |incoming: Incoming| incoming.responder.refuse(78, "the file is wrong");
    with_server(&directory.socket(), answer, |path| {
        let error = Client::connect(&path).unwrap().ask(&Request::Reload).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().as_str()), (78, "the file is wrong"));
    });
}

#[test]
fn a_forgotten_request_is_not_waited_for() {
    let directory = Directory::new();
    with_server(&directory.socket(), drop, |path| {
        let error = Client::connect(&path).unwrap().ask(&ROUTES).unwrap_err();
        assert_eq!(error.to_string(), "the daemon did not answer");
    });
}

#[test]
fn nonsense_is_refused_and_the_connection_goes_on() {
    let directory = Directory::new();
    let answer = |incoming: Incoming| incoming.responder.finish(no_routes());
    with_server(&directory.socket(), answer, |path| {
        let mut stream = BufReader::new(UnixStream::connect(path).unwrap());
        for (line, expected) in [
            ("rubbish", "does not understand"),
            (r#"{"version":1,"request":"dance"}"#, "does not know the request"),
            (r#"{"version":2,"request":{"dance":{}}}"#, "speaks version 1"),
            (r#"{"version":1,"request":"neighbours"}"#, "\"routes\""),
        ] {
            writeln!(stream.get_mut(), "{line}").unwrap();
            let mut answer = String::new();
            stream.read_line(&mut answer).unwrap();
            assert!(answer.contains(expected), "{answer}");
        }
    });
}

#[test]
fn an_endless_request_is_cut_off() {
    let directory = Directory::new();
    with_server(&directory.socket(), drop, |path| {
        let mut stream = UnixStream::connect(path).unwrap();
        // The server may close while we still write.
        let _ = stream.write_all(&vec![b'x'; MAX_REQUEST + 1]);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    });
}

#[test]
fn clients_that_do_nothing_hold_up_nobody() {
    let directory = Directory::new();
    let answer = |incoming: Incoming| incoming.responder.finish(no_routes());
    with_server(&directory.socket(), answer, |path| {
        let idle: Vec<UnixStream> = (0..32).map(|_| UnixStream::connect(&path).unwrap()).collect();
        // One asks and never reads.
        writeln!(&idle[0], r#"{{"version":1,"request":"neighbours"}}"#).unwrap();
        assert_eq!(Client::connect(&path).unwrap().ask(&ROUTES).unwrap(), no_routes());
    });
}

#[test]
fn the_control_loop_learns_that_a_client_left() {
    let directory = Directory::new();
    let (left, learned) = std::sync::mpsc::channel();
    let answer = move |incoming: Incoming| {
        let left = left.clone();
        tokio::spawn(async move {
            while !incoming.responder.is_cancelled() {
                tokio::task::yield_now().await;
            }
            left.send(()).unwrap();
        });
    };
    with_server(&directory.socket(), answer, move |path| {
        let mut stream = UnixStream::connect(path).unwrap();
        writeln!(stream, r#"{{"version":1,"request":"neighbours"}}"#).unwrap();
        drop(stream);
        learned.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    });
}

#[test]
fn a_dead_daemons_socket_is_replaced_and_a_living_ones_is_not() {
    let directory = Directory::new();
    let path = directory.socket();
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a socket without a listener is left");
    with_server(
        &path,
        |incoming| incoming.responder.finish(no_routes()),
        |path| {
            assert_eq!(Client::connect(&path).unwrap().ask(&ROUTES).unwrap(), no_routes());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let error = runtime.block_on(async { Server::bind(&path) }).unwrap_err();
            assert!(matches!(error, BindError::Alive { .. }), "{error}");
            assert_eq!(Client::connect(&path).unwrap().ask(&ROUTES).unwrap(), no_routes(), "it still works");
        },
    );
}

#[test]
fn a_file_in_the_way_is_left_alone() {
    let directory = Directory::new();
    std::fs::write(directory.socket(), "precious").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async { Server::bind(&directory.socket()) }).unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(directory.socket()).unwrap(), "precious");
}

#[test]
fn a_missing_daemon_is_told_in_the_words_of_the_manual() {
    let error = Client::connect(Path::new("/nowhere/control.sock")).unwrap_err();
    assert_eq!(error.exit_code(), 69);
    assert_eq!(error.to_string(), "cannot reach the daemon at /nowhere/control.sock: no such file");
    assert_eq!(
        error.help().as_deref(),
        Some("is it running? `systemctl status viamesh`, or `viamesh run` in a terminal")
    );
    let denied = ClientError::Unreachable {
        path: "/run/viamesh/control.sock".into(),
        source: std::io::ErrorKind::PermissionDenied.into(),
    };
    assert_eq!(denied.exit_code(), 77);
    assert_eq!(ClientError::Refused(Refusal::new(2, String::new())).exit_code(), 2);
}
