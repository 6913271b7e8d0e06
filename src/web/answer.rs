//! Which request gets which answer. Everything is read-only.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode, Uri};
use tokio::sync::mpsc;

use super::query;
use super::sampler::Sampler;
use crate::control::protocol::Refusal;
use crate::control::report::FlowDescription;
use crate::control::server::ask;
use crate::control::{Incoming, Reply, Request};
use crate::telemetry::metrics::{self, Dialect, Observation};

/// Scripts and styles come from here alone; nothing may be embedded, framed, posted or loaded from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// What is the same on every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The files of the page.
const FILES: [(&str, &str, &str); 7] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/page.js", SCRIPT, include_str!("page/page.js")),
    ("/map.js", SCRIPT, include_str!("page/map.js")),
    ("/chart.js", SCRIPT, include_str!("page/chart.js")),
    ("/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// An answer before its body is wrapped for the connection.
pub(super) type Answer = Response<Bytes>;

/// What one listener serves.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) requests: mpsc::Sender<Incoming>,
    /// Whether `/metrics` is served.
    pub(super) metrics: bool,
    /// The page's memory, where the page is served.
    pub(super) page: Option<Arc<Sampler>>,
    /// Whether it listens on a loopback port, where any web site's script could try to reach it.
    pub(super) loopback: bool,
}

impl Site {
    /// Answers one request.
    pub(super) async fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Answer {
        if self.loopback && !names_this_host(headers) {
            // A name that an attacker made resolve to 127.0.0.1 would make the attacker's script same-origin.
            return refuse(StatusCode::MISDIRECTED_REQUEST, "ask by 127.0.0.1, [::1] or localhost\n");
        }
        if method != Method::GET && method != Method::HEAD {
            let mut answer = refuse(StatusCode::METHOD_NOT_ALLOWED, "this is read-only\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let query = query::fields(uri.query().unwrap_or_default());
        match (uri.path(), &self.page) {
            ("/metrics", _) if self.metrics => self.scrape(headers).await,
            ("/api/view", Some(sampler)) => view(sampler, &query).await,
            ("/api/explain", Some(_)) => self.explain(&query).await,
            (path, Some(_)) => match FILES.iter().find(|(name, ..)| *name == path) {
                Some((_, kind, text)) => found(kind, Bytes::from_static(text.as_bytes())),
                None => refuse(StatusCode::NOT_FOUND, "there is no such page\n"),
            },
            (_, None) => refuse(StatusCode::NOT_FOUND, "only /metrics is served here\n"),
        }
    }

    async fn scrape(&self, headers: &HeaderMap) -> Answer {
        let observation = async {
            let Reply::Status(status) = ask(&self.requests, Request::Status { node: None }).await? else {
                return None;
            };
            let Reply::Associations(associations) =
                ask(&self.requests, Request::Associations { node: None }).await?
            else {
                return None;
            };
            let Reply::Counters(counters) = ask(&self.requests, Request::Counters).await? else {
                return None;
            };
            Some(Observation { status, associations, counters })
        };
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
        let dialect = Dialect::accepted(accept.unwrap_or_default());
        match observation.await.and_then(|observation| metrics::render(observation, dialect).ok()) {
            Some(text) => found(dialect.content_type(), text.into()),
            None => ending(),
        }
    }

    async fn explain(&self, query: &BTreeMap<String, String>) -> Answer {
        let flow = match flow(query) {
            Ok(flow) => flow,
            Err(text) => return refuse(StatusCode::BAD_REQUEST, &format!("{text}\n")),
        };
        match ask(&self.requests, Request::Explain { flow }).await {
            Some(Reply::Explain(report)) => json(&report),
            Some(Reply::Refused(Refusal { text, .. })) => {
                refuse(StatusCode::UNPROCESSABLE_ENTITY, &format!("{text}\n"))
            }
            _ => ending(),
        }
    }
}

async fn view(sampler: &Sampler, query: &BTreeMap<String, String>) -> Answer {
    let since = query.get("since").and_then(|since| since.parse().ok()).unwrap_or(0);
    match sampler.view(since).await {
        Some(view) => json(&view),
        None => ending(),
    }
}

/// The packet of an explain form.
fn flow(query: &BTreeMap<String, String>) -> Result<FlowDescription, String> {
    let field = |name: &str| query.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    let address = |name: &str| {
        let text = field(name).ok_or_else(|| format!("the {name} is missing"))?;
        text.parse().map_err(|_| format!("`{text}` is no IP address"))
    };
    let port = |name: &str| {
        let number = field(name).map(|text| text.parse().map_err(|_| format!("`{text}` is no port")));
        number.transpose()
    };
    let protocol = match field("protocol") {
        Some(name @ ("tcp" | "udp" | "icmp")) => Some(name.to_owned()),
        Some(name) => return Err(format!("`{name}` is none of tcp, udp and icmp")),
        None => None,
    };
    Ok(FlowDescription {
        source: address("source")?,
        destination: address("destination")?,
        protocol: protocol.filter(|protocol| protocol != "icmp"),
        source_port: None,
        destination_port: port("port")?,
        ingress: None,
        fwmark: None,
    })
}

/// Whether the request was made to this host by a name that only this host has.
fn names_this_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn json(report: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(report) {
        Ok(text) => found(JSON, text.into()),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn ending() -> Answer {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the daemon is ending\n")
}

fn found(kind: &'static str, body: Bytes) -> Answer {
    with_headers(Response::new(body), kind)
}

fn refuse(status: StatusCode, text: &str) -> Answer {
    let mut answer = with_headers(Response::new(Bytes::from(text.to_owned())), "text/plain; charset=utf-8");
    *answer.status_mut() = status;
    answer
}

fn with_headers(mut answer: Answer, kind: &'static str) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
