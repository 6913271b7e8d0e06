//! Listens, and gives each connection a task with limits on what it may cost.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Incoming as Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::answer::Site;
use super::sampler::Sampler;
use crate::config::settings::{Listener, Settings};
use crate::control::{Incoming, Server};
use crate::telemetry::{Health, HealthCode};

/// Connections of one listener at a time.
const CONNECTIONS: usize = 32;
/// How long a request's head may take, and a connection may be idle.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a connection lives: browsers open another without a word.
const LIFETIME: Duration = Duration::from_secs(300);
/// Longest head of a request in octets.
const HEAD: usize = 16 * 1024;

/// What is served; all of it ends when this is dropped.
#[derive(Debug, Default)]
pub struct Web {
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

enum Socket {
    Loopback(TcpListener),
    Unix(Server),
}

impl Web {
    /// Serves what the settings ask for, which may be nothing. A listener that cannot be opened is a problem to show,
    /// and no reason to keep the tunnels down.
    pub async fn start(settings: &Settings, requests: &mpsc::Sender<Incoming>) -> (Self, Vec<Health>) {
        let mut sites: BTreeMap<&Listener, Site> = BTreeMap::new();
        let mut tasks = Vec::new();
        let empty = |listener: &Listener| Site {
            requests: requests.clone(),
            metrics: false,
            page: None,
            loopback: matches!(listener, Listener::Loopback(_)),
        };
        if let Some(listener) = &settings.metrics {
            sites.entry(listener).or_insert_with(|| empty(listener)).metrics = true;
        }
        if let Some(listener) = &settings.page {
            let sampler = Arc::new(Sampler::new(requests.clone()));
            sites.entry(listener).or_insert_with(|| empty(listener)).page = Some(Arc::clone(&sampler));
            tasks.push(tokio::spawn(async move { sampler.run().await }));
        }
        let mut problems = Vec::new();
        for (listener, site) in sites {
            match open(listener).await {
                Ok(socket) => {
                    tracing::info!(%listener, metrics = site.metrics, page = site.page.is_some(), "serving HTTP");
                    tasks.push(tokio::spawn(accept(socket, site)));
                }
                Err(error) => problems.push(problem(listener, &error)),
            }
        }
        (Self { tasks }, problems)
    }
}

fn problem(listener: &Listener, error: &io::Error) -> Health {
    let text = format!("cannot serve metrics or the page at {listener}: {error}");
    tracing::warn!("{text}");
    let next_step = "write another `metrics` or `page` into the node file, or stop what is there";
    Health::new(HealthCode::WebCannotListen, listener.to_string(), text, next_step)
}

async fn open(listener: &Listener) -> io::Result<Socket> {
    match listener {
        Listener::Loopback(address) => TcpListener::bind(address).await.map(Socket::Loopback),
        Listener::Unix(path) => Server::bind(path).map(Socket::Unix).map_err(io::Error::other),
    }
}

async fn accept(socket: Socket, site: Site) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // Whoever comes beyond the limit waits in the kernel's queue.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let site = site.clone();
        let opened = match &socket {
            Socket::Loopback(listener) => listener.accept().await.map(|(stream, _)| {
                tokio::spawn(async move {
                    serve(stream, site).await;
                    drop(place);
                })
            }),
            Socket::Unix(server) => server.accept().await.map(|stream| {
                tokio::spawn(async move {
                    serve(stream, site).await;
                    drop(place);
                })
            }),
        };
        if opened.is_err() {
            // Out of descriptors: others must end first.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, site: Site) {
    let service = service_fn(|request: Request<Body>| {
        let site = &site;
        async move {
            let answer = site.answer(request.method(), request.uri(), request.headers()).await;
            Ok::<Response<Full<_>>, Infallible>(answer.map(Full::new))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    // An error means that the client is gone or makes no sense; nobody is left to be told.
    let _ = tokio::time::timeout(LIFETIME, connection).await;
}
