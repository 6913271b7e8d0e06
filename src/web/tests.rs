//! Answers of a site whose control loop is a test, and one real connection over a Unix socket.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::answer::{Answer, Site};
use super::sampler::Sampler;
use super::serve::Web;
use crate::config::settings::{Listener, NodeName, Settings};
use crate::control::protocol::Refusal;
use crate::control::report::tests::chain;
use crate::control::report::{AssociationsReport, FORMAT, ViewReport};
use crate::control::{Incoming, Reply, Request};
use crate::telemetry::{Severity, Tally};

/// A control loop that knows the chain of the reports' tests.
fn control_loop() -> mpsc::Sender<Incoming> {
    let (requests, mut incoming) = mpsc::channel::<Incoming>(8);
    tokio::spawn(async move {
        while let Some(Incoming { request, responder }) = incoming.recv().await {
            let (status, routes) = chain();
            responder.finish(match request {
                Request::Status { .. } => Reply::Status(status),
                Request::Routes { .. } => Reply::Routes(routes),
                Request::Associations { .. } => {
                    Reply::Associations(AssociationsReport { format: FORMAT, associations: Vec::new() })
                }
                Request::Counters => Reply::Counters(Tally::default().report()),
                Request::Explain { flow } => {
                    let text = format!("explain {flow}");
                    Reply::Refused(Refusal::new(1, text))
                }
                other => panic!("the page never asks {other:?}"),
            });
        }
    });
    requests
}

fn site(metrics: bool, page: bool) -> Site {
    let requests = control_loop();
    let page = page.then(|| Arc::new(Sampler::new(requests.clone())));
    Site { requests, metrics, page, loopback: true }
}

async fn get(site: &Site, address: &str) -> Answer {
    ask_as(site, &Method::GET, address, "127.0.0.1:9586").await
}

async fn ask_as(site: &Site, method: &Method, address: &str, host: &str) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/openmetrics-text"));
    site.answer(method, &address.parse::<Uri>().unwrap(), &headers).await
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(answer.body()).into_owned()
}

#[tokio::test]
async fn each_listener_serves_what_it_is_for() {
    let metrics = site(true, false);
    let scrape = get(&metrics, "/metrics").await;
    assert_eq!(scrape.status(), StatusCode::OK);
    assert!(text(&scrape).contains("viamesh_peers{state=\"up\"} 3"), "{}", text(&scrape));
    assert!(text(&scrape).ends_with("# EOF\n"));
    assert_eq!(get(&metrics, "/").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(get(&metrics, "/api/view").await.status(), StatusCode::NOT_FOUND);
    let page = site(false, true);
    assert_eq!(get(&page, "/metrics").await.status(), StatusCode::NOT_FOUND);
    for file in ["/", "/page.css", "/page.js", "/map.js", "/chart.js", "/dom.js", "/icon.svg"] {
        assert_eq!(get(&page, file).await.status(), StatusCode::OK, "{file}");
    }
    assert_eq!(get(&page, "/../etc/passwd").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_view_is_the_reports_of_one_moment() {
    let page = site(false, true);
    let view: ViewReport = serde_json::from_slice(get(&page, "/api/view?since=0").await.body()).unwrap();
    assert_eq!((view.format, view.status.node.as_str()), (1, "alpha.acme"));
    assert_eq!(view.graph.links.len(), 5);
}

#[tokio::test]
async fn the_form_asks_what_was_filled_in() {
    let page = site(false, true);
    let answer = get(&page, "/api/explain?source=10.1.3.4&destination=10.4.0.9&protocol=tcp&port=443").await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(text(&answer), "explain 10.1.3.4 to 10.4.0.9, tcp 443\n");
    for (query, complaint) in [
        ("source=10.1.3.4", "the destination is missing"),
        ("source=x&destination=10.4.0.9", "`x` is no IP address"),
        ("source=10.1.3.4&destination=10.4.0.9&port=70000", "`70000` is no port"),
        ("source=10.1.3.4&destination=10.4.0.9&protocol=evil", "`evil` is none of tcp, udp and icmp"),
    ] {
        let answer = get(&page, &format!("/api/explain?{query}")).await;
        assert_eq!((answer.status(), text(&answer)), (StatusCode::BAD_REQUEST, format!("{complaint}\n")));
    }
}

#[tokio::test]
async fn nothing_can_be_changed_and_nothing_comes_from_elsewhere() {
    let page = site(true, true);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let answer = ask_as(&page, &method, "/api/view", "localhost").await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let answer = get(&page, "/").await;
    let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for file in ["/", "/page.css", "/page.js", "/map.js", "/chart.js", "/dom.js"] {
        let body = text(&get(&page, file).await);
        let elsewhere = body.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("//cdn") && !elsewhere.contains("http"), "{file} loads from elsewhere");
        assert!(!body.contains("innerHTML") && !body.contains(" style="), "{file} fights the policy");
    }
}

#[tokio::test]
async fn other_names_for_this_host_are_refused() {
    let page = site(true, true);
    for good in ["127.0.0.1", "127.0.0.1:9586", "localhost:1", "LOCALHOST", "[::1]:9586", "[::1]"] {
        assert_eq!(ask_as(&page, &Method::GET, "/", good).await.status(), StatusCode::OK, "{good}");
    }
    for wrong in
        ["attacker.example", "attacker.example:9586", "127.0.0.1.attacker.example", "10.0.0.1", "[::2]:80"]
    {
        let answer = ask_as(&page, &Method::GET, "/api/view", wrong).await;
        assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST, "{wrong}");
    }
    let answer = page.answer(&Method::GET, &Uri::from_static("/"), &HeaderMap::new()).await;
    assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST);
}

fn settings(page: &std::path::Path) -> Settings {
    let mut settings = Settings::new(NodeName::new("acme", "alpha"), "fd5d:ac:0:1::/64".parse().unwrap());
    settings.metrics = Some(Listener::Unix(page.to_owned()));
    settings.page.clone_from(&settings.metrics);
    settings
}

fn socket(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("viamesh-web-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("page.sock")
}

#[tokio::test]
async fn page_and_metrics_share_a_unix_socket_and_leave_it_clean() {
    let path = socket("shared");
    let requests = control_loop();
    let (web, problems) = Web::start(&settings(&path), &requests).await;
    assert_eq!(problems, []);
    for address in ["/metrics", "/"] {
        let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        let request = format!("GET {address} HTTP/1.1\r\nHost: page\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    drop(web);
    tokio::time::timeout(Duration::from_secs(30), async {
        while path.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_listener_that_cannot_open_is_a_problem_and_no_failure() {
    let path = socket("taken");
    std::fs::write(&path, "not a socket").unwrap();
    let (_web, problems) = Web::start(&settings(&path), &control_loop()).await;
    assert_eq!((problems[0].code.as_str(), problems[0].severity), ("web/cannot-listen", Severity::Warning));
    assert!(problems[0].text.contains("is not a socket"), "{}", problems[0].text);
}
